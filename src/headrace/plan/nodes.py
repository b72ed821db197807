"""Plan nodes: the steps of a query, which EXPLAIN prints and Spark runs.

A node class says all that planning has to know of its kind of step: how EXPLAIN shows it, which
columns it requires of its inputs, whether it keeps state, and what of it has to stay when its query
is replaced. The other half of a step is its lowering, in `spark`.

A node's `schema` names the columns its rows have. Rows also carry, outside of every schema: their
time, and whether the value as a whole is null (a tombstone). Pseudocolumns are in a schema only
from where they are needed to where they are needed (KLIP-14).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, ClassVar, TypeVar

from headrace.model.errors import StatementError
from headrace.model.schema import Column, Namespace, Schema
from headrace.model.sources import (
    Serde,
    SourceKind,
    TimestampColumn,
    WindowedKey,
    WindowType,
)
from headrace.model.types import quote
from headrace.plan.language.describe import describe, listed, literal
from headrace.plan.language.expressions import Expression, columns_used

Names = frozenset[str]
N = TypeVar("N", bound="Node")


@dataclass(frozen=True)
class Fixed:
    """What must not change when a query is replaced: properties of a step, under ksqlDB's names."""

    step: str
    properties: Mapping[str, object]


@dataclass(frozen=True)
class Node:
    """A step of a plan; `kind` says whether its rows are events or a table's changes."""

    title: ClassVar[str]  # what EXPLAIN calls it
    one_row_each: ClassVar[bool] = True  # at most one row comes out for each record that was read

    schema: Schema
    kind: SourceKind

    @property
    def step_name(self) -> str:
        """The step's name in the processing log."""
        return type(self).__name__

    def details(self) -> Sequence[str]:
        """What EXPLAIN shows of the step besides its schema."""
        return ()

    @property
    def keeps_state(self) -> bool:
        """Whether the step itself is stateful."""
        return False

    @property
    def store_name(self) -> str:
        """What `/clusterStatus` calls its state."""
        return self.step_name

    def state_from(self) -> Sequence[bool]:
        """For each input, whether the step's state is made of its rows."""
        return [self.keeps_state for _ in inputs(self)]

    def requires(self, needed: Names) -> Sequence[Names]:
        """The columns that the step reads from each input, if those `needed` are read from it."""
        return [_names(below.schema) for below in inputs(self)]

    def over(self: N, below: Sequence[Node], needed: Names) -> N:
        """The step on inputs that have just the columns it requires."""
        changed: dict[str, Any] = dict(zip(_input_names(self), below, strict=True))
        return replace(self, schema=self.narrowed(below, needed), **changed)

    def narrowed(self, below: Sequence[Node], needed: Names) -> Schema:
        """The step's schema on such inputs."""
        return self.schema

    def fixed(self) -> Iterator[Fixed]:
        """What must not change when the query is replaced; raises where nothing may change."""
        return iter(())


def _names(columns: Iterable[Column]) -> Names:
    return frozenset(c.name for c in columns)


def _used(expressions: Iterable[Expression]) -> Names:
    return frozenset().union(*map(columns_used, expressions))


def _kept(schema: Schema, needed: Names) -> Schema:
    """Key columns stay whether or not anyone reads them."""
    return Schema.of(c for c in schema if c.name in needed or c.namespace is Namespace.KEY)


def _of_kind(node: Node, what: str) -> str:
    return f"{node.kind.value.capitalize()}{what}"


def _not_upgradeable(step: str) -> StatementError:
    return StatementError(f"Upgrades not yet supported for {step}")


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

    title = "SOURCE"

    @property
    def step_name(self) -> str:
        return f"{self.source}.Source"

    def details(self) -> Sequence[str]:
        parts = [f"Source: {quote(self.source)}", f"Topic: {self.topic}"]
        parts.append(f"Formats: {self.key.format}, {self.value.format}")
        if self.window is not None:
            parts.append(f"Windowed: {self.window.type.value}")
        if self.timestamp is not None:
            parts.append(f"Timestamp: {quote(self.timestamp.name)}")
        return parts

    def over(self, below: Sequence[Node], needed: Names) -> ReadSource:
        schema = _kept(self.schema, needed)
        outputs = tuple(pair for pair in self.outputs if schema.find(pair[0]))
        return replace(self, schema=schema, outputs=outputs)

    def fixed(self) -> Iterator[Fixed]:
        if self.window is not None:
            raise _not_upgradeable(f"Windowed{_of_kind(self, 'Source')}")
        formats = self.key.format, self.value.format
        properties = {"topicName": self.topic, "formats": formats}
        yield Fixed(_of_kind(self, "Source"), properties | {"timestampColumn": self.timestamp})


