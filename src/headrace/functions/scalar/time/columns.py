"""Constant time patterns as Spark columns: most of them, with the results of the Python ones.

What cannot be said in columns gives None here and is left to Python: pattern letters that are rare,
zones by name, optional sections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.scalar.java_text import FURTHEST_MILLIS
from headrace.functions.scalar.time.parsing import numeric_pattern, parser, simple_parser
from headrace.functions.scalar.time.patterns import (
    MONTHS,
    Letter,
    Optional,
    Text,
    days_of,
    elements,
    letters,
)
from headrace.functions.scalar.time.zones import Zone
from headrace.model.types import MILLIS_PER_DAY

# ------------------------------------------------------------------------------------- zones


def local_millis(instant: Column, where: Zone) -> Column:
    """An instant's milliseconds as a clock at the zone shows them."""
    if where.region is None:
        return instant + (where.fixed or 0) * 1000
    return F.unix_millis(F.from_utc_timestamp(_timestamp(instant), where.id))


def utc_millis(local: Column, where: Zone) -> Column:
    if where.region is None:
        return local - (where.fixed or 0) * 1000
    return F.unix_millis(F.to_utc_timestamp(_timestamp(local), where.id))


def _timestamp(millis: Column) -> Column:
    """Null where Spark's timestamps end."""
    near = millis.between(-FURTHEST_MILLIS, FURTHEST_MILLIS)
    return F.when(near, F.timestamp_millis(millis))


# --------------------------------------------------------------------------------- formatting

# What Spark's formatter, which is Java's with some letters forbidden, may be given.
_DATE_LETTERS = {"y": 6, "M": 4, "d": 2, "E": 4, "D": 3}
_TIME_LETTERS = {"H": 2, "h": 2, "K": 2, "k": 2, "m": 2, "s": 2, "S": 9, "a": 1}
_OFFSET_LETTERS = {"X": 5, "x": 5}


