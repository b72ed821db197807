"""Time zones by the names that Java knows them by."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headrace.model.types import MILLIS_PER_DAY

_OFFSET = re.compile(r"([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")
_PREFIXED = re.compile(r"(UTC|GMT|UT)([+-].+)")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
# The calendar, weekdays included, repeats after 400 years; Python's ends at the year 9999.
_CYCLE = 146_097 * MILLIS_PER_DAY
_FIRST, _LAST = -62_135_000_000_000, 253_402_000_000_000

# Short names that Java understands in texts, and the zones it takes them for.
_SHORT = {
    "ACST": "Australia/Adelaide",
    "ACDT": "Australia/Adelaide",
    "AEST": "Australia/Sydney",
    "AEDT": "Australia/Sydney",
    "AKST": "America/Anchorage",
    "AKDT": "America/Anchorage",
    "AST": "America/Halifax",
    "ADT": "America/Halifax",
    "AWST": "Australia/Perth",
    "BST": "Europe/London",
    "CAT": "Africa/Maputo",
    "CET": "Europe/Paris",
    "CEST": "Europe/Paris",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "EAT": "Africa/Nairobi",
    "EET": "Europe/Bucharest",
    "EEST": "Europe/Bucharest",
    "EST": "America/New_York",
    "EDT": "America/New_York",
    "GMT": "GMT",
    "HKT": "Asia/Hong_Kong",
    "HST": "Pacific/Honolulu",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "KST": "Asia/Seoul",
    "MSK": "Europe/Moscow",
    "MST": "America/Denver",
    "MDT": "America/Denver",
    "NST": "America/St_Johns",
    "NDT": "America/St_Johns",
    "NZST": "Pacific/Auckland",
    "NZDT": "Pacific/Auckland",
    "PKT": "Asia/Karachi",
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
    "SAST": "Africa/Johannesburg",
    "SGT": "Asia/Singapore",
    "UTC": "UTC",
    "WAT": "Africa/Lagos",
    "WET": "Europe/Lisbon",
    "WEST": "Europe/Lisbon",
    "WIB": "Asia/Jakarta",
    "Z": "Z",
}


@dataclass(frozen=True)
class Zone:
    """A zone: a fixed offset from UTC in seconds, or a region with its rules."""

    id: str
    fixed: int | None
    region: datetime.tzinfo | None = None

    def offset(self, millis: int) -> int:
        """Seconds east of UTC at an instant."""
        if self.region is None:
            return self.fixed or 0
        steady = _steady_offset(self.id, millis // MILLIS_PER_DAY)
        if steady is not None:
            return steady
        return self._offset(millis)

    def _offset(self, millis: int) -> int:
        shift = self._at(millis).utcoffset()
        return 0 if shift is None else int(shift.total_seconds())

    def to_utc(self, local: int) -> int:
        """The instant of a local time; in a gap later, of two the earlier, as in Java."""
        if self.region is None:
            return local - (self.fixed or 0) * 1000
        steady = _steady_offset(self.id, local // MILLIS_PER_DAY)
        if steady is not None:
            return local - steady * 1000
        wall = _python_time(local).replace(tzinfo=self.region)
        shift = wall.utcoffset()
        return local - (0 if shift is None else int(shift.total_seconds()) * 1000)

    def name(self, millis: int) -> str:
        """The short name at an instant: `PST`, `CEST`."""
        if self.region is None:
            return self.id
        return self._at(millis).tzname() or self.id

    def _at(self, millis: int) -> datetime.datetime:
        return _python_time(millis).astimezone(self.region)


def _python_time(millis: int) -> datetime.datetime:
    if not _FIRST < millis < _LAST:
        millis %= _CYCLE
    return _EPOCH + datetime.timedelta(milliseconds=millis)


@lru_cache(maxsize=100_000)
def _steady_offset(name: str, day: int) -> int | None:
    """The offset of a region on a day and its neighbours; None if the clocks change there.

    Python takes its time to find an offset, and nearly all times are on days that others are on.
    """
    there = zone(name)
    offsets = {there._offset((day + shift) * MILLIS_PER_DAY) for shift in (-1, 0, 1, 2)}
    return offsets.pop() if len(offsets) == 1 else None


@lru_cache(maxsize=1000)
def zone(name: str) -> Zone:
    """The zone of an id as Java's `ZoneId.of` takes it; ValueError, with Java's text, otherwise."""
    if name in ("Z", "UTC", "GMT", "UT"):
        return Zone(name, 0)
    match = _OFFSET.fullmatch(name)
    if match is not None:
        return Zone(name, _seconds(name, match))
    prefixed = _PREFIXED.fullmatch(name)
    if prefixed is not None:
        rest = _OFFSET.fullmatch(prefixed[2])
        if rest is None:
            raise ValueError(f"Invalid ID for offset-based ZoneId: {name}")
        return Zone(name, _seconds(name, rest))
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9~/._+-]+", name):
        raise ValueError(f"Invalid ID for region-based ZoneId, invalid format: {name}")
    if name in ("EST", "MST", "HST"):  # regions for Python, but not for Java
        raise ValueError(f"Unknown time-zone ID: {name}")
    try:
        return Zone(name, None, ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"Unknown time-zone ID: {name}") from None


def zone_of_text(text: str) -> Zone:
    """The zone that a text names: an id, or a short name in any case."""
    short = _SHORT.get(text.upper())
    return zone(text if short is None else short)


def _seconds(name: str, match: re.Match[str]) -> int:
    hours, minutes, seconds = (int(part or 0) for part in match.group(2, 3, 4))
    total = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > 18 * 3600:
        raise ValueError(f"Zone offset not in valid range: -18:00 to +18:00: {name}")
    return -total if match[1] == "-" else total
