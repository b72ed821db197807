"""Texts to dates and times, by a pattern: as one regular expression and what its groups mean.

As lenient as Java's "smart" style: a day that its month does not have is the month's last one.
Pure Python: it runs wherever Spark runs Python, and for single values.
"""

from __future__ import annotations

import datetime
import re
from calendar import isleap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from headrace.functions.scalar.time.patterns import (
    MONTHS,
    NANOS_PER_MILLI,
    WEEKDAYS,
    Element,
    Letter,
    Optional,
    Text,
    days_of,
    elements,
    letters,
    month_length,
)
from headrace.functions.scalar.time.zones import Zone, zone, zone_of_text
from headrace.model.types import MILLIS_PER_DAY

# What each field looks like; in a group of its own.
_SHAPES: dict[str, Callable[[int], str]] = {
    **dict.fromkeys("yu", lambda n: r"\d{2}" if n == 2 else _number(n, 19) if n < 4 else _year(n)),
    **dict.fromkeys("ML", lambda n: _digits(n) if n < 3 else _named(MONTHS)),
    **dict.fromkeys("dHhKkms", lambda n: _digits(n)),
    "D": lambda n: r"-?\d{1,19}" if n == 1 else rf"\d{{{n},3}}",
    "S": lambda n: rf"\d{{{n}}}",
    **dict.fromkeys("AnN", lambda n: rf"\d{{{n},19}}"),
    "E": lambda n: _named(WEEKDAYS),
    "a": lambda n: "AM|PM",
    "G": lambda n: "AD|BC|Anno Domini|Before Christ|A|B",
    "X": lambda n: "Z|" + _offset(n),
    "x": lambda n: _offset(n),
    "Z": lambda n: (
        _offset(2) if n < 4 else "GMT(?:[+-]\\d{2}:\\d{2})?" if n == 4 else "Z|" + _offset(5)
    ),
    "O": lambda n: r"GMT(?:[+-]\d{1,2}(?::\d{2}(?::\d{2})?)?)?",
    "z": lambda n: r"[A-Za-z][A-Za-z0-9_/]*(?:[+-]\d{1,2}(?::?\d{2})?)?|[+-]\d{1,2}(?::?\d{2})?",
    "v": lambda n: r"[A-Za-z][A-Za-z0-9_/]*",
    "V": lambda n: r"[A-Za-z][A-Za-z0-9_/+:-]*|[+-]\d{1,2}(?::?\d{2}){0,2}",
}


# How many fields whose length the pattern leaves open may follow each other.
MOST_OPEN = 3


def _number(least: int, most: int) -> str:
    return rf"-?\d{{{least},{most}}}"


def _year(count: int) -> str:
    """More digits than the pattern has letters need a sign."""
    return rf"\d{{{count}}}|\+\d{{{count + 1},19}}|-\d{{{count},19}}"


def _digits(count: int) -> str:
    return r"-?\d{1,19}" if count == 1 else rf"\d{{{count}}}"


def _named(names: Sequence[str]) -> str:
    return "|".join((*names, *(name[:3] for name in names)))


def _offset(count: int) -> str:
    return (
        r"[+-]\d{2}(?:\d{2})?",
        r"[+-]\d{4}",
        r"[+-]\d{2}:\d{2}",
        r"[+-]\d{4}(?:\d{2})?",
        r"[+-]\d{2}:\d{2}(?::\d{2})?",
    )[count - 1]


@dataclass(frozen=True)
class Parser:
    """A pattern made ready to parse with."""

    regex: re.Pattern[str]
    groups: tuple[Letter, ...]

    def fields(self, match: re.Match[str]) -> dict[str, tuple[str, int]]:
        """What each letter matched, and its count."""
        return {
            part.letter: (found, part.count)
            for part, found in zip(self.groups, match.groups(), strict=True)
            if found is not None
        }


@lru_cache(maxsize=1000)
def parser(pattern: str) -> Parser:
    parts = elements(pattern)
    groups = tuple(letters(parts))
    for part in groups:
        if part.letter not in _SHAPES:
            raise ValueError(f"Pattern letter is not supported for parsing: {part.letter}")
    if _is_ambiguous(parts):
        raise ValueError(f"Pattern has more than {MOST_OPEN} fields of any length in a row")
    return Parser(re.compile(_regex(parts), re.IGNORECASE), groups)


