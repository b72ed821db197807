"""Aggregates by arrival order: EARLIEST_BY_OFFSET, LATEST_BY_OFFSET."""

from __future__ import annotations

from typing import Any

from headrace.functions.aggregates.steps import InOrder
from headrace.functions.declare.declaration import (
    CallContext,
    Overload,
    Steps,
    StepsFactory,
    aggregate,
    aggregate_overload,
    call,
)
from headrace.model.errors import StatementError

Entry = tuple[int, object]  # the number of its arrival, and the value


class One(InOrder):
    """State: the entry, or None as long as there is none."""

    def __init__(self, context: CallContext, ignore_nulls: bool = True) -> None:
        self.ignore_nulls = ignore_nulls

    def initialize(self) -> None:
        return None

    def result(self, state: Entry | None) -> object:
        return None if state is None else state[1]

    def newest(self, state: Entry | None) -> int:
        return 0 if state is None else state[0]


class Earliest(One):
    def add(self, state: Entry | None, value: object) -> Entry | None:
        if state is not None or (value is None and self.ignore_nulls):
            return state
        return self.arrival, value

    def merge(self, left: Entry | None, right: Entry | None) -> Entry | None:
        if left is None or right is None:
            return right if left is None else left
        return left if left[0] < right[0] else right


class Latest(One):
    def add(self, state: Entry | None, value: object) -> Entry | None:
        if value is None and self.ignore_nulls:
            return state
        return self.arrival, value

    def merge(self, left: Entry | None, right: Entry | None) -> Entry | None:
        if left is None or right is None:
            return right if left is None else left
        return left if left[0] >= right[0] else right


class Several(InOrder):
    """State: up to n entries in the order of arrival."""

    name = ""

    def __init__(self, context: CallContext, n: int | None, ignore_nulls: bool = True) -> None:
        if not n or n < 0:
            raise StatementError(f"{self.name} must be 1 or greater")
        self.n = n
        self.ignore_nulls = ignore_nulls

    def initialize(self) -> list[Entry]:
        return []

    def result(self, state: list[Entry]) -> list[object]:
        return [value for _, value in state]

    def newest(self, state: list[Entry]) -> int:
        return max(map(_arrival, state), default=0)


class EarliestSeveral(Several):
    name = "earliestN"

    def add(self, state: list[Entry], value: object) -> list[Entry]:
        if len(state) < self.n and not (value is None and self.ignore_nulls):
            state.append((self.arrival, value))
        return state

    def merge(self, left: list[Entry], right: list[Entry]) -> list[Entry]:
        return sorted((*left, *right), key=_arrival)[: self.n]


class LatestSeveral(Several):
    name = "latestN"

    def add(self, state: list[Entry], value: object) -> list[Entry]:
        if value is None and self.ignore_nulls:
            return state
        state.append((self.arrival, value))
        if len(state) > self.n:
            del state[0]
        return state

    def merge(self, left: list[Entry], right: list[Entry]) -> list[Entry]:
        return sorted((*left, *right), key=_arrival)[-self.n :]


def _arrival(entry: Entry) -> int:
    return entry[0]


def _overloads(
    one: type[Earliest] | type[Latest], several: type[EarliestSeveral] | type[LatestSeveral]
) -> tuple[Overload, ...]:
    def made(kind: Any, constants: int) -> StepsFactory:
        def make(context: CallContext) -> Steps:
            literals = context.arg_literals
            steps: Steps = kind(context, *literals[len(literals) - constants :])
            return steps

        return make

    n = several.name
    signatures = (
        ("(val1 A) -> A", one),
        ("(val1 A, const ignoreNulls BOOLEAN) -> A", one),
        (f"(val1 A, const {n} INTEGER) -> ARRAY<A>", several),
        (f"(val1 A, const {n} INTEGER, const ignoreNulls BOOLEAN) -> ARRAY<A>", several),
    )
    return tuple(
        aggregate_overload(signature, made(kind, signature.count("const ")), undoes=False)
        for signature, kind in signatures
    )


_NULLS = "Nulls are left out unless ignoreNulls is false."

FUNCTIONS = (
    aggregate(
        "EARLIEST_BY_OFFSET",
        f"The first value of a column to arrive, or the first n as an array. {_NULLS}",
        *_overloads(Earliest, EarliestSeveral),
        examples=(call([None, 1, 2], gives=1), call([1, 2, 3], 2, gives=[1, 2])),
    ),
    aggregate(
        "LATEST_BY_OFFSET",
        f"The last value of a column to arrive, or the last n as an array. {_NULLS}",
        *_overloads(Latest, LatestSeveral),
        examples=(call([1, 2, None], gives=2), call([1, 2, 3], 2, gives=[2, 3])),
    ),
)