@dataclass(frozen=True)
class Filter(Node):
    """Keeps rows whose predicate is true. A table's row that fails becomes a tombstone."""

    input: Node
    predicate: Expression

    title = "FILTER"

    def details(self) -> Sequence[str]:
        return [f"Where: {describe(self.predicate)}"]

    @property
    def keeps_state(self) -> bool:
        return self.kind is SourceKind.TABLE

    def requires(self, needed: Names) -> Sequence[Names]:
        return [needed | columns_used(self.predicate)]

    def narrowed(self, below: Sequence[Node], needed: Names) -> Schema:
        return below[0].schema


@dataclass(frozen=True)
class Selected:
    """A column, and the expression that it is computed by."""

    column: Column
    expression: Expression

    def __str__(self) -> str:
        return f"{describe(self.expression)} AS {quote(self.column.name)}"


def _selected(selected: Iterable[Selected]) -> str:
    return ", ".join(map(str, selected))


def _expressions(selected: Iterable[Selected]) -> list[Expression]:
    return [s.expression for s in selected]


@dataclass(frozen=True)
class Project(Node):
    """New columns from old ones: `selected` lists every column of `schema`, in its order."""

    input: Node
    selected: tuple[Selected, ...]

    title = "PROJECT"

    def details(self) -> Sequence[str]:
        return [f"Select: {_selected(self.selected)}"]

    def requires(self, needed: Names) -> Sequence[Names]:
        return [_used(_expressions(self.selected))]


@dataclass(frozen=True)
class TableFunctionCall:
    """A call of a table function; `column` names its result."""

    column: Column
    function: str
    signature: str
    args: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.function}({listed(self.args)}) AS {quote(self.column.name)}"


@dataclass(frozen=True)
class FlatMap(Node):
    """Each row becomes as many as the longest result of the table functions; shorter ones give
    nulls. `schema` is the input's with one value column per call."""

    input: Node
    calls: tuple[TableFunctionCall, ...]

    title = "FLAT_MAP"
    one_row_each = False

    def details(self) -> Sequence[str]:
        return [f"Table functions: {', '.join(map(str, self.calls))}"]

    def requires(self, needed: Names) -> Sequence[Names]:
        made = _names(c.column for c in self.calls)
        return [(needed - made) | _used(arg for call in self.calls for arg in call.args)]

    def narrowed(self, below: Sequence[Node], needed: Names) -> Schema:
        return Schema.of((*below[0].schema, *(c.column for c in self.calls)))

    def fixed(self) -> Iterator[Fixed]:
        raise _not_upgradeable("StreamFlatMap")


@dataclass(frozen=True)
class Rekey(Node):
    """PARTITION BY: other columns become the key; all columns of the input stay readable."""

    input: Node
    keys: tuple[Selected, ...]

    title = "REKEY"
    step_name = "PartitionBy"

    def details(self) -> Sequence[str]:
        return [f"Partition by: {_selected(self.keys) or 'null'}"]

    def requires(self, needed: Names) -> Sequence[Names]:
        return [needed | _used(_expressions(self.keys))]

    def narrowed(self, below: Sequence[Node], needed: Names) -> Schema:
        kept = _names(below[0].schema) | _names(k.column for k in self.keys)
        return Schema.of(c for c in self.schema if c.name in kept)

    def fixed(self) -> Iterator[Fixed]:
        keys = [describe(k.expression) for k in self.keys]
        yield Fixed("StreamSelectKey", {"keyExpressions": keys})


@dataclass(frozen=True)
class Window:
    """WINDOW clause. Milliseconds; `grace` None means ksqlDB's default of a day."""

    type: WindowType
    size_ms: int  # the inactivity gap of a session
    advance_ms: int | None
    grace_ms: int | None
    retention_ms: int | None

    def __str__(self) -> str:
        what = {"SIZE": self.size_ms, "ADVANCE": self.advance_ms, "GRACE": self.grace_ms}
        given = (f"{name} {ms} MILLISECONDS" for name, ms in what.items() if ms is not None)
        return f"Window: {self.type.value} ({', '.join(given)})"