def _is_ambiguous(parts: tuple[Element, ...]) -> bool:
    """Whether a text could be divided among the fields in so many ways that to try them all takes
    for ever. Java would divide it in one, in which the first field takes everything."""
    row = zones = 0
    for part in _flat(parts):
        match part:
            case Text(text):
                row = row if text.isalnum() else 0
            case Letter(letter, count):
                row += any(sign in _SHAPES[letter](count) for sign in ",*")
                zones += letter in "zvV"
        if row > MOST_OPEN or zones > MOST_OPEN:
            return True
    return False


def _flat(parts: tuple[Element, ...]) -> Iterator[Element]:
    for part in parts:
        if isinstance(part, Optional):
            yield from _flat(part.elements)
        else:
            yield part


def _regex(parts: tuple[Element, ...]) -> str:
    shown = ""
    for part in parts:
        match part:
            case Letter(letter, count):
                shown += f"({_SHAPES[letter](count)})"
            case Text(text):
                shown += re.escape(text)
            case Optional(inner):
                shown += f"(?:{_regex(inner)})?"
    return shown


@dataclass(frozen=True)
class Parsed:
    """What a text said: the fields that were there, None for those that were not."""

    year: int | None
    month: int | None
    day: int | None
    day_of_year: int | None
    hour: int | None
    half: int | None  # 0 before noon, 1 after
    hour_of_half: int | None
    minute: int | None
    second: int | None
    nano: int | None
    millis_of_day: int | None
    zone: Zone | None
    weekday: int | None

    @property
    def has_date(self) -> bool:
        return any(
            v is not None for v in (self.year, self.month, self.day, self.day_of_year, self.weekday)
        )

    def days(self) -> int | None:
        """The date in full, if all of it is there."""
        if self.year is None:
            return None
        if self.day_of_year is not None:
            if self.day_of_year > 365 + isleap(self.year):
                raise ValueError(
                    f"Invalid date 'DayOfYear {self.day_of_year}' as '{self.year}' is not a leap "
                    "year"
                )
            return days_of(self.year, 1, 1) + self.day_of_year - 1
        if self.month is None or self.day is None:
            return None
        day = min(self.day, month_length(self.year, self.month))
        return days_of(self.year, self.month, day)

    def time(self) -> int | None:
        """Milliseconds of the day, if there is an hour."""
        if self.millis_of_day is not None:
            return self.millis_of_day
        hour = self.hour
        if hour is None and self.hour_of_half is not None and self.half is not None:
            hour = self.half * 12 + self.hour_of_half
        if hour is None:
            return None
        if self.minute is None and self.second is not None:
            return None
        return self._clock(hour)

    def _clock(self, hour: int) -> int:
        seconds = (hour % 24 * 60 + (self.minute or 0)) * 60 + (self.second or 0)
        return seconds * 1000 + (self.nano or 0) // NANOS_PER_MILLI

    def instant(self, given: Zone) -> int:
        """Milliseconds since the epoch; what is missing is as at 1970-01-01T00:00."""
        days = self.days()
        if days is None:
            year, month = self.year or 1970, self.month or 1
            if self.year is None and self.day_of_year is not None:
                if self.day_of_year == 366:
                    raise ValueError("Leap day cannot be parsed without supplying the year field")
                days = self.day_of_year - 1
            else:
                day = 1 if self.day is None else self.day
                if day > month_length(year, month):
                    raise ValueError(f"Invalid date '{MONTHS[month - 1].upper()} {day}'")
                days = days_of(year, month, day)
            if self.weekday is not None:
                days += self.weekday - (days + 3) % 7
        elif self.weekday is not None and (days + 3) % 7 != self.weekday:
            raise ValueError(
                f"Conflict found: {WEEKDAYS[self.weekday]} differs from the date's day"
            )
        time = self.time()
        if time is None:
            hour = (self.half or 0) * 12 + (self.hour_of_half or 0)
            time = self._clock(self.hour if self.hour is not None else hour)
        return (self.zone or given).to_utc(days * MILLIS_PER_DAY + time)


_RANGES = {
    "MonthOfYear": (1, 12),
    "DayOfMonth": (1, 31),
    "DayOfYear": (1, 366),
    "HourOfDay": (0, 24),
    "ClockHourOfDay": (1, 24),
    "HourOfAmPm": (0, 11),
    "ClockHourOfAmPm": (1, 12),
    "MinuteOfHour": (0, 59),
    "SecondOfMinute": (0, 59),
    "NanoOfSecond": (0, 999_999_999),
    "MilliOfDay": (0, MILLIS_PER_DAY - 1),
    "NanoOfDay": (0, MILLIS_PER_DAY * NANOS_PER_MILLI - 1),
    "YearOfEra": (1, 10**9),
}


