"""Aggregates that keep the values themselves: COLLECT_LIST, COLLECT_SET, HISTOGRAM, ATTR."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from headrace.functions.aggregates.java_arithmetic import INT_MAX, identity
from headrace.functions.aggregates.steps import Aggregation
from headrace.functions.declare.declaration import (
    CallContext,
    aggregate,
    aggregate_overload,
    call,
)
from headrace.model.errors import StatementError

_HISTOGRAM_LIMIT = 1000


def _limit(context: CallContext, setting: str) -> int:
    """The most elements to keep; none or a negative number is no limit."""
    given = context.settings.get(setting)
    if given is None:
        return INT_MAX
    try:
        limit = int(str(given))
    except ValueError:
        raise StatementError(f'For input string: "{given}"') from None
    return limit if limit >= 0 else INT_MAX


class CollectList(Aggregation):
    """State: the values in the order of arrival, nulls too."""

    def __init__(self, context: CallContext) -> None:
        super().__init__(context)
        self.limit = _limit(context, "ksql.functions.collect_list.limit")

    def initialize(self) -> list[object]:
        return []

    def add(self, state: list[object], value: object) -> list[object]:
        if len(state) < self.limit:
            state.append(value)
        return state

    def undo(self, state: list[object], value: object) -> list[object]:
        # The last of equal values goes; one that is not there was beyond the limit.
        for at in range(len(state) - 1, -1, -1):
            if state[at] == value or (value != value and state[at] != state[at]):
                del state[at]
                break
        return state

    def merge(self, left: list[object], right: list[object]) -> list[object]:
        left.extend(right[: max(0, self.limit - len(left))])
        return left

    def result(self, state: list[object]) -> list[object]:
        return list(state)


class CollectSet(Aggregation):
    """State: the different values in the order of arrival, by what makes them equal.

    Where that is the value itself, it is not kept twice.
    """

    def __init__(self, context: CallContext) -> None:
        super().__init__(context)
        self.limit = _limit(context, "ksql.functions.collect_set.limit")
        self.identity = identity(context.arg_types[0])

    def initialize(self) -> dict[Hashable, object]:
        return {}

    def add(self, state: dict[Hashable, object], value: object) -> dict[Hashable, object]:
        key, kept = (value, None) if self.identity is None else (self.identity(value), value)
        if key not in state and len(state) < self.limit:
            state[key] = kept
        return state

    def merge(
        self, left: dict[Hashable, object], right: dict[Hashable, object]
    ) -> dict[Hashable, object]:
        for key, value in right.items():
            if len(left) >= self.limit:
                break
            left.setdefault(key, value)
        return left

    def result(self, state: dict[Hashable, object]) -> list[object]:
        return list(state if self.identity is None else state.values())


class Histogram(Aggregation):
    """State: how often each string came, for the first thousand different ones."""

    def initialize(self) -> dict[str, int]:
        return {}

    def add(self, state: dict[str, int], value: str | None) -> dict[str, int]:
        return state if value is None else self._count(state, value, 1)

    def undo(self, state: dict[str, int], value: str | None) -> dict[str, int]:
        if value in state:
            state[value] -= 1
            if state[value] < 1:
                del state[value]
        return state

    def merge(self, left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
        for value, times in right.items():
            self._count(left, value, times)
        return left

    def result(self, state: dict[str, int]) -> dict[str, int]:
        return dict(state)

    def _count(self, state: dict[str, int], value: str, times: int) -> dict[str, int]:
        if value in state:
            state[value] += times
        elif len(state) < _HISTOGRAM_LIMIT:
            state[value] = times
        return state


class Attribute(Aggregation):
    """State: each different value, null too, and how often it is there."""

    def __init__(self, context: CallContext) -> None:
        self.identity = identity(context.arg_types[0])

    def initialize(self) -> dict[Hashable, list[object]]:
        return {}

    def add(self, state: dict[Hashable, list[Any]], value: Any) -> dict[Hashable, list[Any]]:
        key = value if self.identity is None else self.identity(value)
        entry = state.get(key)
        if entry is None:
            state[key] = [value, 1]
        else:
            entry[1] += 1
        return state

    def undo(self, state: dict[Hashable, list[Any]], value: Any) -> dict[Hashable, list[Any]]:
        key = value if self.identity is None else self.identity(value)
        entry = state.get(key)
        if entry is not None:
            entry[1] -= 1
            if entry[1] < 1:
                del state[key]
        return state

    def merge(
        self, left: dict[Hashable, list[Any]], right: dict[Hashable, list[Any]]
    ) -> dict[Hashable, list[object]]:
        for key, (value, times) in right.items():
            if key in left:
                left[key][1] += times
            else:
                left[key] = [value, times]
        return left

    def result(self, state: dict[Hashable, list[object]]) -> object:
        if len(state) != 1:
            return None
        ((value, _),) = state.values()
        return value


_COLLECT_LIST = (
    "The values of a column as an array, in the order of their arrival (on a table the order is "
    "not certain). `ksql.functions.collect_list.limit` limits its length; what comes later is "
    "left out."
)
_COLLECT_SET = (
    "The different values of a column as an array. `ksql.functions.collect_set.limit` limits its "
    "length; what comes later is left out."
)
_HISTOGRAM = (
    "How often each string of a column occurs, as a map. It holds up to 1000 different ones; what "
    "comes later is left out."
)
_ATTR = "The value of a column of which all rows of a group have the same; null where they differ."

FUNCTIONS = (
    aggregate(
        "COLLECT_LIST",
        _COLLECT_LIST,
        aggregate_overload("(val1 A) -> ARRAY<A>", CollectList),
        examples=(call([3, None, 3], gives=[3, None, 3]),),
    ),
    aggregate(
        "COLLECT_SET",
        _COLLECT_SET,
        aggregate_overload("(val1 A) -> ARRAY<A>", CollectSet),
        examples=(call([3, 1, 3], gives=[3, 1]),),
    ),
    aggregate(
        "HISTOGRAM",
        _HISTOGRAM,
        aggregate_overload("(val1 STRING) -> MAP<STRING, BIGINT>", Histogram),
        examples=(call(["a", "b", "a"], gives={"a": 2, "b": 1}),),
    ),
    aggregate(
        "ATTR",
        _ATTR,
        aggregate_overload("(val1 A) -> A", Attribute),
        examples=(call([7, 7], gives=7), call([7, 8], gives=None)),
    ),
)
