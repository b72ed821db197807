"""Parses dates and times in SQL literals, complete or partial."""

from __future__ import annotations

import datetime
import re

from headrace.model.errors import StatementError
from headrace.model.types import EPOCH_DAY, MILLIS_PER_DAY

_TIME_SHAPE = "00:00:00.000"
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_TIME = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?")
_ZONE = re.compile(r"([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")

_TIMESTAMP_HELP = (
    "\nRequired format is: \"yyyy-MM-dd'T'HH:mm:ss.SSS\", with an optional numeric 4-digit "
    "timezone, for example: '2020-05-26T23:59:58.000' or with tz: "
    "'2020-05-26T23:59:58.000+0200'. A trailing 'Z' instead of tz indicates the zero UTC offset. "
    'Partials are also supported, for example "2020-05-26"'
)
_TIME_HELP = (
    "\nRequired format is: \"HH:mm:ss.SSS\", for example: '01:34:20.123' or '01:34:20'. "
    "Partials are also supported, for example '01:34'"
)
_DATE_HELP = (
    "\nRequired format is: \"yyyy-MM-dd\", for example '2020-05-26'. "
    "Partials are also supported, for example '2020-05'"
)


def parse_timestamp(text: str) -> int:
    """Milliseconds since the epoch; what is left out of date and time is the earliest there is."""
    date, separator, rest = text.partition("T")
    zone_at = min((i for i in (rest.find("+"), rest.find("-")) if i >= 0), default=len(rest))
    clock, zone = rest[:zone_at].removesuffix("Z"), rest[zone_at:].strip()
    clock += _TIME_SHAPE[len(clock) :]
    try:
        days = _days(date if separator else _completed(date))
        return days * MILLIS_PER_DAY + _milliseconds(clock, MILLIS_PER_DAY) - _offset(zone)
    except ValueError as e:
        raise StatementError(f"Failed to parse timestamp '{text}': {e}{_TIMESTAMP_HELP}") from None


def parse_date(text: str) -> int:
    """Days since 1970-01-01."""
    try:
        return _days(_completed(text))
    except ValueError as e:
        raise StatementError(f"Failed to parse date '{text}': {e}{_DATE_HELP}") from None


def parse_time(text: str) -> int:
    """Milliseconds of the day."""
    try:
        return _milliseconds(text)
    except ValueError as e:
        raise StatementError(f"Failed to parse time '{text}': {e}{_TIME_HELP}") from None


def _completed(date: str) -> str:
    return date + "-01-01"[3 * date.count("-") :] if date.count("-") < 2 else date


def _days(text: str) -> int:
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(f"Text '{text}' could not be parsed at index 0")
    year, month, day = map(int, match.groups())
    try:
        return datetime.date(year, month, day).toordinal() - EPOCH_DAY
    except ValueError as e:
        raise ValueError(f"Text '{text}' could not be parsed: {e}") from None


def _milliseconds(text: str, latest: int = MILLIS_PER_DAY - 1) -> int:
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"Text '{text}' could not be parsed at index 0")
    hour, minute, second = (int(part or 0) for part in match.group(1, 2, 3))
    fraction = int((match[4] or "").ljust(9, "0")[:3])
    result = ((hour * 60 + minute) * 60 + second) * 1000 + fraction
    if minute > 59 or second > 59 or result > latest:
        raise ValueError(f"Text '{text}' could not be parsed: Invalid value")
    return result


def _offset(text: str) -> int:
    if not text:
        return 0
    match = _ZONE.fullmatch(text)
    if match is None or int(match[2]) > 18:
        raise ValueError(f"Failed to parse timezone '{text}'")
    hour, minute, second = (int(part or 0) for part in match.group(2, 3, 4))
    return (-1 if match[1] == "-" else 1) * ((hour * 60 + minute) * 60 + second) * 1000
