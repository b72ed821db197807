"""Aggregates that keep the greatest or the least: MIN, MAX, TOPK, TOPKDISTINCT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.aggregates.java_arithmetic import greater
from headrace.functions.aggregates.steps import Aggregation, ShowsState
from headrace.functions.declare.declaration import (
    CallContext,
    NativeForm,
    Overload,
    aggregate,
    aggregate_overload,
    call,
)
from headrace.model.types import Array, Field, SqlType, Struct


class Maximum(ShowsState):
    def __init__(self, context: CallContext) -> None:
        super().__init__(context)
        self.greater = greater(context.arg_types[0])

    def initialize(self) -> None:
        return None

    def add(self, state: object, value: object) -> object:
        if value is None:
            return state
        return value if state is None or self.greater(value, state) else state

    def merge(self, left: object, right: object) -> object:
        return self.add(left, right)


class Minimum(Maximum):
    def add(self, state: object, value: object) -> object:
        if value is None:
            return state
        return value if state is None or self.greater(state, value) else state


class Top(Aggregation):
    """State: up to k values in descending order; with further columns tuples of them all."""

    def __init__(self, context: CallContext) -> None:
        super().__init__(context)
        self.size = _size(context)
        self.order = greater(context.arg_types[0])

    def initialize(self) -> list[object]:
        return []

    def add(self, state: list[object], value: object) -> list[object]:
        if value is not None:
            self._insert(state, value)
        return state

    def merge(self, left: list[object], right: list[object]) -> list[object]:
        for value in right:
            self._insert(left, value)
        return left

    def result(self, state: list[object]) -> list[object]:
        return list(state)

    def _above(self, one: object, other: object) -> bool:
        return self.order(one, other)

    def _fits(self, state: list[object], value: object, at: int) -> bool:
        return at < self.size

    def _insert(self, state: list[object], value: object) -> None:
        """Put the value behind all that are not less; what no longer fits falls off."""
        at = len(state)
        while at and self._above(value, state[at - 1]):
            at -= 1
        if self._fits(state, value, at):
            state.insert(at, value)
            del state[self.size :]


class TopDistinct(Top):
    def _fits(self, state: list[object], value: object, at: int) -> bool:
        return at < self.size and (at == 0 or self._above(state[at - 1], value))


class TopRows(Top):
    """TOPK with further columns; the rows are ordered by the first."""

    def __init__(self, context: CallContext) -> None:
        super().__init__(context)
        rows = context.return_type
        assert isinstance(rows, Array) and isinstance(rows.element, Struct)
        self.names = tuple(field.name for field in rows.element.fields)

    def add(self, state: list[object], value: object, *others: object) -> list[object]:
        if value is not None:
            self._insert(state, (value, *others))
        return state

    def _above(self, one: Any, other: Any) -> bool:
        return self.order(one[0], other[0])

    def result(self, state: list[Any]) -> list[Any]:
        return [dict(zip(self.names, row, strict=True)) for row in state]


def _size(context: CallContext) -> int:
    size = context.arg_literals[-1]
    return size if isinstance(size, int) and size > 0 else 0


def _top(context: CallContext) -> Top:
    several = isinstance(context.return_type, Array) and isinstance(
        context.return_type.element, Struct
    )
    return TopRows(context) if several else Top(context)


def _top_type(types: Sequence[SqlType]) -> SqlType:
    first, *others = types[:-1]
    if not others:
        return Array(first)
    named = (Field(f"col{i}", other) for i, other in enumerate(others))
    return Array(Struct((Field("sort_col", first), *named)))


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
        simple_state=True,
        examples=(call([3, None, 1], gives=1), call(["b", "a"], gives="a")),
    ),
    aggregate(
        "MAX",
        "The greatest value of a column. Nulls are left out.",
        *_extremes(Maximum, F.max),
        simple_state=True,
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
