"""Aggregates that keep the greatest or the least: MIN, MAX, TOPK, TOPKDISTINCT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.aggregates.java import greater
from headrace.functions.aggregates.steps import Aggregation
from headrace.functions.declare import (
    CallContext,
    NativeForm,
    Overload,
    aggregate,
    aggregate_overload,
    call,
)
from headrace.model.types import Array, Field, SqlType, Struct


class Maximum(Aggregation):
    def __init__(self, context: CallContext) -> None:
        super().__init__(context)
        self.greater = greater(context.arg_types[0])

    def initialize(self) -> None:
        return None

    def add(self, state: Any, value: Any) -> Any:
        if value is None:
            return state
        return value if state is None or self.greater(value, state) else state

    def merge(self, left: Any, right: Any) -> Any:
        return self.add(left, right)

    def result(self, state: Any) -> Any:
        return state


class Minimum(Maximum):
    def add(self, state: Any, value: Any) -> Any:
        if value is None:
            return state
        return value if state is None or self.greater(state, value) else state


class Top(Aggregation):
    """State: up to k values in descending order; with further columns tuples of them all."""

    def __init__(self, context: CallContext) -> None:
        super().__init__(context)
        self.size = _size(context)
        self.greater = greater(context.arg_types[0])

    def initialize(self) -> list[Any]:
        return []

    def add(self, state: list[Any], value: Any) -> list[Any]:
        if value is not None:
            self._insert(state, value)
        return state

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        for value in right:
            self._insert(left, value)
        return left

    def result(self, state: list[Any]) -> list[Any]:
        return list(state)

    def _insert(self, state: list[Any], value: Any) -> None:
        """Put the value behind all that are not less; what no longer fits falls off."""
        at = len(state)
        while at and self.greater(value, state[at - 1]):
            at -= 1
        if at < self.size:
            state.insert(at, value)
            del state[self.size :]


class TopDistinct(Top):
    def _insert(self, state: list[Any], value: Any) -> None:
        at = len(state)
        while at and self.greater(value, state[at - 1]):
            at -= 1
        if at < self.size and not (at and not self.greater(state[at - 1], value)):
            state.insert(at, value)
            del state[self.size :]


class TopRows(Top):
    """TOPK with further columns; the rows are ordered by the first."""

    def __init__(self, context: CallContext) -> None:
        super().__init__(context)
        self.names = tuple(_row_names(len(context.arg_types) - 1))
        above = self.greater
        self.greater = lambda a, b: above(a[0], b[0])

    def add(self, state: list[Any], value: Any, *others: Any) -> list[Any]:
        if value is not None:
            self._insert(state, (value, *others))
        return state

    def result(self, state: list[Any]) -> list[Any]:
        return [dict(zip(self.names, row, strict=True)) for row in state]


def _size(context: CallContext) -> int:
    size = context.arg_literals[-1]
    return size if isinstance(size, int) and size > 0 else 0


def _row_names(count: int) -> list[str]:
    return ["sort_col", *(f"col{i}" for i in range(count - 1))]


def _top(context: CallContext) -> Top:
    return TopRows(context) if len(context.arg_types) > 2 else Top(context)


def _top_type(types: Sequence[SqlType]) -> SqlType:
    columns = types[:-1]
    if len(columns) == 1:
        return Array(columns[0])
    return Array(Struct(tuple(map(Field, _row_names(len(columns)), columns))))


# ------------------------------------------------------------------------------------ Spark forms


def _by_java_order(extreme: Any) -> NativeForm:
    """Strings in the order of their UTF-16 code units, which is the order of the encoded bytes."""

    def form(value: Column) -> Column:
        return F.decode(extreme(F.encode(value, "UTF-16BE")), "UTF-16BE")

    return form


def _extremes(steps: type[Maximum], native: Any) -> tuple[Overload, ...]:
    ordered = ("INTEGER", "BIGINT", "DOUBLE", "DATE", "TIME", "TIMESTAMP")
    return (
        *(aggregate_overload(f"(val1 {t}) -> {t}", steps, native=native) for t in ordered),
        aggregate_overload(
            "(val1 DECIMAL) -> DECIMAL", steps, native=native, returns=lambda types: types[0]
        ),
        aggregate_overload("(val1 STRING) -> STRING", steps, native=_by_java_order(native)),
        # Java's bytes are signed, Spark's are not.
        aggregate_overload("(val1 BYTES) -> BYTES", steps),
    )


_DISTINCT_TYPES = (
    *("INTEGER", "BIGINT", "DOUBLE", "STRING", "DECIMAL", "DATE", "TIME", "TIMESTAMP", "BYTES"),
)

_TOPK = (
    "The k greatest values of a column, greatest first. With further columns, a struct for each: "
    "the value is its field sort_col, the further columns are col0, col1, …"
)
_TOPKDISTINCT = "The k greatest different values of a column, greatest first."

FUNCTIONS = (
    aggregate(
        "MIN",
        "The least value of a column. Nulls are left out.",
        *_extremes(Minimum, F.min),
        examples=(call([3, None, 1], gives=1), call(["b", "a"], gives="a")),
    ),
    aggregate(
        "MAX",
        "The greatest value of a column. Nulls are left out.",
        *_extremes(Maximum, F.max),
        examples=(call([3, None, 1], gives=3), call(["b", "a"], gives="b")),
    ),
    aggregate(
        "TOPK",
        _TOPK,
        *(
            aggregate_overload(
                f"(val1 {type_}, val2 ANY..., const k INTEGER) -> ARRAY<{type_}>",
                _top,
                undoes=False,
                returns=_top_type,
            )
            for type_ in ("INTEGER", "BIGINT", "DOUBLE", "STRING")
        ),
        examples=(call([3, 1, None, 5, 4], 2, gives=[5, 4]),),
    ),
    aggregate(
        "TOPKDISTINCT",
        _TOPKDISTINCT,
        *(
            aggregate_overload(
                f"(val1 {type_}, const k INTEGER) -> ARRAY<{type_}>",
                TopDistinct,
                returns=_top_type,
            )
            for type_ in _DISTINCT_TYPES
        ),
        examples=(call([3, 5, None, 5, 4], 2, gives=[5, 4]),),
    ),
)
