"""Plans that come to the same state when a micro-batch runs again.

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
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.functions.registry import REGISTRY
from headrace.model.errors import StatementError
from headrace.model.sources import SourceKind
from headrace.plan import expressions as e
from headrace.plan import nodes as n

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def repeatable(root: n.Node, query: str) -> n.Node:
    """The plan with such calls below a step that has state made from the record.

    `query` tells the calls of different queries apart: they do not answer the same. Where several
    values are of one record (in a lambda, behind a join) the calls stay: see `check_repeatable`.
    """
    return _Fixing(query).node(root, below=False)


def check_repeatable(root: n.Node) -> None:
    """Refuses what `repeatable` has to leave as it is, for queries whose output counts once."""
    fixing = _Fixing("")
    fixing.node(root, below=False)
    if fixing.left:
        raise StatementError(
            f"{fixing.left[0]}() cannot be used here with processing.guarantee=exactly_once_v2: a "
            "batch that runs again would come to another state. Write its values to a stream of "
            "their own (CREATE STREAM … AS SELECT) and read that."
        )


def has_state(node: n.Node) -> bool:
    """Whether the step itself remembers rows."""
    if isinstance(node, n.Filter):
        return node.kind is SourceKind.TABLE
    return isinstance(node, n.Aggregate | n.Suppress | n.Join)


class _Fixing:
    """One walk through a plan; `left` are the functions whose calls stay as they are."""

    def __init__(self, query: str) -> None:
        self.left: list[str] = []
        self._places = (f"{query}/{number}" for number in count())

    def node(self, node: n.Node, *, below: bool) -> n.Node:
        below = below or has_state(node)
        several = any(isinstance(s, _SEVERAL) for i in n.inputs(node) for s in n.steps(i))

        def change(value: Any) -> Any:
            if isinstance(value, n.Node):
                return self.node(value, below=below)
            return self._fixed(value, alone=not several) if below else value

        return _mapped(node, change)

    def _fixed(self, value: Any, *, alone: bool) -> Any:
        """An expression, or what holds some; `alone`: it has one value for each record."""
        if isinstance(value, tuple):
            items = tuple(self._fixed(item, alone=alone) for item in value)
            return value if all(a is b for a, b in zip(items, value, strict=True)) else items
        if isinstance(value, e.Call) and _varies(value):
            if alone:
                return e.OfRecord(value.type, value, next(self._places))
            self.left.append(value.function)
        alone = alone and not isinstance(value, e.LambdaFunction)
        if isinstance(value, _HOLDERS):
            return _mapped(value, lambda part: self._fixed(part, alone=alone))
        return value


_SEVERAL = (n.FlatMap, n.Join, n.Aggregate)
_HOLDERS = (e.Expression, e.When, n.Selected, n.AggregateCall, n.TableFunctionCall)
T = TypeVar("T", bound="DataclassInstance")


def _mapped(value: T, change: Callable[[Any], Any]) -> T:
    """The dataclass with its fields changed; itself, if none did."""
    fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    updates = {name: new for name, old in fields.items() if (new := change(old)) is not old}
    return dataclasses.replace(value, **updates) if updates else value


def _varies(call: e.Call) -> bool:
    return REGISTRY.find(call.function, call.signature).of_record is not None