@dataclass(frozen=True)
class AggregateCall:
    """A call; `column` names its result, `literals` are trailing constant arguments (n of TOPK)."""

    column: Column
    function: str
    signature: str
    args: tuple[Expression, ...]
    literals: tuple[object, ...]

    def __str__(self) -> str:
        args = ", ".join((*map(describe, self.args), *map(literal, self.literals)))
        return f"{self.function}({args}) AS {quote(self.column.name)}"


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

    title = "AGGREGATE"
    one_row_each = False
    keeps_state = True

    @property
    def store_name(self) -> str:
        return "Aggregate-Aggregate-Materialize"  # as ksqlDB calls it

    def details(self) -> Sequence[str]:
        calls = ", ".join(map(str, self.calls))
        parts = [f"Group by: {_selected(self.keys)}", f"Aggregates: {calls}"]
        return parts if self.window is None else [*parts, str(self.window)]

    @property
    def _args(self) -> list[Expression]:
        return [arg for call in self.calls for arg in call.args]

    def requires(self, needed: Names) -> Sequence[Names]:
        return [_used((*_expressions((*self.keys, *self.required)), *self._args))]

    def narrowed(self, below: Sequence[Node], needed: Names) -> Schema:
        return _kept(self.schema, needed | _names(c.column for c in self.calls))

    def fixed(self) -> Iterator[Fixed]:
        if self.window is not None:
            raise _not_upgradeable("StreamWindowedAggregate")
        if self.input.kind is SourceKind.TABLE:
            raise _not_upgradeable("TableAggregate")
        yield Fixed(
            "StreamAggregate",
            {
                "columns not part of aggregate": f"[{', '.join(map(quote, self._columns_read()))}]",
                "aggregate functions": [f"{c.function}({listed(c.args)})" for c in self.calls],
            },
        )
        keys = [describe(k.expression) for k in self.keys]
        yield Fixed("StreamGroupBy", {"group by clause": keys})

    def _columns_read(self) -> list[str]:
        """The columns that a grouped query reads, in the order it names them."""
        expressions = [*_expressions(self.keys), *self._args]
        below = self.input
        while isinstance(below, Filter):
            expressions.append(below.predicate)
            below = below.input
        return list(dict.fromkeys(name for e in expressions for name in sorted(columns_used(e))))


@dataclass(frozen=True)
class Suppress(Node):
    """EMIT FINAL: one row per window, when it closes."""

    input: Node
    window: Window

    title = "SUPPRESS"
    keeps_state = True

    def details(self) -> Sequence[str]:
        return [str(self.window)]

    def requires(self, needed: Names) -> Sequence[Names]:
        return [needed]

    def narrowed(self, below: Sequence[Node], needed: Names) -> Schema:
        return below[0].schema


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

    one_row_each = False
    keeps_state = True

    def details(self) -> Sequence[str]:
        on = f"On: {describe(self.left_key)} = {describe(self.right_key)}"
        return [f"Type: {self.type.value}", on]

    def requires(self, needed: Names) -> Sequence[Names]:
        return [needed | columns_used(self.left_key), needed | columns_used(self.right_key)]

    def narrowed(self, below: Sequence[Node], needed: Names) -> Schema:
        return _kept(self.schema, needed)

    def fixed(self) -> Iterator[Fixed]:
        raise _not_upgradeable(type(self).__name__)


@dataclass(frozen=True)
class StreamStreamJoin(Join):
    """Joins rows of two streams that are close to each other in time."""

    before_ms: int
    after_ms: int
    grace_ms: int | None  # None: rows are kept for as long as ksqlDB's default (a day), eager left

    title = "STREAM_STREAM_JOIN"

    def details(self) -> Sequence[str]:
        within = f"Within: {self.before_ms} before, {self.after_ms} after, in milliseconds"
        return [*super().details(), within]


@dataclass(frozen=True)
class StreamTableJoin(Join):
    """Joins a stream's row with the table's row at that time."""

    title = "STREAM_TABLE_JOIN"

    def state_from(self) -> Sequence[bool]:
        return [False, True]


@dataclass(frozen=True)
class TableTableJoin(Join):
    """Joins two tables on their primary keys."""

    title = "TABLE_TABLE_JOIN"


@dataclass(frozen=True)
class ForeignKeyJoin(Join):
    """`left_key` is any expression over the left row, `right_key` the right's primary key; the
    result has the left's primary key, all its columns (`key` is the first of them)."""

    title = "FK_TABLE_TABLE_JOIN"

    def fixed(self) -> Iterator[Fixed]:
        raise _not_upgradeable("ForeignKeyTableTableJoin")


@dataclass(frozen=True)
class Write(Node):
    """Writes the rows as records of a topic."""

    input: Node
    sink: str
    topic: str
    key: Serde
    value: Serde
    timestamp: TimestampColumn | None
    window: WindowedKey | None

    title = "SINK"
    step_name = "Sink"

    def details(self) -> Sequence[str]:
        formats = f"Formats: {self.key.format}, {self.value.format}"
        return [f"Sink: {quote(self.sink)}", f"Topic: {self.topic}", formats]

    def fixed(self) -> Iterator[Fixed]:
        formats = self.key.format, self.value.format
        properties = {"formats": formats, "topicName": self.topic}
        yield Fixed(_of_kind(self, "Sink"), properties | {"timestampColumn": self.timestamp})


@dataclass(frozen=True)
class Answer(Node):
    """Returns the rows to the client of a push or pull query."""

    input: Node
    limit: int | None

    title = "ANSWER"

    def details(self) -> Sequence[str]:
        return [] if self.limit is None else [f"Limit: {self.limit}"]


def _input_names(node: Node) -> list[str]:
    return [f.name for f in fields(node) if isinstance(getattr(node, f.name), Node)]


def inputs(node: Node) -> Iterator[Node]:
    return (getattr(node, name) for name in _input_names(node))


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