def parse(pattern: str, text: str) -> Parsed:
    """ValueError, with Java's text, if the text is not as the pattern says."""
    ready = parser(pattern)
    match = ready.regex.fullmatch(text)
    if match is None:
        raise ValueError(f"Text '{text}' could not be parsed")
    found = ready.fields(match)

    def number(letter: str, name: str) -> int | None:
        if letter not in found:
            return None
        value = int(found[letter][0])
        low, high = _RANGES[name]
        if not low <= value <= high:
            raise ValueError(
                f"Text '{text}' could not be parsed: Invalid value for {name} "
                f"(valid values {low} - {high}): {value}"
            )
        return value

    clock = number("k", "ClockHourOfDay")
    hour = number("H", "HourOfDay") if clock is None else clock % 24
    if hour == 24 and any(int(found[x][0]) for x in "msS" if x in found):
        raise ValueError(f"Text '{text}' could not be parsed: Invalid value for HourOfDay: 24")
    half_clock = number("h", "ClockHourOfAmPm")
    half_hour = number("K", "HourOfAmPm") if half_clock is None else half_clock % 12
    nano = number("n", "NanoOfSecond")
    if "S" in found:
        nano = int(found["S"][0].ljust(9, "0"))
    day_nanos = number("N", "NanoOfDay")
    return Parsed(
        year=_parsed_year(found, text),
        month=_parsed_month(found, lambda x: number(x, "MonthOfYear")),
        day=number("d", "DayOfMonth"),
        day_of_year=number("D", "DayOfYear"),
        hour=hour,
        half=None if "a" not in found else int(found["a"][0].upper() == "PM"),
        hour_of_half=half_hour,
        minute=number("m", "MinuteOfHour"),
        second=number("s", "SecondOfMinute"),
        nano=nano,
        millis_of_day=(
            number("A", "MilliOfDay") if day_nanos is None else day_nanos // NANOS_PER_MILLI
        ),
        zone=_parsed_zone(found),
        weekday=None if "E" not in found else _position(WEEKDAYS, found["E"][0]),
    )


def _parsed_year(found: Mapping[str, tuple[str, int]], text: str) -> int | None:
    letter = "y" if "y" in found else "u"
    if letter not in found:
        return None
    digits, count = found[letter]
    year = int(digits)
    if count == 2:
        return 2000 + year
    if letter == "y":
        if year < 1:
            raise ValueError(
                f"Text '{text}' could not be parsed: Invalid value for YearOfEra: {year}"
            )
        if "G" in found and found["G"][0].upper().startswith("B"):
            return 1 - year
    return year


def _parsed_month(
    found: Mapping[str, tuple[str, int]], number: Callable[[str], int | None]
) -> int | None:
    letter = "M" if "M" in found else "L"
    if letter not in found or found[letter][1] < 3:
        return number(letter)
    return _position(MONTHS, found[letter][0]) + 1


def _position(names: Sequence[str], value: str) -> int:
    start = value[:3].lower()
    return next(i for i, name in enumerate(names) if name[:3].lower() == start)


def _parsed_zone(found: Mapping[str, tuple[str, int]]) -> Zone | None:
    for letter in "Vzv":
        if letter in found:
            return zone_of_text(found[letter][0])
    for letter in "XxZO":
        if letter in found:
            return zone(found[letter][0].upper())
    return None


# ------------------------------------------------------------------------------- numbers only


@dataclass(frozen=True)
class NumericPattern:
    """Reads what nearly all patterns are made of, figures of a date and a time of day, quickly.

    `read` gives milliseconds since 1970-01-01T00:00, or None for a text with anything uncommon:
    that is for `parse`, which knows it all.
    """

    read: Callable[[str], int | None]
    dated: bool
    timed: bool


@lru_cache(maxsize=1000)
def numeric_pattern(pattern: str) -> NumericPattern | None:
    """None for a pattern with anything uncommon."""
    ready = parser(pattern)
    counts = {part.letter: part.count for part in ready.groups}
    date, clock = ("".join(x for x in fields if x in counts) for fields in ("yMd", "HmsS"))
    if (
        any(isinstance(part, Optional) for part in elements(pattern))
        or len(date + clock) < len(ready.groups)
        or date not in ("yMd", "")
        or not "HmsS".startswith(clock)
        or counts.get("y") == 2
        or counts.get("M", 0) > 2
    ):
        return None
    places = {part.letter: place for place, part in enumerate(ready.groups, 1)}
    figures = [(places.get(x), given) for x, given in zip("yMdHms", _START, strict=True)]
    fraction = places.get("S")

    def read(text: str) -> int | None:
        found = ready.regex.fullmatch(text)
        if found is None:
            return None
        year, month, day, hour, minute, second = [
            given if place is None else int(found[place]) for place, given in figures
        ]
        if not (
            year > 0
            and 0 < month < 13
            and 0 < day <= (28 if day < 29 else month_length(year, month))
            and 0 <= hour < 24
            and 0 <= minute < 60
            and 0 <= second < 60
        ):
            return None
        clock = ((hour * 60 + minute) * 60 + second) * 1000
        if fraction is not None:
            clock += int(found[fraction][:3].ljust(3, "0"))
        return days_of(year, month, day) * MILLIS_PER_DAY + clock

    return NumericPattern(read, date != "", clock != "")


