"""Values as Java writes them: what ksqlDB shows of a number or a time in a text."""

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


def plain_decimal(value: Column, type_: Decimal) -> Column:
    """A decimal's digits without an exponent, which Spark writes for small ones."""
    if type_.scale <= 6:
        return value.cast("string")
    written = value.cast("string")
    return F.when(written.contains("E"), F.format_string(f"%.{type_.scale}f", value)).otherwise(
        written
    )
