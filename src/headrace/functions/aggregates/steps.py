"""Base classes of the Python steps of aggregates.

State is kept per key and changed once per row, so it is as small as can be and `add` does as little
as can be. `add`, `undo` and `merge` may change their first argument and return it; the caller goes
on with what they return. `result` never hands out a part of the state that later steps change.
A step that raises leaves the state as it was: the row is then not counted.

Steps take the columns' values; constants (n of TOPK) are known before. In the context of an
aggregate they are the last of `arg_literals`, and the columns' types the first of `arg_types`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from headrace.functions.declare.declaration import CallContext


class Aggregation:
    """The base of the step forms, each made for one call."""

    def __init__(self, context: CallContext) -> None: ...


class InOrder(Aggregation):
    """The base of aggregates whose merge depends on which state's values came first.

    Whoever merges states numbers the rows as they arrive: `arrival` is the number of the row that
    is added next, and `newest` the highest number in a state.
    """

    arrival = 0

    def newest(self, state: Any) -> int:
        raise NotImplementedError


class ShowsState(Aggregation):
    """The base of aggregates whose state is their result."""

    shows_state: ClassVar[bool] = True

    def result(self, state: object) -> object:
        return state
