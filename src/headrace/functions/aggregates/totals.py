"""Aggregates that count and add up: COUNT, SUM, SUM_LIST, AVG, COUNT_DISTINCT."""

from __future__ import annotations

import decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.aggregates import sketch
from headrace.functions.aggregates.java_arithmetic import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    wrap_int,
    wrap_long,
)
from headrace.functions.aggregates.steps import Aggregation, ShowsState
from headrace.functions.declare.declaration import (
    CallContext,
    aggregate,
    aggregate_overload,
    call,
)
from headrace.model.types import BIGINT, DOUBLE, INTEGER, Decimal, SqlType


class Count(ShowsState):
    def initialize(self) -> int:
        return 0

    def add(self, state: int, value: object) -> int:
        return state if value is None else state + 1

    def undo(self, state: int, value: object) -> int:
        return state if value is None else state - 1

    def merge(self, left: int, right: int) -> int:
        return left + right


class IntegerSum(ShowsState):
    """INTEGER stays INTEGER, and wraps around as Java's does."""

    low, high = INT_MIN, INT_MAX
    wrap = staticmethod(wrap_int)

    def initialize(self) -> int:
        return 0

    def add(self, state: int, value: int | None) -> int:
        if value is None:
            return state
        total = state + value
        return total if self.low <= total <= self.high else self.wrap(total)

    def undo(self, state: int, value: int | None) -> int:
        return state if value is None else self.wrap(state - value)

    def merge(self, left: int, right: int) -> int:
        return self.wrap(left + right)


class LongSum(IntegerSum):
    low, high = LONG_MIN, LONG_MAX
    wrap = staticmethod(wrap_long)


class DoubleSum(ShowsState):
    def initialize(self) -> float:
        return 0.0

    def add(self, state: float, value: float | None) -> float:
        return state if value is None else state + value

    def undo(self, state: float, value: float | None) -> float:
        return state if value is None else state - value

    def merge(self, left: float, right: float) -> float:
        return left + right


class DecimalSum(ShowsState):
    """The sum has the column's precision and scale; a row that overflows them is an error."""

    def __init__(self, context: CallContext) -> None:
        super().__init__(context)
        type_ = context.arg_types[0]
        assert isinstance(type_, Decimal)
        self.precision, self.scale = type_.precision, type_.scale
        self.limit = decimal.Decimal(10) ** (self.precision - self.scale)
        self.context = decimal.Context(prec=self.precision, rounding=decimal.ROUND_HALF_UP)

    def initialize(self) -> decimal.Decimal:
        return decimal.Decimal((0, (0,), -self.scale))

    def add(self, state: decimal.Decimal, value: decimal.Decimal | None) -> decimal.Decimal:
        if value is None:
            return state
        total = self.context.add(state, value)
        if total.copy_abs() >= self.limit:
            raise OverflowError(
                f"Numeric field overflow: A field with precision {self.precision} and scale "
                f"{self.scale} must round to an absolute value less than "
                f"10^{self.precision - self.scale}. Got {total:f}"
            )
        return total

    def undo(self, state: decimal.Decimal, value: decimal.Decimal | None) -> decimal.Decimal:
        return state if value is None else self.context.subtract(state, value)

    def merge(self, left: decimal.Decimal, right: decimal.Decimal) -> decimal.Decimal:
        return self.context.add(left, right)


class IntegerListSum(IntegerSum):
    def add(self, state: int, value: list[int | None] | None) -> int:  # type: ignore[override]
        return state if value is None else self.wrap(state + _total(value))

    def undo(self, state: int, value: list[int | None] | None) -> int:  # type: ignore[override]
        return state if value is None else self.wrap(state - _total(value))


class LongListSum(IntegerListSum):
    low, high = LONG_MIN, LONG_MAX
    wrap = staticmethod(wrap_long)


class DoubleListSum(DoubleSum):
    def add(self, state: float, value: list[float | None] | None) -> float:  # type: ignore[override]
        return state if value is None else state + _total(value)

    def undo(self, state: float, value: list[float | None] | None) -> float:  # type: ignore[override]
        return state if value is None else state - _total(value)


def _total(values: list[Any]) -> Any:
    total = 0
    for value in values:
        if value is not None:
            total += value
    return total


class Average(Aggregation):
    """State `[sum, count]`. The sum has the column's type, and wraps around if that does."""

    def __init__(self, context: CallContext) -> None:
        self.total = _SUMS[context.arg_types[0]](context)

    def initialize(self) -> tuple[float, int]:
        return self.total.initialize(), 0

    def add(self, state: tuple[Any, int], value: Any) -> tuple[Any, int]:
        if value is None:
            return state
        return self.total.add(state[0], value), state[1] + 1

    def undo(self, state: tuple[Any, int], value: Any) -> tuple[Any, int]:
        if value is None:
            return state
        return self.total.undo(state[0], value), state[1] - 1

    def merge(self, left: tuple[Any, int], right: tuple[Any, int]) -> tuple[Any, int]:
        return self.total.merge(left[0], right[0]), left[1] + right[1]

    def result(self, state: tuple[Any, int]) -> float:
        total, count = state
        return float(total) / count if count else 0.0


