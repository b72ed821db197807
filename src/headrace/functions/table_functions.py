"""Table functions: each returns an array column, never null, whose elements become rows."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.declare.declaration import (
    CallContext,
    Fallible,
    Typed,
    call,
    overload,
    table,
)
from headrace.model.representation import spark_type
from headrace.model.types import Array, SqlType

# 2^20 rows from one are enough for anyone, and still fit into memory.
_MOST_CUBE_COLUMNS = 20


def _explode(array: Column, context: CallContext) -> Column:
    return F.coalesce(array, _no_rows(context))


def _cube(columns: Column, context: CallContext) -> Fallible:
    """One row for each set of columns that are not null: those in the set, null for the others.

    A set is a number whose bits, from the highest, stand for the columns from the first.
    """
    count = F.size(columns)
    too_many = count > _MOST_CUBE_COLUMNS

    def bit(index: Column) -> Column:
        return F.call_function("shiftleft", F.lit(1), count - 1 - index)

    bits = F.transform(columns, lambda value, i: F.when(value.isNotNull(), bit(i)).otherwise(0))
    present = F.aggregate(bits, F.lit(0), lambda sets, one: sets.bitwiseOR(one))
    sets = F.sequence(F.lit(0), F.call_function("shiftleft", F.lit(1), count) - 1)
    rows = F.transform(
        F.filter(sets, lambda one: one.bitwiseAND(present) == one),
        lambda one: F.transform(
            columns, lambda value, i: F.when(one.bitwiseAND(bit(i)) != 0, value)
        ),
    )
    return Fallible(
        F.when(columns.isNull() | too_many, _no_rows(context)).otherwise(rows),
        F.when(
            too_many,
            F.concat(
                F.lit("cube_explode: too many columns ("),
                count,
                F.lit(f"); max is {_MOST_CUBE_COLUMNS}"),
            ),
        ),
    )


def _element(types: Sequence[SqlType]) -> SqlType:
    (array,) = types
    assert isinstance(array, Array)
    return array.element


def _no_rows(context: CallContext) -> Column:
    return F.array().cast(spark_type(Array(context.return_type)))


_CUBE = (
    "All combinations of the elements of an array: 2^d rows for d elements, in which each element "
    "is there or null. Combinations that are equal because an element is null come once."
)

FUNCTIONS = (
    table(
        "EXPLODE",
        "One row for each element of an array.",
        overload("(list ARRAY<A>) -> A", _explode),
        overload("(input ARRAY<DECIMAL>) -> DECIMAL", _explode, returns=_element),
        examples=(
            call([3, None, 5], gives=[3, None, 5]),
            call(Typed(None, "ARRAY<STRING>"), gives=[]),
        ),
    ),
    table(
        "CUBE_EXPLODE",
        _CUBE,
        overload("(columns ARRAY<A>) -> ARRAY<A>", _cube),
        examples=(
            call([1, 2], gives=[[None, None], [None, 2], [1, None], [1, 2]]),
            call([1, None], gives=[[None, None], [1, None]]),
        ),
    ),
)
