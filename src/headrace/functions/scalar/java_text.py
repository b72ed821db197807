"""Values as text in Java's notation, as Spark columns."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.model.types import Decimal, SqlType, base_name


def primitive_text(type_: SqlType) -> Callable[[Column], Column] | None:
    """How Java's `toString` writes a value of the type, if it is a simple one."""
    if base_name(type_) not in ("BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "STRING"):
        return None
    return lambda value: value.cast("string")


def decimal_digits(value: Column, type_: Decimal) -> Column:
    """A decimal's digits without an exponent, which Spark writes for small ones."""
    written = value.cast("string")
    if type_.scale <= 6:
        return written
    # Those below 10^-6; with one more before the point there is nothing to shorten.
    away = F.when(value < 0, value - 1).otherwise(value + 1).cast("string")
    sign = F.when(value < 0, F.lit("-")).otherwise(F.lit(""))
    long = F.concat(sign, F.lit("0"), F.regexp_extract(away, r"(\..*)$", 1))
    return F.when(written.contains("E"), long).otherwise(written)


# Beyond these Spark's own timestamps overflow.
FURTHEST_MILLIS = 2**63 // 1_000_000 * 1000


def _time(value: Column) -> Column:
    """Hours and minutes, and seconds unless they are zero, as Java's LocalTime prints."""
    at = F.timestamp_seconds((value / 1000).cast("bigint"))
    return F.when(F.second(at) == 0, F.date_format(at, "HH:mm")).otherwise(
        F.date_format(at, "HH:mm:ss")
    )


def _timestamp(value: Column) -> Column:
    near = value.between(-FURTHEST_MILLIS, FURTHEST_MILLIS)
    return F.when(near, F.date_format(F.timestamp_millis(value), "yyyy-MM-dd'T'HH:mm:ss.SSS"))


_TIMES: dict[str, Callable[[Column], Column]] = {
    "DATE": lambda value: F.date_format(F.date_from_unix_date(value), "yyyy-MM-dd"),
    "TIME": _time,
    "TIMESTAMP": _timestamp,
}


def time_text(type_: SqlType) -> Callable[[Column], Column] | None:
    """How ksqlDB writes a date or time of the type, if it is one."""
    return _TIMES.get(base_name(type_))