_SUMS: dict[SqlType, type[IntegerSum] | type[DoubleSum]] = {
    INTEGER: IntegerSum,
    BIGINT: LongSum,
    DOUBLE: DoubleSum,
}


class CountDistinct(Aggregation):
    """An estimate; see `sketch`."""

    def __init__(self, context: CallContext) -> None:
        self.hash = sketch.hasher(context.arg_types[0])

    def initialize(self) -> sketch.State:
        return sketch.new()

    def add(self, state: sketch.State, value: object) -> sketch.State:
        return state if value is None else sketch.offer(state, self.hash(value))

    def merge(self, left: sketch.State, right: sketch.State) -> sketch.State:
        return sketch.merge(left, right)

    def result(self, state: sketch.State) -> int:
        return sketch.cardinality(state)


# Spark's sums of integers wrap around in 64 bits (ANSI mode is off); the low 32 of these are what
# Java's 32-bit sum would be. A group without a value has the sum 0 in ksqlDB and null in Spark.


def _sum(value: Column, context: CallContext) -> Column:
    return F.coalesce(F.sum(value).cast(_SPARK_NAMES[context.return_type]), F.lit(0))


def _sum_list(values: Column, context: CallContext) -> Column:
    wide = "double" if context.return_type == DOUBLE else "bigint"
    zero = F.lit(0).cast(wide)
    total = F.aggregate(values, zero, lambda sum_, item: sum_ + F.coalesce(item.cast(wide), zero))
    return _sum(total, context)


def _avg(value: Column, context: CallContext) -> Column:
    total = F.sum(value).cast(_SPARK_NAMES[context.arg_types[0]]).cast("double")
    return F.coalesce(total / F.count(value), F.lit(0.0))


_SPARK_NAMES: dict[SqlType, str] = {INTEGER: "int", BIGINT: "bigint", DOUBLE: "double"}

_COUNT = "Counts the rows of a group, or those of them that have a value."
_SUM = "Adds up the values of a column. Nulls are left out."
_SUM_LIST = "Adds up the elements of the arrays in a column. Nulls are left out."
_AVG = (
    "The average of a column's values: their sum divided by their number, 0.0 where there is none."
)
_DISTINCT = (
    "The number of different values in a group. It is an estimate (HyperLogLog), with a typical "
    "error of less than 1 %."
)

FUNCTIONS = (
    aggregate(
        "COUNT",
        _COUNT,
        aggregate_overload("(val1 A) -> BIGINT", Count, native=F.count),
        simple_state=True,
        examples=(call([3, None, 5], gives=2),),
    ),
    aggregate(
        "SUM",
        _SUM,
        aggregate_overload("(val1 INTEGER) -> INTEGER", IntegerSum, native=_sum),
        aggregate_overload("(val1 BIGINT) -> BIGINT", LongSum, native=_sum),
        aggregate_overload("(val1 DOUBLE) -> DOUBLE", DoubleSum, native=_sum),
        aggregate_overload(
            "(val1 DECIMAL) -> DECIMAL",
            DecimalSum,
            returns=lambda types: types[0],
            description="The sum has the precision and scale of the column; a row that would "
            "overflow them is left out and reported.",
        ),
        simple_state=True,
        examples=(call([3, None, 5], gives=8), call([1.5, 2.5], gives=4.0)),
    ),
    aggregate(
        "SUM_LIST",
        _SUM_LIST,
        aggregate_overload("(val1 ARRAY<INTEGER>) -> INTEGER", IntegerListSum, native=_sum_list),
        aggregate_overload("(val1 ARRAY<BIGINT>) -> BIGINT", LongListSum, native=_sum_list),
        aggregate_overload("(val1 ARRAY<DOUBLE>) -> DOUBLE", DoubleListSum, native=_sum_list),
        simple_state=True,
        examples=(call([[1, 2], [3, None]], gives=6),),
    ),
    aggregate(
        "AVG",
        _AVG,
        aggregate_overload("(val1 INTEGER) -> DOUBLE", Average, native=_avg),
        aggregate_overload("(val1 BIGINT) -> DOUBLE", Average, native=_avg),
        aggregate_overload("(val1 DOUBLE) -> DOUBLE", Average, native=_avg),
        examples=(call([1, 2, None], gives=1.5),),
    ),
    aggregate(
        "COUNT_DISTINCT",
        _DISTINCT,
        aggregate_overload("(val1 A) -> BIGINT", CountDistinct),
        examples=(call(["a", "b", "a", None], gives=2),),
    ),
)
