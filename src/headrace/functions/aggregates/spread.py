"""Statistical aggregates: STDDEV_SAMP, STDDEV_SAMPLE, STDDEV_POP, CORRELATION."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from headrace.functions.aggregates.java_arithmetic import divide, square_root, wrap_int, wrap_long
from headrace.functions.aggregates.steps import Aggregation
from headrace.functions.declare.declaration import (
    CallContext,
    Overload,
    aggregate,
    aggregate_overload,
    call,
)
from headrace.model.types import BIGINT, DOUBLE, INTEGER, SqlType

Moments = tuple[Any, int, float]


class Variance(Aggregation):
    """State `(sum, count, m2)`, kept by the method of Youngs and Cramer.

    Sums and deviations of integers are integers of Java's width, as in ksqlDB.
    """

    def __init__(self, context: CallContext) -> None:
        type_ = context.arg_types[0]
        self.zero: float = 0.0 if type_ == DOUBLE else 0
        self.fit = _WIDTHS[type_]
        self.fit_deviation = _as_is if type_ == DOUBLE else wrap_long

    def initialize(self) -> Moments:
        return self.zero, 0, 0.0

    def add(self, state: Moments, value: object) -> Moments:
        if value is None:
            return state
        total, count, m2 = state
        if count:
            m2 = self._square(state, value) / ((count + 1) * count) + m2
        return self.fit(total + value), count + 1, m2

    def undo(self, state: Moments, value: object) -> Moments:
        if value is None:
            return state
        total, count, m2 = state
        if count > 1:
            m2 -= self._square(state, value) / ((count - 1) * count)
            m2 = 0.0 if m2 < 0 else m2  # what rounding leaves would have no square root
        return self.fit(total - value), count - 1, m2

    def merge(self, left: Moments, right: Moments) -> Moments:
        (sum_left, left_count, left_m2), (sum_right, right_count, right_m2) = left, right
        m2 = left_m2 + right_m2
        if left_count and right_count:
            apart = float(sum_left) / left_count - float(sum_right) / right_count
            m2 += left_count * right_count * apart * apart / (left_count + right_count)
        return self.fit(sum_left + sum_right), left_count + right_count, m2

    def result(self, state: Moments) -> float:
        _, count, m2 = state
        return m2 / (count - 1) if count > 1 else 0.0

    def _square(self, state: Moments, value: Any) -> float:
        total, count, _ = state
        deviation = value * (count + 1) - self.fit(total + value)
        width = float(self.fit_deviation(deviation))
        return width * width


class SampleDeviation(Variance):
    def result(self, state: Moments) -> float:
        return square_root(super().result(state))


class PopulationDeviation(Variance):
    def result(self, state: Moments) -> float:
        _, count, m2 = state
        return square_root(m2 / count) if count else 0.0


def _as_is(value: Any) -> Any:
    return value


_WIDTHS: dict[SqlType, Callable[[Any], Any]] = {
    INTEGER: wrap_int,
    BIGINT: wrap_long,
    DOUBLE: _as_is,
}


Sums = tuple[float, float, float, float, float, int]


class Correlation(Aggregation):
    """State: the sums of x, y, x², y², xy, and the number of rows that have both."""

    def initialize(self) -> Sums:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0

    def add(self, state: Sums, x: float | None, y: float | None) -> Sums:
        return state if x is None or y is None else _moved(state, float(x), float(y), 1)

    def undo(self, state: Sums, x: float | None, y: float | None) -> Sums:
        return state if x is None or y is None else _moved(state, float(x), float(y), -1)

    def merge(self, left: Sums, right: Sums) -> Sums:
        a, b, c, d, e, n = (one + two for one, two in zip(left, right, strict=True))
        return a, b, c, d, e, int(n)

    def result(self, state: Sums) -> float:
        x, y, xx, yy, xy, count = state
        spread = square_root((count * xx - x * x) * (count * yy - y * y))
        return divide(count * xy - x * y, spread)


def _moved(state: Sums, x: float, y: float, sign: int) -> Sums:
    sum_x, sum_y, sum_xx, sum_yy, sum_xy, count = state
    return (
        sum_x + sign * x,
        sum_y + sign * y,
        sum_xx + sign * (x * x),
        sum_yy + sign * (y * y),
        sum_xy + sign * (x * y),
        count + sign,
    )


def _deviations(steps: type[Variance]) -> tuple[Overload, ...]:
    return tuple(
        aggregate_overload(f"(val1 {type_}) -> DOUBLE", steps)
        for type_ in (INTEGER, BIGINT, DOUBLE)
    )


_SAMP = (
    "The sample variance of a column: the square of its standard deviation, for which there is "
    "STDDEV_SAMPLE. 0.0 for fewer than two values."
)
_SAMPLE = "The sample standard deviation of a column; 0.0 for fewer than two values."
_POP = "The standard deviation of a column, taken as the whole population; 0.0 without values."
_CORRELATION = (
    "Pearson's correlation coefficient of two columns. Rows where one of them is null are left "
    "out; NaN where it is not defined."
)

FUNCTIONS = (
    aggregate(
        "STDDEV_SAMP",
        _SAMP,
        *_deviations(Variance),
        examples=(call([1.0, 2.0, 3.0, None], gives=1.0),),
    ),
    aggregate(
        "STDDEV_SAMPLE",
        _SAMPLE,
        *_deviations(SampleDeviation),
        examples=(call([1, 5], gives=math.sqrt(8.0)),),
    ),
    aggregate(
        "STDDEV_POP",
        _POP,
        *_deviations(PopulationDeviation),
        examples=(call([1, 5], gives=2.0),),
    ),
    aggregate(
        "CORRELATION",
        _CORRELATION,
        *(
            aggregate_overload(f"(val1 {type_}, val2 {type_}) -> DOUBLE", Correlation)
            for type_ in (INTEGER, BIGINT, DOUBLE)
        ),
        examples=(call([1.0, 2.0, 3.0], [2.0, 4.0, 6.0], gives=1.0),),
    ),
)
