"""How plan nodes become DataFrame programs: one function for each kind of node, found by type.

The functions are in `stateless` and `stateful`; `program` brings them together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.formats.base import Format, Layout, Side
from headrace.model.schema import Namespace, Schema
from headrace.plan import nodes as n
from headrace.plan.language.describe import describe
from headrace.spark.lower.expressions import Held, Scope, lower_noting
from headrace.spark.rows.columns import DEAD, NULL, Entries, column
from headrace.spark.rows.optimistic import PESSIMISTIC, OptimisticDecoding
from headrace.spark.rows.processing_log import EntryWriter, Failure
from headrace.spark.state.bucket import RunKernel, as_operator


@dataclass(frozen=True)
class Context:
    """What lowering needs of the world around a plan.

    `read` gives a topic's raw records (Spark's Kafka columns), streaming or not. `layout` resolves
    how a side of a source or sink is written, schema ids included.
    """

    read: Callable[[n.ReadSource, bool], DataFrame]
    layout: Callable[[n.ReadSource | n.Write, Side], tuple[Format, Layout]]
    entries: EntryWriter
    buckets: int = 16
    coalesce: bool = True
    native: n.Aggregate | None = None  # the aggregate that is left to Spark's own operator
    decoding: OptimisticDecoding = PESSIMISTIC
    feeds_kernel: bool = False  # a kernel is behind, and wants to know the place of each row
    function_settings: Mapping[str, object] = field(default_factory=dict)
    run_kernel: RunKernel = as_operator
    # Rows to be written name their task, by what does not change if they run again.
    with_task: bool = False

    @property
    def scope(self) -> Scope:
        """Of an expression whose failure is the failure of the whole."""
        return Scope(settings=self.function_settings)


def feeding_kernel(context: Context) -> Context:
    return context if context.feeds_kernel else replace(context, feeds_kernel=True)


@dataclass(frozen=True)
class Lowered:
    """A plan as a DataFrame program: its rows, and what its stateful steps remember, those that
    come first in front."""

    rows: DataFrame
    state: tuple[str, ...] = ()


N = TypeVar("N", bound=n.Node)
Lowering = Callable[[N, Context], Lowered]
_LOWERINGS: dict[type[n.Node], Lowering[n.Node]] = {}


def lowers(kind: type[N]) -> Callable[[Lowering[N]], Lowering[N]]:
    """Declares how one kind of node becomes a DataFrame program."""

    def declare(function: Lowering[N]) -> Lowering[N]:
        _LOWERINGS[kind] = function  # type: ignore[assignment]
        return function

    return declare


def lower_node(node: n.Node, context: Context) -> Lowered:
    return _LOWERINGS[type(node)](node, context)


Wording = Callable[[int, n.Selected], str]


def computing(index: int, item: n.Selected) -> str:
    """How the log names a column that could not be worked out; key columns have no index."""
    return (
        f"Error computing expression {describe(item.expression)} for column {item.column.name} "
        f"with index {index}"
    )


def selected_columns(
    selected: Sequence[n.Selected],
    context: Context,
    step: str,
    source: Schema,
    wording: Wording = computing,
    held: Held | None = None,
) -> tuple[list[Column], list[Entries]]:
    """Columns under their names, null where they failed, and the entries of all failures.

    `source` is what the expressions are about; `wording` names a failure. The columns may name
    those that are `held`.
    """
    columns: list[Column] = []
    failures: list[Failure] = []
    values = count()
    for item in selected:
        index = 0 if item.column.namespace is Namespace.KEY else next(values)
        lowered, errors = lower_noting(item.expression, held, context.function_settings)
        value = lowered.value
        if lowered.error is not None:
            value = F.when(lowered.error.isNull(), value)
            errors = [lowered.error, *errors]
        failures += [(wording(index, item), F.when(is_live(), error)) for error in errors]
        columns.append(value.alias(item.column.name))
    if not failures:
        return columns, []
    return columns, [context.entries.processing(step, failures, row_of(source))]


def projected(
    rows: DataFrame, selected: Sequence[n.Selected], context: Context, step: str, source: Schema
) -> tuple[DataFrame, list[Column], list[Entries]]:
    """The selected columns and their entries, and the rows to select them from."""
    held = Held()
    columns, entries = selected_columns(selected, context, step, source, held=held)
    for stage in held.stages:
        rows = rows.select("*", *stage)
    return rows, columns, entries


def is_live() -> Column:
    """Whether a row has values: it is no tombstone, nor only there for its log entries."""
    return ~column(NULL) & ~column(DEAD)


def row_of(schema: Schema) -> list[Column]:
    """What an entry shows of a row, if it may."""
    return [column(c.name) for c in schema]
