"""Makes plans deterministic, so that a repeated micro-batch gives the same state.

A batch that was interrupted runs again on the same records. What `UUID()` or `RANDOM()` answer then
would be in the state, and not in what was written the first time. So below a step that has state
they are made from the record: its partition, offset and time. Above it they may stay
as they are: rows are written as a whole or not at all. What is made from the time of day is the
batch's time, which Spark keeps with the batch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from headrace.functions.registry import REGISTRY
from headrace.model.errors import StatementError
from headrace.plan import nodes as n
from headrace.plan.language import expressions as e

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def repeatable(root: n.Node, query: str) -> n.Node:
    """The plan with non-deterministic calls below a stateful step computed from the record.

    `query` tells the calls of different queries apart: they do not answer the same. Where several
    values are of one record (in a lambda, behind a join) the calls stay: see `check_repeatable`.
    """
    return _Fixing(query).node(root, below=False)


def check_repeatable(root: n.Node) -> None:
    """Refuses calls that `repeatable` cannot replace, for exactly-once queries."""
    fixing = _Fixing("")
    fixing.node(root, below=False)
    if fixing.left:
        raise StatementError(
            f"{fixing.left[0]}() cannot be used here with processing.guarantee=exactly_once_v2: a "
            "batch that runs again would come to another state. Write its values to a stream of "
            "their own (CREATE STREAM … AS SELECT) and read that."
        )


class _Fixing:
    """One walk through a plan; `left` are the functions whose calls stay as they are."""

    def __init__(self, query: str) -> None:
        self.left: list[str] = []
        self._places = (f"{query}/{number}" for number in count())

    def node(self, node: n.Node, *, below: bool) -> n.Node:
        below = below or node.keeps_state
        alone = all(s.one_row_each for i in n.inputs(node) for s in n.steps(i))

        def change(value: object) -> object:
            if isinstance(value, n.Node):
                return self.node(value, below=below)
            return self._fixed(value, alone=alone) if below else value

        return _mapped(node, change)

    def _fixed(self, value: object, *, alone: bool) -> object:
        """An expression, or what holds some; `alone`: it has one value for each record."""
        if isinstance(value, tuple):
            items = tuple(self._fixed(item, alone=alone) for item in value)
            return value if all(a is b for a, b in zip(items, value, strict=True)) else items
        if isinstance(value, e.Call) and _varies(value):
            if alone:
                return e.OfRecord(value.type, value, next(self._places))
            self.left.append(value.function)
        alone = alone and not isinstance(value, e.LambdaFunction)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return _mapped(value, lambda part: self._fixed(part, alone=alone))
        return value


T = TypeVar("T", bound="DataclassInstance")


def _mapped(value: T, change: Callable[[object], object]) -> T:
    """The dataclass with its fields changed; itself, if none did."""
    fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    updates = {name: new for name, old in fields.items() if (new := change(old)) is not old}
    return dataclasses.replace(value, **updates) if updates else value


def _varies(call: e.Call) -> bool:
    return REGISTRY.find(call.function, call.signature).of_record is not None
