"""Dates and times to and from text, a row at a time, with ksqlDB's words for what went wrong."""

from __future__ import annotations

from headrace.functions.scalar.time.formatting import Moment, at, writer
from headrace.functions.scalar.time.parsing import numeric_pattern, parse, parse_simple_date
from headrace.functions.scalar.time.zones import zone
from headrace.model.types import MILLIS_PER_DAY


def format_date(days: int, pattern: str) -> str:
    try:
        return writer(pattern)(Moment(days, None))
    except ValueError as e:
        raise ValueError(f"Failed to format date {days} with formatter '{pattern}': {e}") from e


def format_time(millis: int, pattern: str) -> str:
    try:
        return writer(pattern)(Moment(None, millis % MILLIS_PER_DAY))
    except ValueError as e:
        raise ValueError(f"Failed to format time {millis} with formatter '{pattern}': {e}") from e


def format_timestamp(millis: int, pattern: str, where: str) -> str:
    try:
        return writer(pattern)(at(millis, zone(where)))
    except ValueError as e:
        raise ValueError(
            f"Failed to format timestamp {millis} at timeZone '{where}' with formatter "
            f"'{pattern}': {e}"
        ) from e


def parse_timestamp(value: str | None, pattern: str | None, where: str | None) -> int:
    try:
        if value is None or pattern is None or where is None:
            raise ValueError("null")
        quick = numeric_pattern(pattern)
        local = None if quick is None else quick.read(value)
        if local is not None:
            return zone(where).to_utc(local)
        return parse(pattern, value).instant(zone(where))
    except ValueError as e:
        raise ValueError(_not_parsed("timestamp", value, pattern, e)) from e


def parse_local_date(value: str | None, pattern: str | None) -> int:
    try:
        if value is None or pattern is None:
            raise ValueError("null")
        quick = numeric_pattern(pattern)
        local = quick.read(value) if quick is not None and quick.dated else None
        days = parse(pattern, value).days() if local is None else local // MILLIS_PER_DAY
        if days is None:
            raise ValueError(f"Text '{value}' could not be parsed: Unable to obtain LocalDate")
        return days
    except ValueError as e:
        raise ValueError(_not_parsed("date", value, pattern, e)) from e


def parse_date(value: str, pattern: str) -> int:
    try:
        return parse_simple_date(pattern, value)
    except ValueError as e:
        raise ValueError(_not_parsed("date", value, pattern, e)) from e


def parse_time(value: str, pattern: str) -> int:
    try:
        quick = numeric_pattern(pattern)
        if quick is not None and quick.timed and not quick.dated:
            time = quick.read(value)
            if time is not None:
                return time
        parsed = parse(pattern, value)
        if parsed.has_date:
            raise ValueError("Time format contains date field.")
        time = parsed.time()
        if time is None:
            raise ValueError(f"Text '{value}' could not be parsed: Unable to obtain LocalTime")
        return time
    except ValueError as e:
        raise ValueError(_not_parsed("time", value, pattern, e)) from e


def _not_parsed(what: str, value: str | None, pattern: str | None, reason: Exception) -> str:
    return f"Failed to parse {what} '{_shown(value)}' with formatter '{_shown(pattern)}': {reason}"


def _shown(value: str | None) -> str:
    return "null" if value is None else value


def convert_zone(millis: int, source: str, target: str) -> int:
    try:
        return millis + (zone(target).offset(millis) - zone(source).offset(millis)) * 1000
    except ValueError as e:
        raise ValueError(f"Invalid time zone: {e}") from e
