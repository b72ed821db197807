"""What the step forms of all aggregates have in common.

State is kept per key and changed once per row, so it is as small as can be and `add` does as little
as can be. `add`, `undo` and `merge` may change their first argument and return it; the caller goes
on with what they return. `result` never hands out a part of the state that later steps change.
A step that raises leaves the state as it was: the row is then not counted.

Steps take the columns' values; constants (n of TOPK) are known before. In the context of an
aggregate they are the last of `arg_literals`, and the columns' types the first of `arg_types`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from headrace.functions.declare import CallContext, Overload
from headrace.model.types import SqlType


class Aggregation:
    """The base of the step forms.

    `intermediate` is the type in which ksqlDB keeps the state. Ours is another, but a sink's format
    has to be able to hold it for ksqlDB to accept a statement.
    """

    def __init__(self, context: CallContext) -> None:
        self.intermediate: SqlType = context.return_type


class InOrder(Aggregation):
    """The base of those to whom it matters which of two merged states' values came first.

    Whoever merges states numbers the rows as they arrive: `arrival` is the number of the row that
    is added next, and `newest` the highest number in a state.
    """

    arrival = 0

    def newest(self, state: Any) -> int:
        raise NotImplementedError


class ShowsState(Aggregation):
    """The base of those whose state is their result."""

    shows_state: ClassVar[bool] = True

    def result(self, state: Any) -> Any:
        return state


def intermediate_type(overload: Overload, context: CallContext) -> SqlType:
    """The type that the sink's format must support, as ksqlDB checks it."""
    return getattr(overload.step(context), "intermediate", context.return_type)