def format_date(days: Column, pattern: str) -> Column | None:
    if not _allowed(pattern, _DATE_LETTERS):
        return None
    near = days.between(-(FURTHEST_MILLIS // MILLIS_PER_DAY), FURTHEST_MILLIS // MILLIS_PER_DAY)
    return F.when(near, F.date_format(F.date_from_unix_date(days), pattern))


def format_time(millis: Column, pattern: str) -> Column | None:
    if not _allowed(pattern, _TIME_LETTERS):
        return None
    return F.date_format(F.timestamp_millis(millis.cast("bigint")), pattern)


def format_timestamp(millis: Column, pattern: str, where: Zone) -> Column | None:
    offsets = _OFFSET_LETTERS if where.fixed == 0 else {}
    if not _allowed(pattern, {**_DATE_LETTERS, **_TIME_LETTERS, **offsets}):
        return None
    return F.date_format(_timestamp(local_millis(millis, where)), pattern)


def _allowed(pattern: str, longest: dict[str, int]) -> bool:
    parts = elements(pattern)
    return not any(isinstance(p, Optional) for p in parts) and all(
        letter.count <= longest.get(letter.letter, 0) for letter in letters(parts)
    )


# ------------------------------------------------------------------------------------- parsing

_PARSED = frozenset("yuMdDHhKkmsSaXxZ")
_GAP = "\u0001"


class _Groups:
    """What each letter of a pattern matched, as columns over the `parts` of a text."""

    def __init__(self, parts: Column, groups: tuple[Letter, ...]) -> None:
        self.counts = {g.letter: g.count for g in groups}
        self.columns = {g.letter: F.get(parts, F.lit(i)) for i, g in enumerate(groups, 1)}

    def __contains__(self, letter: str) -> bool:
        return letter in self.columns

    def text(self, letter: str) -> Column:
        return self.columns[letter]

    def number(self, letter: str, low: int, high: int, otherwise: int = 0) -> Column:
        """The number if it is in its range; `otherwise` if there is no such field."""
        if letter not in self:
            return F.lit(otherwise)
        value = self.columns[letter].cast("int")
        return F.when(value.between(low, high), value)

    def month(self, low: int, high: int) -> Column:
        if self.counts.get("M", 0) < 3:
            return self.number("M", low, high, 1)
        names = F.array(*(F.lit(name[:3].lower()) for name in MONTHS))
        found = F.array_position(names, F.lower(F.substring(self.text("M"), 1, 3)))
        return F.when(found > 0, found.cast("int"))

    def year(self) -> Column:
        letter = "y" if "y" in self else "u"
        if letter not in self:
            return F.lit(1970)
        value = self.columns[letter].cast("int")
        if self.counts[letter] == 2:
            return value + 2000
        return F.when(value > 0, value) if letter == "y" else value


@dataclass(frozen=True)
class _Shape:
    """What texts of a pattern look like, and the letters they are made of."""

    regex: str
    groups: tuple[Letter, ...]

    def __contains__(self, letter: str) -> bool:
        return any(g.letter == letter for g in self.groups)

    def parsed(self, text: Column, value: Callable[[_Groups], Column]) -> Column:
        """A value of what the text matched; null where it does not match.

        The text is taken apart once, for a lambda: in columns each use of a part, and there
        are dozens, would match the text again.
        """
        marked = "".join(f"{_GAP}${i}" for i in range(1, len(self.groups) + 1))
        parts = F.split(F.regexp_replace(text, self.regex, marked), _GAP)

        def of(parts: Column) -> Column:
            matched = F.size(parts) == len(self.groups) + 1
            return F.when(matched, value(_Groups(parts, self.groups)))

        return F.get(F.transform(F.array(parts), of), F.lit(0))


def _shape(pattern: str) -> _Shape | None:
    """None if Python has to parse it."""
    parts = elements(pattern)
    found = tuple(letters(parts))
    simple = not any(isinstance(p, Optional) for p in parts)
    named = [g.letter for g in found]
    if not (simple and named and set(named) <= _PARSED and len(set(named)) == len(named)):
        return None
    if any(g.letter == "Z" and g.count > 3 for g in found):
        return None
    regex = rf"(?i)^{parser(pattern).regex.pattern}\z"
    return _Shape(regex, found)


def parse_timestamp(text: Column, pattern: str, where: Zone) -> Column | None:
    """Milliseconds since the epoch; null where the text is not as the pattern says."""
    shape = _shape(pattern)
    if shape is None:
        return None
    offset = next((letter for letter in "XxZ" if letter in shape), None)

    def value(groups: _Groups) -> Column:
        local = _days(groups) * F.lit(MILLIS_PER_DAY).cast("bigint") + _millis(groups)
        return local if offset is None else local - _offset(groups.text(offset))

    parsed = _quicker(text, pattern, F.unix_millis, shape.parsed(text, value))
    return utc_millis(parsed, where) if offset is None else parsed


def parse_date(text: Column, pattern: str) -> Column | None:
    """Days since 1970-01-01, of a pattern that has a whole date."""
    shape = _shape(pattern)
    if shape is None or not _whole_date(shape):
        return None
    days = shape.parsed(text, lambda g: F.when(_millis(g).isNotNull(), _days(g)))
    return _quicker(text, pattern, _day_of, days)


# How many figures those have that Spark counts as Java does.
_FIGURES = {"y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2}
_FIRST, _LAST = days_of(1, 1, 1) * MILLIS_PER_DAY, days_of(10_000, 1, 1) * MILLIS_PER_DAY - 1


def _quicker(
    text: Column, pattern: str, value: Callable[[Column], Column], otherwise: Column
) -> Column:
    """By Spark's own parser, where it takes a text of figures and so cannot be mistaken.

    It is stricter, except that it takes years before the first and fewer figures of a fraction.
    """
    parts = elements(pattern)
    numeric = numeric_pattern(pattern)
    if (
        numeric is None
        or not numeric.dated
        or any(p.count != _FIGURES.get(p.letter, p.count) for p in letters(parts))
    ):
        return otherwise
    length = sum(len(p.text.encode()) for p in parts if isinstance(p, Text))
    length += sum(p.count for p in letters(parts))
    parsed = F.try_to_timestamp(text, F.lit(pattern))
    millis = F.unix_millis(parsed)
    sound = (millis >= _FIRST) & (millis <= _LAST) & (F.octet_length(text) == length)
    return F.when(sound, value(parsed)).otherwise(otherwise)


def _day_of(timestamp: Column) -> Column:
    return F.unix_date(timestamp.cast("date"))


def parse_time(text: Column, pattern: str) -> Column | None:
    """Milliseconds of the day, of a pattern that has hours and no date."""
    shape = _shape(pattern)
    if shape is None or any(letter in shape for letter in "yuMdD"):
        return None
    hours = any(letter in shape for letter in "Hk") or (
        "a" in shape and any(letter in shape for letter in "hK")
    )
    if not hours or ("s" in shape and "m" not in shape):
        return None
    return shape.parsed(text, lambda g: _millis(g).cast("int"))


def _whole_date(groups: _Groups | _Shape) -> bool:
    return ("y" in groups or "u" in groups) and ("D" in groups or ("M" in groups and "d" in groups))


def _days(groups: _Groups) -> Column:
    year = groups.year()
    if "D" in groups:
        first = F.make_date(year, F.lit(1), F.lit(1))
        day = groups.number("D", 1, 366)
        length = F.dayofyear(F.make_date(year, F.lit(12), F.lit(31)))
        return F.when(day <= length, F.unix_date(first) + day - 1)
    month, day = groups.month(1, 12), groups.number("d", 1, 31, 1)
    first = F.make_date(year, month, F.lit(1))
    length = F.dayofmonth(F.last_day(first))
    if _whole_date(groups):
        day = F.least(day, length) + day * 0  # LEAST would ignore a null
    return F.when(day <= length, F.unix_date(first) + day - 1)


def _millis(groups: _Groups) -> Column:
    minute, second = groups.number("m", 0, 59), groups.number("s", 0, 59)
    fraction = F.lit(0)
    if "S" in groups:
        fraction = F.rpad(groups.text("S"), 3, "0").cast("int")
    rest = minute * 60_000 + second * 1000 + fraction
    if "k" in groups:
        hour = groups.number("k", 1, 24) % 24
    elif "h" in groups or "K" in groups:
        hour = groups.number("h", 1, 12) % 12 if "h" in groups else groups.number("K", 0, 11)
        if "a" in groups:
            hour = hour + F.when(F.upper(groups.text("a")) == "PM", 12).otherwise(0)
    else:
        hour = groups.number("H", 0, 24)
        # 24:00 is the next midnight, and nothing is after it.
        hour = F.when((hour < 24) | (rest == 0), hour % 24)
    return hour * 3_600_000 + rest


def _offset(text: Column) -> Column:
    """Milliseconds east of UTC; null beyond 18 hours."""
    digits = F.rpad(F.regexp_replace(text, "[^0-9]", ""), 6, "0")
    hours, minutes, seconds = (F.substring(digits, at, 2).cast("int") for at in (1, 3, 5))
    total = (hours * 60 + minutes) * 60 + seconds
    sound = (minutes < 60) & (seconds < 60) & (total <= 18 * 3600)
    signed = F.when(text.startswith("-"), -total).otherwise(total)
    return F.when(F.upper(text) == "Z", F.lit(0)).otherwise(F.when(sound, signed)) * 1000


def parse_simple_date(text: Column, pattern: str) -> Column | None:
    """Days since 1970-01-01, by SimpleDateFormat's letters, of a pattern of year, month and day."""
    ready = simple_parser(pattern)
    named = {g.letter: g.count for g in ready.groups}
    if not set(named) <= set("yMd") or len(named) < len(ready.groups) or named.get("y", 4) < 3:
        return None

    def days(groups: _Groups) -> Column:
        year = groups.number("y", 0, 9_999_999, 1970)
        month = groups.month(0, 9_999_999)
        first = F.add_months(F.make_date(year, F.lit(1), F.lit(1)), month - 1)
        return F.unix_date(first) + groups.number("d", 0, 9_999_999, 1) - 1

    shape = _Shape(rf"(?is)^{ready.regex.pattern}.*\z", tuple(ready.groups))
    return _quicker(text, pattern, _day_of, shape.parsed(text, days))
