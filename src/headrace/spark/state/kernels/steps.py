"""Aggregate functions as kernels use them: all calls of a GROUP BY on one entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from headrace.model.aggregation import Steps
from headrace.spark.state.kernels.kernel import Values


@dataclass(frozen=True)
class Call:
    """A call of an aggregate: its steps, and which of a row's values are its arguments.

    `name` (the function's overload) tells stored states of different functions apart.
    """

    name: str
    steps: Steps
    args: tuple[int, ...]

    @property
    def layout(self) -> str:
        return self.name


# An entry of the state: a list that begins as `Accumulator` says.
Entry = list[Any]


class Accumulator:
    """Entries are lists: the time of the latest row, the carried values, each call's state."""

    __slots__ = (
        "_adders",
        "_calls",
        "_carried",
        "_first",
        "_in_order",
        "_results",
        "_shows_states",
        "_undoers",
        "is_in_order",
        "is_single",
    )

    def __init__(self, calls: tuple[Call, ...], carried: int) -> None:
        self._calls = calls
        self._carried = carried
        self.is_single = (
            len(calls) == 1
        )  # then a row that a function could not take changes nothing
        self._adders = [(i + 2, *_bound(c.steps.add, c.args)) for i, c in enumerate(calls)]
        self._undoers = [
            (i + 2, *_bound(c.steps.undo, c.args))  # type: ignore[attr-defined]
            for i, c in enumerate(calls)
            if getattr(c.steps, "undo", None) is not None
        ]
        self._results = [(i + 2, c.steps.result) for i, c in enumerate(calls)]
        self._in_order: list[tuple[int, Any]] = [
            (i + 2, c.steps) for i, c in enumerate(calls) if hasattr(c.steps, "arrival")
        ]
        self.is_in_order = bool(self._in_order)  # rows have to be numbered before they are added
        self._shows_states = all(getattr(c.steps, "shows_state", False) for c in calls)
        # What every entry begins with; None if steps change what they are given.
        first = ((None,) * carried, *(call.steps.initialize() for call in calls))
        self._first = first if _is_constant(first) else None

    def start(self, time: int) -> Entry:
        if self._first is not None:
            return [time, *self._first]
        nothing = (None,) * self._carried
        return [time, nothing, *(call.steps.initialize() for call in self._calls)]

    def number(self, arrival: int) -> None:
        """Numbers the row that is added next."""
        for _, steps in self._in_order:
            steps.arrival = arrival

    def newest(self, entry: Entry) -> int:
        """The highest number of a row that the entry remembers."""
        return max((int(steps.newest(entry[place])) for place, steps in self._in_order), default=0)

    def add(self, entry: Entry, values: Values) -> str | None:
        """Adds a row; says why, if a function could not take it (its state then stays)."""
        failure = None
        for place, add, arg in self._adders:
            try:
                entry[place] = add(entry[place], values if arg is None else values[arg])
            except Exception as e:  # a function's own failure must not stop the query
                failure = f"{self._calls[place - 2].name} failed: {e}"
        if self._carried:
            entry[1] = values[: self._carried]
        return failure

    def undo(self, entry: Entry, values: Values) -> str | None:
        """Takes a row out again."""
        failure = None
        for place, undo, arg in self._undoers:
            try:
                entry[place] = undo(entry[place], values if arg is None else values[arg])
            except Exception as e:  # a function's own failure must not stop the query
                failure = f"{self._calls[place - 2].name} failed: {e}"
        if self._carried:
            entry[1] = values[: self._carried]
        return failure

    def merge(self, entry: Entry, other: Entry) -> None:
        """Adds what `other` has; where both carry a value, `entry`'s own stays."""
        for place, call in enumerate(self._calls, 2):
            entry[place] = call.steps.merge(entry[place], other[place])
        if self._carried:
            entry[1] = tuple(b if a is None else a for a, b in zip(entry[1], other[1], strict=True))

    def result(self, entry: Entry) -> Values:
        carried: Values = entry[1]
        if self._shows_states:
            return (*carried, *entry[2:])
        return carried + tuple([result(entry[place]) for place, result in self._results])


def _bound(
    step: Callable[..., Any], args: tuple[int, ...]
) -> tuple[Callable[[Any, Any], Any], int | None]:
    """`step` as a function of the state and one of the row's values (which), or of all of them."""
    if len(args) == 1:
        return step, args[0]
    if not args:
        return lambda state, values: step(state), None
    return lambda state, values: step(state, *[values[i] for i in args]), None


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, (int, float, str, bytes, Decimal))
