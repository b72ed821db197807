"""Dates and times as text, by the pattern letters of Java's DateTimeFormatter.

A pattern is read once into elements; others make parsers and writers of them. Here too is the
calendar that both need, for any year.
"""

from __future__ import annotations

from calendar import isleap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

NANOS_PER_MILLI = 1_000_000

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Letter:
    """A field: its letter and how often it stands in a row."""

    letter: str
    count: int


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Optional:
    """A section that may be missing when parsing, and is left out if it cannot be written."""

    elements: tuple[Element, ...]


Element = Letter | Text | Optional

_LETTERS = "GuyDMLdQqYwWEecFaBhKkHmsSAnNVvzOXxZ"
# How often a letter may stand in a row; those that are not here, up to 19 times.
_LONGEST = {
    **dict.fromkeys("dhHkKms", 2),
    **dict.fromkeys("MLQqEGecXxZB", 5),
    **dict.fromkeys("zvO", 4),
    **dict.fromkeys("aFW", 1),
    "D": 3,
    "w": 2,
    "S": 9,
}


@lru_cache(maxsize=1000)
def elements(pattern: str) -> tuple[Element, ...]:
    """The pattern's elements; ValueError, with Java's text, if it is not one."""
    found, rest = _read(pattern, 0, nested=False)
    if rest < len(pattern):
        raise ValueError("Pattern invalid as it contains ] without previous [")
    return found


def _read(pattern: str, at: int, nested: bool) -> tuple[tuple[Element, ...], int]:
    found: list[Element] = []
    while at < len(pattern):
        char = pattern[at]
        if char.isascii() and char.isalpha():
            end = at
            while end < len(pattern) and pattern[end] == char:
                end += 1
            found.append(_letter(char, end - at))
            at = end
        elif char == "'":
            text, at = _quoted(pattern, at)
            found.append(Text(text))
        elif char == "[":
            inner, at = _read(pattern, at + 1, nested=True)
            found.append(Optional(inner))
        elif char == "]":
            return tuple(found), at + nested
        elif char in "{}#":
            raise ValueError(f"Pattern includes reserved character: '{char}'")
        else:
            found.append(Text(char))
            at += 1
    return tuple(found), at


def _letter(char: str, count: int) -> Letter:
    if char not in _LETTERS:
        raise ValueError(f"Unknown pattern letter: {char}")
    if count > _LONGEST.get(char, 19):
        raise ValueError(f"Too many pattern letters: {char}")
    if char == "V" and count != 2:
        raise ValueError("Pattern letter count must be 2: V")
    if char in "Ov" and count not in (1, 4):
        raise ValueError(f"Pattern letter count must be 1 or 4: {char}")
    return Letter(char, count)


def _quoted(pattern: str, at: int) -> tuple[str, int]:
    end, text = at + 1, ""
    while True:
        close = pattern.find("'", end)
        if close < 0:
            raise ValueError(f"Pattern ends with an incomplete string literal: {pattern}")
        text += pattern[end:close]
        if pattern[close : close + 2] != "''":
            return text or "'", close + 1
        text, end = text + "'", close + 2


def letters(parts: tuple[Element, ...]) -> Iterator[Letter]:
    """Every field of the pattern, those of optional sections too."""
    for part in parts:
        if isinstance(part, Letter):
            yield part
        elif isinstance(part, Optional):
            yield from letters(part.elements)


# ------------------------------------------------------------------------------------- calendar


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date in the proleptic Gregorian calendar, of any year."""
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


@lru_cache(maxsize=100_000)
def date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day."""
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    return year + era * 400 + (month <= 2), month, day


def month_length(year: int, month: int) -> int:
    return 28 + isleap(year) if month == 2 else 31 - (month in (4, 6, 9, 11))
