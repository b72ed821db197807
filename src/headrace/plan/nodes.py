"""Plan nodes: what a query does, step by step. EXPLAIN prints them, Spark runs them.

A node's `schema` names the columns its rows have. Rows also carry, outside of every schema: their
time, and whether the value as a whole is null (a tombstone). Pseudocolumns are in a schema only
from where they are needed to where they are needed (KLIP-14).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import Enum

from headrace.model.schema import Column, Schema
from headrace.model.sources import (
    Serde,
    SourceKind,
    TimestampColumn,
    WindowedKey,
    WindowType,
)
from headrace.model.types import SqlType
from headrace.plan.expressions import Expression

# Raised whenever a recorded plan could mean something else to newer code.
PLAN_VERSION = 1


@dataclass(frozen=True)
class Node:
    """A step; `kind` says whether its rows are events or a table's changes."""

    schema: Schema
    kind: SourceKind


@dataclass(frozen=True)
class ReadSource(Node):
    """The records of a topic as rows.

    `columns` is the source's declared schema: what the bytes hold. `schema` is what leaves this
    node: the columns the query needs, named `alias_column` in joins, and the pseudocolumns it
    uses, as value columns named so too. `outputs` pairs each column of `schema` with the
    declared column or pseudocolumn it shows.
    """

    source: str
    alias: str
    topic: str
    columns: Schema
    key: Serde
    value: Serde
    timestamp: TimestampColumn | None
    window: WindowedKey | None
    outputs: tuple[tuple[str, str], ...]  # (name in schema, name in columns | pseudocolumn)


@dataclass(frozen=True)
class Filter(Node):
    """Keeps rows whose predicate is true. A table's row that fails becomes a tombstone."""

    input: Node
    predicate: Expression


@dataclass(frozen=True)
class Selected:
    column: Column
    expression: Expression


@dataclass(frozen=True)
class Project(Node):
    """New columns from old ones: `selected` lists every column of `schema`, in its order."""

    input: Node
    selected: tuple[Selected, ...]


@dataclass(frozen=True)
class TableFunctionCall:
    column: Column
    function: str
    signature: str
    args: tuple[Expression, ...]


@dataclass(frozen=True)
class FlatMap(Node):
    """Each row becomes as many as the longest result of the table functions; shorter ones give
    nulls. `schema` is the input's with one value column per call."""

    input: Node
    calls: tuple[TableFunctionCall, ...]


@dataclass(frozen=True)
class Rekey(Node):
    """PARTITION BY: other columns become the key; all columns of the input stay readable."""

    input: Node
    keys: tuple[Selected, ...]


@dataclass(frozen=True)
class Window:
    """WINDOW clause. Milliseconds; `grace` None means ksqlDB's default of a day."""

    type: WindowType
    size_ms: int  # the inactivity gap of a session
    advance_ms: int | None
    grace_ms: int | None
    retention_ms: int | None


@dataclass(frozen=True)
class AggregateCall:
    """`column` names the result; `literals` are the trailing constant arguments (n of TOPK)."""

    column: Column
    function: str
    signature: str
    args: tuple[Expression, ...]
    literals: tuple[object, ...]


@dataclass(frozen=True)
class Aggregate(Node):
    """GROUP BY. `schema`: the group's key columns, then one value column per aggregate.

    The input may be a stream or a table (then a changed row is first taken out of its old group).
    With a window the schema has WINDOWSTART and WINDOWEND as value columns when they are used.
    Rows whose group key is null are left out.
    """

    input: Node
    keys: tuple[Selected, ...]
    calls: tuple[AggregateCall, ...]
    window: Window | None
    required: tuple[Selected, ...] = ()  # non-aggregated columns that later steps still read


@dataclass(frozen=True)
class Suppress(Node):
    """EMIT FINAL: one row per window, when it closes."""

    input: Node
    window: Window


class JoinType(Enum):
    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    OUTER = "OUTER"


@dataclass(frozen=True)
class Join(Node):
    """What all joins have: `schema` is the key column, then the columns of both sides.

    The key column has a name of its own, so that it never hides a side's column: in an outer
    join a side's key column is null where that side is missing, the key never is. A column of
    `schema` is the key if it is named as `key`, else the left's or right's of that name.
    """

    left: Node
    right: Node
    type: JoinType
    left_key: Expression
    right_key: Expression
    key: Column  # its value is that of `left_key` or `right_key`, whichever side is there


@dataclass(frozen=True)
class StreamStreamJoin(Join):
    before_ms: int
    after_ms: int
    grace_ms: int | None  # None: rows are kept for as long as ksqlDB's default (a day), eager left


@dataclass(frozen=True)
class StreamTableJoin(Join):
    """A stream's row meets what the table holds at that time."""


@dataclass(frozen=True)
class TableTableJoin(Join):
    """Primary key against primary key."""


@dataclass(frozen=True)
class ForeignKeyJoin(Join):
    """`left_key` is any expression over the left row, `right_key` the right's primary key; the
    result has the left's primary key, all its columns (`key` is the first of them)."""


@dataclass(frozen=True)
class Write(Node):
    """The rows as records of a topic."""

    input: Node
    sink: str
    topic: str
    key: Serde
    value: Serde
    timestamp: TimestampColumn | None
    window: WindowedKey | None


@dataclass(frozen=True)
class Answer(Node):
    """The rows to whoever asked (a push query)."""

    input: Node
    limit: int | None


def inputs(node: Node) -> Iterator[Node]:
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Node):
            yield value


def steps(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for child in inputs(node):
        yield from steps(child)


def sources(node: Node) -> Iterator[ReadSource]:
    """Every topic the plan reads, left to right."""
    return (step for step in steps(node) if isinstance(step, ReadSource))


def has_join(node: Node) -> bool:
    return isinstance(node, Join) or any(map(has_join, inputs(node)))


def result_type(selected: Selected) -> SqlType:
    return selected.expression.type
