"""Dates and times to texts, by a pattern: a row of small functions, one for each element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from headrace.functions.scalar.time.patterns import (
    MONTHS,
    NANOS_PER_MILLI,
    WEEKDAYS,
    Element,
    Letter,
    Optional,
    Text,
    date_of,
    days_of,
    elements,
)
from headrace.functions.scalar.time.zones import Zone
from headrace.model.types import MILLIS_PER_DAY


class Moment(NamedTuple):
    """What is written: a date (days), a time (milliseconds of the day), or both at a zone."""

    days: int | None
    millis: int | None
    zone: Zone | None = None
    offset: int = 0  # in seconds

    def date(self) -> tuple[int, int, int]:
        return date_of(self._days("YearOfEra"))

    def _days(self, field: str) -> int:
        if self.days is None:
            raise ValueError(f"Unsupported field: {field}")
        return self.days

    def clock(self, field: str) -> int:
        if self.millis is None:
            raise ValueError(f"Unsupported field: {field}")
        return self.millis

    def zoned(self) -> Zone:
        if self.zone is None:
            raise ValueError("Unable to extract ZoneId from temporal")
        return self.zone

    def shift(self) -> int:
        if self.zone is None:
            raise ValueError("Unsupported field: OffsetSeconds")
        return self.offset


def at(millis: int, where: Zone) -> Moment:
    """An instant as it is at a zone."""
    offset = where.offset(millis)
    days, rest = divmod(millis + offset * 1000, MILLIS_PER_DAY)
    return Moment(days, rest, where, offset)


Writer = Callable[[Moment], str]


@lru_cache(maxsize=1000)
def writer(pattern: str) -> Writer:
    return _row(elements(pattern))


def _row(parts: tuple[Element, ...]) -> Writer:
    writers = tuple(map(_writer, parts))
    return lambda moment: "".join([write(moment) for write in writers])


def _writer(part: Element) -> Writer:
    match part:
        case Text(text):
            return lambda moment: text
        case Optional(inner):
            return _if_possible(_row(inner))
        case Letter(letter, count):
            return _WRITERS[letter](count)
    raise TypeError(part)


def _if_possible(write: Writer) -> Writer:
    def written(moment: Moment) -> str:
        try:
            return write(moment)
        except ValueError:
            return ""

    return written


def _year_writer(count: int, of_era: bool) -> Writer:
    def write(moment: Moment) -> str:
        year = moment.date()[0]
        value = 1 - year if of_era and year < 1 else year
        if count == 2:
            return f"{abs(value) % 100:02d}"
        digits = str(abs(value)).rjust(count, "0")
        if value < 0:
            return "-" + digits
        return "+" + digits if count >= 4 and len(digits) > count else digits

    return write


def _value(get: Callable[[Moment], int], count: int) -> Writer:
    if count == 1:
        return lambda moment: str(get(moment))
    shown = f"%0{count}d"
    return lambda moment: shown % get(moment)


def _text_or(get: Callable[[Moment], int], names: Sequence[str], count: int) -> Writer:
    """A number from 1, or its name: short, in full, or as a letter."""
    if count < 3:
        return _value(get, count)
    length = {3: 3, 4: None, 5: 1}[count]
    return lambda moment: names[get(moment) - 1][:length]


def _of_clock(field: str, divisor: int, modulus: int) -> Callable[[int], Writer]:
    return lambda count: _value(lambda m: m.clock(field) // divisor % modulus, count)


def _of_hour(field: str, show: Callable[[int], int]) -> Callable[[int], Writer]:
    return lambda count: _value(lambda m: show(m.clock(field) // 3_600_000), count)


def _weekday(moment: Moment) -> int:
    """From 1, Monday."""
    return (moment._days("DayOfWeek") + 3) % 7 + 1


def _local_weekday(moment: Moment) -> int:
    return _weekday(moment) % 7 + 1


def _day_of_year(moment: Moment) -> int:
    return moment._days("DayOfYear") - days_of(moment.date()[0], 1, 1) + 1


def _quarter(moment: Moment) -> int:
    return (moment.date()[1] + 2) // 3


def _week(days: int, first: int) -> int:
    """The week, from 1, of a date in a year or month that begins at `first`; weeks begin Sunday."""
    return (days - first + (first + 4) % 7) // 7 + 1


def _week_year(moment: Moment) -> tuple[int, int]:
    days = moment._days("WeekBasedYear")
    year = moment.date()[0]
    following = days_of(year + 1, 1, 1)
    if days >= following - (following + 4) % 7:
        return year + 1, 1
    return year, _week(days, days_of(year, 1, 1))


def _week_of_month(moment: Moment) -> int:
    year, month, _ = moment.date()
    return _week(moment._days("WeekOfMonth"), days_of(year, month, 1))


_QUARTERS = ["1st quarter", "2nd quarter", "3rd quarter", "4th quarter"]


def _quarter_writer(count: int) -> Writer:
    if count < 3:
        return _value(_quarter, count)
    if count == 3:
        return lambda moment: f"Q{_quarter(moment)}"
    return lambda moment: _QUARTERS[_quarter(moment) - 1][: None if count == 4 else 1]


def _local_weekday_writer(count: int) -> Writer:
    if count < 3:
        return _value(_local_weekday, count)
    return _text_or(_weekday, WEEKDAYS, count)


def _era_writer(count: int) -> Writer:
    names = {4: ("Before Christ", "Anno Domini"), 5: ("B", "A")}.get(count, ("BC", "AD"))
    return lambda moment: names[moment.date()[0] > 0]


def _week_year_writer(count: int) -> Writer:
    if count == 2:
        return lambda moment: f"{_week_year(moment)[0] % 100:02d}"
    return _value(lambda moment: _week_year(moment)[0], count)


def _offset_text(seconds: int, count: int, zero: str) -> str:
    if seconds == 0 and zero:
        return zero
    sign, rest = "-" if seconds < 0 else "+", abs(seconds)
    hours, minutes, left = rest // 3600, rest // 60 % 60, rest % 60
    colon = ":" if count in (3, 5) else ""
    text = f"{sign}{hours:02d}"
    if count > 1 or minutes:
        text += f"{colon}{minutes:02d}"
    if count > 3 and left:
        text += f"{colon}{left:02d}"
    return text


def _offset_writer(zero: str) -> Callable[[int], Writer]:
    return lambda count: lambda moment: _offset_text(moment.shift(), count, zero)


def _localized_offset(moment: Moment, full: bool) -> str:
    seconds = moment.shift()
    if seconds == 0:
        return "GMT"
    if full:
        return "GMT" + _offset_text(seconds, 5, "")
    sign, rest = "-" if seconds < 0 else "+", abs(seconds)
    text = f"GMT{sign}{rest // 3600}"
    return text + (f":{rest // 60 % 60:02d}" if rest % 3600 else "")


def _big_z_writer(count: int) -> Writer:
    if count < 4:
        return _offset_writer("+0000")(2)
    if count == 4:
        return lambda moment: _localized_offset(moment, full=True)
    return _offset_writer("Z")(5)


def _half(moment: Moment) -> str:
    return "PM" if moment.clock("AmPmOfDay") >= MILLIS_PER_DAY // 2 else "AM"


def _zone_name(moment: Moment) -> str:
    days, millis = moment.days or 0, moment.millis or 0
    return moment.zoned().name(days * MILLIS_PER_DAY + millis - moment.offset * 1000)


_WRITERS: dict[str, Callable[[int], Writer]] = {
    "G": _era_writer,
    "u": lambda n: _year_writer(n, of_era=False),
    "y": lambda n: _year_writer(n, of_era=True),
    "D": lambda n: _value(_day_of_year, n),
    **dict.fromkeys("ML", lambda n: _text_or(lambda m: m.date()[1], MONTHS, n)),
    "d": lambda n: _value(lambda m: m.date()[2], n),
    **dict.fromkeys("Qq", _quarter_writer),
    "Y": _week_year_writer,
    "w": lambda n: _value(lambda m: _week_year(m)[1], n),
    "W": lambda n: _value(_week_of_month, n),
    "E": lambda n: _text_or(_weekday, WEEKDAYS, max(n, 3)),
    **dict.fromkeys("ec", _local_weekday_writer),
    "F": lambda n: _value(lambda m: (m.date()[2] - 1) // 7 + 1, n),
    **dict.fromkeys("aB", lambda n: _half),
    "H": _of_hour("HourOfDay", lambda h: h),
    "h": _of_hour("ClockHourOfAmPm", lambda h: (h - 1) % 12 + 1),
    "K": _of_hour("HourOfAmPm", lambda h: h % 12),
    "k": _of_hour("ClockHourOfDay", lambda h: (h - 1) % 24 + 1),
    "m": _of_clock("MinuteOfHour", 60_000, 60),
    "s": _of_clock("SecondOfMinute", 1000, 60),
    "S": lambda n: lambda m: f"{m.clock('NanoOfSecond') % 1000:03d}".ljust(9, "0")[:n],
    "A": _of_clock("MilliOfDay", 1, MILLIS_PER_DAY),
    "n": lambda n: _value(lambda m: m.clock("NanoOfSecond") % 1000 * NANOS_PER_MILLI, n),
    "N": lambda n: _value(lambda m: m.clock("NanoOfDay") * NANOS_PER_MILLI, n),
    "V": lambda n: lambda m: m.zoned().id,
    **dict.fromkeys("vz", lambda n: _zone_name),
    "O": lambda n: lambda m: _localized_offset(m, full=n == 4),
    "X": _offset_writer("Z"),
    "x": _offset_writer(""),
    "Z": _big_z_writer,
}
