"""Parses durations of properties, such as `30 SECONDS`."""

from __future__ import annotations

from headrace.model.types import MILLIS_PER_DAY

# Nanoseconds in each unit, as the messages list them.
_UNITS = {
    "NANOSECONDS": 1,
    "MICROSECONDS": 1_000,
    "MILLISECONDS": 1_000_000,
    "SECONDS": 1_000_000_000,
    "MINUTES": 60_000_000_000,
    "HOURS": 3_600_000_000_000,
    "DAYS": MILLIS_PER_DAY * 1_000_000,
}
_MILLISECOND = _UNITS["MILLISECONDS"]


def parse_duration(text: str) -> int:
    """The milliseconds of a duration; ValueError, with the reason, if the text is not one."""
    parts = text.split()
    if len(parts) != 2:
        raise _invalid(text, f"Expected 2 tokens, got: {len(parts)}")
    count, unit = parts[0], parts[1].upper()
    if not count.removeprefix("-").isdecimal():
        raise _invalid(text, f"Not numeric: '{count}'")
    known = unit if unit.endswith("S") else f"{unit}S"
    if known not in _UNITS:
        listed = ", ".join(_UNITS)
        raise _invalid(text, f"Unknown time unit: '{unit}'\nSupported time units are: {listed}")
    return int(count) * _UNITS[known] // _MILLISECOND


def _invalid(text: str, reason: str) -> ValueError:
    return ValueError(f"Invalid duration: '{text}'. {reason}")