_START = (1970, 1, 1, 0, 0, 0)


# ------------------------------------------------------------------- as SimpleDateFormat has it

_SIMPLE_TOKEN = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|.", re.DOTALL)
_SIMPLE_NUMBERS = "yYMdDHkKhmsSuwWF"
_SIMPLE_LETTERS = _SIMPLE_NUMBERS + "EaGzZX"
_SIMPLE_TEXTS = {
    "E": _named(WEEKDAYS),
    "a": "AM|PM",
    "G": "AD|BC",
    "z": r"[A-Za-z][A-Za-z0-9_/]*(?:[+-]\d{1,2}:\d{2})?",
    "Z": r"[+-]\d{4}|GMT[+-]\d{1,2}:\d{2}|[A-Za-z]+",
    "X": r"Z|[+-]\d{2}(?::?\d{2})?",
}


@lru_cache(maxsize=1000)
def simple_parser(pattern: str) -> Parser:
    """A pattern of SimpleDateFormat's letters, which parses the start of a text."""
    tokens = [(m[0], m[1], m[2]) for m in _SIMPLE_TOKEN.finditer(pattern)]
    shown, groups = "", []
    for index, (whole, letter, quoted) in enumerate(tokens):
        if letter is None:
            text = whole if quoted is None else quoted.replace("''", "'") or "'"
            shown += re.escape(text)
            continue
        if letter not in _SIMPLE_LETTERS:
            raise ValueError(f"Illegal pattern component: {whole}")
        groups.append(Letter(letter, len(whole)))
        if letter == "M" and len(whole) >= 3:
            shown += f"({_named(MONTHS)})"
        elif letter in _SIMPLE_TEXTS:
            shown += f"({_SIMPLE_TEXTS[letter]})"
        else:
            follower = tokens[index + 1][1] if index + 1 < len(tokens) else None
            adjacent = follower is not None and follower in _SIMPLE_NUMBERS
            # Possessive: Java takes as many digits as it can, and never goes back.
            shown += rf"\s*+(\d{{1,{len(whole)}}}+)" if adjacent else r"\s*+(\d++)"
    return Parser(re.compile(shown, re.IGNORECASE), tuple(groups))


def parse_simple_date(pattern: str, text: str) -> int:
    """Days since 1970-01-01. Numbers that are too great for their field carry over."""
    ready = simple_parser(pattern)
    match = ready.regex.match(text)
    if match is None:
        raise ValueError(f"Unparseable date: {text}")
    found = ready.fields(match)

    def number(letter: str, otherwise: int) -> int:
        return int(found[letter][0]) if letter in found else otherwise

    years = number("y", number("Y", 1970))
    if "y" in found and found["y"][1] <= 2 and years < 100:
        years = two_digit_year(years)
    if "M" in found and found["M"][1] >= 3:
        month = _position(MONTHS, found["M"][0])
    else:
        month = number("M", 1) - 1
    carried, month = divmod(month, 12)
    if "D" in found:
        days = days_of(years, 1, 1) + number("D", 1) - 1
    else:
        days = days_of(years + carried, month + 1, 1) + number("d", 1) - 1
    half = 12 * ("a" in found and found["a"][0].upper() == "PM")
    hours = number("H", number("k", 0) % 24) + number("K", number("h", 0) % 12) + half
    seconds = (hours * 60 + number("m", 0)) * 60 + number("s", 0)
    where = next((zone_of_text(found[x][0].upper()) for x in "zZX" if x in found), zone("GMT"))
    millis = where.to_utc(days * MILLIS_PER_DAY + seconds * 1000 + number("S", 0))
    if millis % MILLIS_PER_DAY:
        raise ValueError("Date format contains time field.")
    return millis // MILLIS_PER_DAY


def two_digit_year(digits: int) -> int:
    """Within 80 years before and 20 years after now, as SimpleDateFormat takes it."""
    start = datetime.date.today().year - 80
    year = start // 100 * 100 + digits
    return year if year >= start else year + 100
