"""Dates, times and timestamps: reading, writing, adding to them.

DATE, TIME and TIMESTAMP are integers (days, milliseconds of the day, milliseconds since the epoch).
A constant pattern becomes Spark columns where that is possible, all else runs as Python in batches.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from headrace.functions.declare.declaration import (
    CallContext,
    Category,
    Example,
    Fallible,
    Function,
    Typed,
    call,
    failing,
    overload,
    scalar,
    varying,
)
from headrace.functions.scalar.batches import batched
from headrace.functions.scalar.columns import identity, java, text
from headrace.functions.scalar.time import columns as native
from headrace.functions.scalar.time.rows import (
    convert_zone,
    format_date,
    format_time,
    format_timestamp,
    parse_date,
    parse_local_date,
    parse_time,
    parse_timestamp,
)
from headrace.functions.scalar.time.zones import Zone, zone
from headrace.model.types import MILLIS_PER_DAY

_TIME = Category.DATE_TIME

_INT, _LONG, _TEXT = T.IntegerType(), T.LongType(), T.StringType()


# ----------------------------------------------------------------------- constants of a call


def _pattern(context: CallContext, index: int) -> str | None:
    known = context.literal(index)
    return known if isinstance(known, str) else None


def _zone(context: CallContext, index: int) -> Zone | None:
    """The zone of a constant argument, if Java and Python both know it."""
    known = context.literal(index)
    if not isinstance(known, str):
        return None
    try:
        java().java.time.ZoneId.of(known)
        return zone(known)
    except Exception:  # whatever Java or Python says of it, each row will say it again
        return None


def _try(form: Callable[..., Column | None], *args: object) -> Column | None:
    """A pattern that is none has no columns; what is wrong with it is said row by row."""
    try:
        return form(*args)
    except ValueError:
        return None


# ------------------------------------------------------------------------------------- forms


def _could_not(what: str, value: Column, pattern: str) -> Column:
    """What Python says too where a text does not match."""
    return text(
        f"Failed to parse {what} '",
        value,
        f"' with formatter '{pattern}': Text '",
        value,
        "' could not be parsed",
    )


def _format_timestamp(default: str) -> Callable[..., Fallible]:
    def form(
        value: Column, pattern: Column, where: Column | None = None, *, context: CallContext
    ) -> Fallible:
        known = _pattern(context, 1)
        there = zone(default) if where is None else _zone(context, 2)
        if known is not None and there is not None:
            written = _try(native.format_timestamp, value, known, there)
            if written is not None:
                return Fallible(written)
        name = F.lit(default) if where is None else where
        return batched(format_timestamp, _TEXT, (value, pattern, name))

    return form


def _format(
    columns: Callable[[Column, str], Column | None], python: Callable[..., str]
) -> Callable[..., Fallible]:
    def form(value: Column, pattern: Column, context: CallContext) -> Fallible:
        known = _pattern(context, 1)
        written = None if known is None else _try(columns, value, known)
        return (
            Fallible(written) if written is not None else batched(python, _TEXT, (value, pattern))
        )

    return form


def _parse_timestamp(default: str, null_fails: bool) -> Callable[..., Fallible]:
    def form(
        value: Column, pattern: Column, where: Column | None = None, *, context: CallContext
    ) -> Fallible:
        known = _pattern(context, 1)
        there = zone(default) if where is None else _zone(context, 2)
        if known is not None and there is not None:
            parsed = _try(native.parse_timestamp, value, known, there)
            if parsed is not None:
                failed = parsed.isNull() if null_fails else value.isNotNull() & parsed.isNull()
                return Fallible(parsed, F.when(failed, _could_not("timestamp", value, known)))
        name = F.lit(default) if where is None else where
        return batched(parse_timestamp, _LONG, (value, pattern, name), nulls=null_fails)

    return form


def _parse(
    what: str,
    columns: Callable[[Column, str], Column | None],
    python: Callable[..., int],
    null_fails: bool = False,
) -> Callable[..., Fallible]:
    def form(value: Column, pattern: Column, context: CallContext) -> Fallible:
        known = _pattern(context, 1)
        parsed = None if known is None else _try(columns, value, known)
        if parsed is None or known is None:
            return batched(python, _INT, (value, pattern), nulls=null_fails)
        failed = parsed.isNull() if null_fails else value.isNotNull() & parsed.isNull()
        return Fallible(parsed, F.when(failed, _could_not(what, value, known)))

    return form


def _convert_zone(value: Column, source: Column, target: Column, context: CallContext) -> Fallible:
    here, there = _zone(context, 1), _zone(context, 2)
    if here is None or there is None:
        return batched(convert_zone, _LONG, (value, source, target))
    shift = native.local_millis(value, there) - native.local_millis(value, here)
    return Fallible(value + shift)


def _shift_date(sign: int) -> Callable[..., Column]:
    def form(unit: Column, interval: Column, date: Column) -> Column:
        millis = date.cast("bigint") * MILLIS_PER_DAY + unit * interval * sign
        return F.call_function("div", millis, F.lit(MILLIS_PER_DAY).cast("bigint")).cast("int")

    return form


def _shift_time(sign: int) -> Callable[..., Column]:
    def form(unit: Column, interval: Column, time: Column) -> Column:
        return F.pmod(time + unit * interval * sign, F.lit(MILLIS_PER_DAY).cast("bigint")).cast(
            "int"
        )

    return form


def _shift_timestamp(sign: int) -> Callable[..., Column]:
    def form(unit: Column, interval: Column, timestamp: Column) -> Column:
        return timestamp + unit * interval * sign

    return form


def _now() -> Column:
    return F.unix_millis(F.current_timestamp())


def _today() -> Column:
    return F.unix_date(F.current_date())


# ------------------------------------------------------------------------------- declarations

_SHIFT_DOC = {
    "unit": "A unit of time, such as DAYS or HOURS.",
    "interval": "How many of them.",
}
_FORMAT_DOC = {
    "formatPattern": "Letters as java.time.format.DateTimeFormatter has them.",
    "timeZone": "A time zone, such as UTC or America/Los_Angeles.",
}
_HOURS, _DAYS = Typed(3_600_000, "INTERVAL"), Typed(MILLIS_PER_DAY, "INTERVAL")


def _shifting(
    name: str, verb: str, type_: str, form: Callable[..., Column], *examples: Example
) -> Function:
    what = type_.lower()
    return scalar(
        name,
        f"A {type_} with a duration {verb}.",
        overload(
            f"(unit INTERVAL, interval INTEGER, {what} {type_}) -> {type_}",
            form,
            parameters=_SHIFT_DOC,
        ),
        category=_TIME,
        examples=examples,
    )


FUNCTIONS = (
    scalar(
        "CONVERT_TZ",
        "A TIMESTAMP taken from one time zone to another: what the clock shows there.",
        overload(
            "(timestamp TIMESTAMP, fromTimeZone STRING, toTimeZone STRING) -> TIMESTAMP",
            _convert_zone,
        ),
        category=_TIME,
        examples=(
            call(
                Typed(0, "TIMESTAMP"),
                "America/Los_Angeles",
                "America/New_York",
                gives=Typed(10_800_000, "TIMESTAMP"),
            ),
            call(Typed(0, "TIMESTAMP"), "+0200", "+0500", gives=Typed(10_800_000, "TIMESTAMP")),
            failing(
                Typed(0, "TIMESTAMP"),
                "UTC",
                "Mars/Olympus",
                error="Invalid time zone: Unknown time-zone ID: Mars/Olympus",
            ),
        ),
    ),
    _shifting(
        "DATEADD",
        "added",
        "DATE",
        _shift_date(1),
        call(_DAYS, 1, Typed(9, "DATE"), gives=Typed(10, "DATE")),
        call(_HOURS, 25, Typed(9, "DATE"), gives=Typed(10, "DATE")),
    ),
    _shifting(
        "DATESUB",
        "taken from it",
        "DATE",
        _shift_date(-1),
        call(_DAYS, 1, Typed(9, "DATE"), gives=Typed(8, "DATE")),
    ),
    scalar(
        "DATETOSTRING",
        "A number of days since 1970-01-01 as text.",
        overload(
            "(epochDays INTEGER!, formatPattern STRING) -> STRING",
            _format(native.format_date, format_date),
            parameters=_FORMAT_DOC,
        ),
        category=_TIME,
        examples=(
            call(18765, "yyyy-MM-dd", gives="2021-05-18"),
            call(18765, "[yyyy]DDD", gives="2021138"),
            failing(
                1,
                "HH",
                error="Failed to format date 1 with formatter 'HH': Unsupported field: HourOfDay",
            ),
            failing(
                1,
                "o",
                error="Failed to format date 1 with formatter 'o': Unknown pattern letter: o",
            ),
        ),
    ),
    scalar(
        "FORMAT_DATE",
        "A DATE as text.",
        overload(
            "(date DATE, formatPattern STRING) -> STRING",
            _format(native.format_date, format_date),
            parameters=_FORMAT_DOC,
        ),
        category=_TIME,
        examples=(
            call(Typed(18765, "DATE"), "EEEE, d MMM yy", gives="Tuesday, 18 May 21"),
            call(Typed(-1, "DATE"), "yyyy'/'MM''dd", gives="1969/12'31"),
        ),
    ),
    scalar(
        "FORMAT_TIME",
        "A TIME as text.",
        overload(
            "(time TIME, formatPattern STRING) -> STRING",
            _format(native.format_time, format_time),
            parameters=_FORMAT_DOC,
        ),
        category=_TIME,
        examples=(
            call(Typed(45_296_789, "TIME"), "HH:mm:ss.SSS", gives="12:34:56.789"),
            call(Typed(45_296_789, "TIME"), "h a", gives="12 PM"),
        ),
    ),
    scalar(
        "FORMAT_TIMESTAMP",
        "A TIMESTAMP as text, in UTC or at a time zone.",
        overload(
            "(timestamp TIMESTAMP, formatPattern STRING) -> STRING",
            _format_timestamp("GMT"),
            parameters=_FORMAT_DOC,
        ),
        overload(
            "(timestamp TIMESTAMP, formatPattern STRING, timeZone STRING) -> STRING",
            _format_timestamp("GMT"),
            parameters=_FORMAT_DOC,
        ),
        category=_TIME,
        examples=(
            call(
                Typed(1_605_927_509_166, "TIMESTAMP"),
                "yyyy-MM-dd'T'HH:mm:ss.SSSX",
                gives="2020-11-21T02:58:29.166Z",
            ),
            call(
                Typed(1_605_927_509_166, "TIMESTAMP"),
                "yyyy-MM-dd HH:mm:ss zzz",
                "America/Los_Angeles",
                gives="2020-11-20 18:58:29 PST",
            ),
            call(
                Typed(1_605_927_509_166, "TIMESTAMP"),
                "d/M/yy h:mm a",
                "Asia/Kolkata",
                gives="21/11/20 8:28 AM",
            ),
        ),
    ),
    scalar(
        "FROM_DAYS",
        "The DATE that is a number of days after 1970-01-01.",
        overload("(days INTEGER!) -> DATE", identity),
        category=_TIME,
        examples=(call(50, gives=Typed(50, "DATE")),),
    ),
    scalar(
        "FROM_UNIXTIME",
        "The TIMESTAMP that is a number of milliseconds after 1970-01-01T00:00 UTC.",
        overload("(epochMilli BIGINT) -> TIMESTAMP", identity),
        category=_TIME,
        examples=(call(50, gives=Typed(50, "TIMESTAMP")),),
    ),
    scalar(
        "PARSE_DATE",
        "The DATE that a text spells.",
        overload(
            "(formattedDate STRING, formatPattern STRING) -> DATE",
            _parse("date", native.parse_simple_date, parse_date),
            parameters={"formatPattern": "Letters as java.text.SimpleDateFormat has them."},
        ),
        category=_TIME,
        examples=(
            call("2021-05-18", "yyyy-MM-dd", gives=Typed(18765, "DATE")),
            call("18 May 2021", "dd MMM yyyy", gives=Typed(18765, "DATE")),
            call("20210518", "yyyyMMdd", gives=Typed(18765, "DATE")),
            call("2021-02-30", "yyyy-MM-dd", gives=Typed(18688, "DATE")),
            failing(
                "2021-05-18 01",
                "yyyy-MM-dd HH",
                error="Failed to parse date '2021-05-18 01' with formatter 'yyyy-MM-dd HH': Date "
                "format contains time field.",
            ),
        ),
    ),
    scalar(
        "PARSE_TIME",
        "The TIME that a text spells.",
        overload(
            "(formattedTime STRING, formatPattern STRING) -> TIME",
            _parse("time", native.parse_time, parse_time),
            parameters=_FORMAT_DOC,
        ),
        category=_TIME,
        examples=(
            call("12:34:56.789", "HH:mm:ss.SSS", gives=Typed(45_296_789, "TIME")),
            call("1 pm", "h a", gives=Typed(46_800_000, "TIME")),
            failing(
                "12:99",
                "HH:mm:X",
                error="Failed to parse time '12:99' with formatter 'HH:mm:X': Text '12:99' could "
                "not be parsed",
            ),
            failing(
                "2020",
                "yyyy",
                error="Failed to parse time '2020' with formatter 'yyyy': Time format contains "
                "date field.",
            ),
        ),
    ),
    scalar(
        "PARSE_TIMESTAMP",
        "The TIMESTAMP that a text spells, in UTC or at a time zone unless it names one.",
        overload(
            "(formattedTimestamp STRING, formatPattern STRING) -> TIMESTAMP",
            _parse_timestamp("GMT", null_fails=False),
            parameters=_FORMAT_DOC,
        ),
        overload(
            "(formattedTimestamp STRING, formatPattern STRING, timeZone STRING) -> TIMESTAMP",
            _parse_timestamp("GMT", null_fails=False),
            parameters=_FORMAT_DOC,
        ),
        category=_TIME,
        examples=(
            call(
                "2020-11-21T02:58:29.166",
                "yyyy-MM-dd'T'HH:mm:ss.SSS",
                gives=Typed(1_605_927_509_166, "TIMESTAMP"),
            ),
            call(
                "20/nov/2020 18:58:29",
                "dd/MMM/yyyy HH:mm:ss",
                "America/Los_Angeles",
                gives=Typed(1_605_927_509_000, "TIMESTAMP"),
            ),
            call(
                "2020-11-20 18:58:29 PST",
                "yyyy-MM-dd HH:mm:ss zzz",
                gives=Typed(1_605_927_509_000, "TIMESTAMP"),
            ),
            call("2021-02-30", "yyyy-MM-dd", gives=Typed(1_614_470_400_000, "TIMESTAMP")),
            failing(
                "nonsense",
                "yyyy",
                error="Failed to parse timestamp 'nonsense' with formatter 'yyyy': Text 'nonsense' "
                "could not be parsed",
            ),
        ),
    ),
    scalar(
        "STRINGTODATE",
        "The number of days since 1970-01-01 of the date that a text spells.",
        overload(
            "(formattedDate STRING, formatPattern STRING) -> INTEGER",
            _parse("date", native.parse_date, parse_local_date, null_fails=True),
            parameters=_FORMAT_DOC,
        ),
        category=_TIME,
        examples=(
            call("18-05-2021", "dd-MM-yyyy", gives=18765),
            call("2021138", "yyyyDDD", gives=18765),
        ),
    ),
    scalar(
        "STRINGTOTIMESTAMP",
        "The milliseconds since 1970-01-01T00:00 UTC of the timestamp that a text spells.",
        overload(
            "(formattedTimestamp STRING, formatPattern STRING) -> BIGINT",
            _parse_timestamp("UTC", null_fails=True),
            parameters=_FORMAT_DOC,
        ),
        overload(
            "(formattedTimestamp STRING, formatPattern STRING, timeZone STRING) -> BIGINT",
            _parse_timestamp("UTC", null_fails=True),
            parameters=_FORMAT_DOC,
        ),
        category=_TIME,
        examples=(
            call("2020-11-21T02:58:29.1+01:30", "yyyy-MM-dd'T'HH:mm:ss.SXXX", gives=1605922109100),
            call("1970", "yyyy", gives=Typed(0, "BIGINT")),
            call("13:00", "HH:mm", "Europe/Paris", gives=Typed(43_200_000, "BIGINT")),
        ),
    ),
    _shifting(
        "TIMEADD",
        "added",
        "TIME",
        _shift_time(1),
        call(_HOURS, 23, Typed(7_200_000, "TIME"), gives=Typed(3_600_000, "TIME")),
    ),
    _shifting(
        "TIMESTAMPADD",
        "added",
        "TIMESTAMP",
        _shift_timestamp(1),
        call(_DAYS, 1, Typed(5, "TIMESTAMP"), gives=Typed(86_400_005, "TIMESTAMP")),
    ),
    _shifting(
        "TIMESTAMPSUB",
        "taken from it",
        "TIMESTAMP",
        _shift_timestamp(-1),
        call(_HOURS, 1, Typed(5, "TIMESTAMP"), gives=Typed(-3_599_995, "TIMESTAMP")),
    ),
    scalar(
        "TIMESTAMPTOSTRING",
        "Milliseconds since 1970-01-01T00:00 UTC as text, in UTC or at a time zone.",
        overload(
            "(epochMilli BIGINT!, formatPattern STRING) -> STRING",
            _format_timestamp("UTC"),
            parameters=_FORMAT_DOC,
        ),
        overload(
            "(epochMilli BIGINT!, formatPattern STRING, timeZone STRING) -> STRING",
            _format_timestamp("UTC"),
            parameters=_FORMAT_DOC,
        ),
        category=_TIME,
        examples=(
            call(1_605_927_509_166, "yyyy-MM-dd HH:mm:ss.SSS", gives="2020-11-21 02:58:29.166"),
            call(1_605_927_509_166, "e.w.YYYY G Q X O", "-08:00", gives="6.47.2020 AD 4 -08 GMT-8"),
            failing(
                1_605_927_509_166,
                "yyyy",
                "Mars/Olympus",
                error="Failed to format timestamp 1605927509166 at timeZone 'Mars/Olympus' with "
                "formatter 'yyyy': Unknown time-zone ID: Mars/Olympus",
            ),
        ),
    ),
    _shifting(
        "TIMESUB",
        "taken from it",
        "TIME",
        _shift_time(-1),
        call(_HOURS, 3, Typed(7_200_000, "TIME"), gives=Typed(82_800_000, "TIME")),
    ),
    scalar(
        "UNIX_DATE",
        "The number of days since 1970-01-01, of today or of a DATE.",
        overload("() -> INTEGER", _today),
        overload("(date DATE) -> INTEGER", identity),
        category=_TIME,
        examples=(varying(), call(Typed(50, "DATE"), gives=50)),
    ),
    scalar(
        "UNIX_TIMESTAMP",
        "The milliseconds since 1970-01-01T00:00 UTC, of now or of a TIMESTAMP.",
        overload("() -> BIGINT", _now),
        overload("(timestamp TIMESTAMP) -> BIGINT", identity),
        category=_TIME,
        examples=(varying(), call(Typed(50, "TIMESTAMP"), gives=Typed(50, "BIGINT"))),
    ),
)
