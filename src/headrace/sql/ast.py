"""The syntax tree: one frozen dataclass for each statement, clause and expression of the language.

The tree says what was written, not what it means: names are not looked up and expressions have no
types. Two trees are equal when they say the same, wherever in a text they stood: `position` takes
no part in comparisons.
"""

from __future__ import annotations

import dataclasses
import decimal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from headrace.model.errors import Position
from headrace.model.requests import QueryKind
from headrace.model.types import SqlType, quote


@dataclass(frozen=True)
class Node:
    """Any part of the tree."""

    position: Position | None = field(default=None, compare=False, repr=False, kw_only=True)


# ---------------------------------------------------------------------------------------- types


@dataclass(frozen=True)
class TypeRef(SqlType):
    """A type that is known by name only: a custom type, found in the catalog when planning.

    It may stand inside arrays, maps and structs (`headrace.model.types.walk` finds it there).
    """

    name: str

    def __str__(self) -> str:
        return quote(self.name)


# ---------------------------------------------------------------------------------- expressions


@dataclass(frozen=True)
class Expression(Node):
    """Anything that has a value for a row."""


@dataclass(frozen=True)
class Literal(Expression):
    """A constant. Every literal has a `value`."""

    value: Any


@dataclass(frozen=True)
class NullLiteral(Literal):
    value: None = None


@dataclass(frozen=True)
class BooleanLiteral(Literal):
    value: bool


@dataclass(frozen=True)
class IntegerLiteral(Literal):
    value: int


@dataclass(frozen=True)
class LongLiteral(Literal):
    value: int


@dataclass(frozen=True)
class DecimalLiteral(Literal):
    """A number with a point; its digits are its precision and scale."""

    value: decimal.Decimal


@dataclass(frozen=True)
class DoubleLiteral(Literal):
    """A number with an exponent."""

    value: float


@dataclass(frozen=True)
class StringLiteral(Literal):
    value: str


@dataclass(frozen=True)
class ColumnRef(Expression):
    """A column, optionally of a named source: `name` or `source.name`. `stands_for` is the text of
    the expression in whose place a query's own column was put, for whoever reads of it."""

    source: str | None
    name: str
    stands_for: str | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Arithmetic(Expression):
    """`op` is one of `+ - * / %`."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Sign(Expression):
    """A sign before an expression; `op` is `-` or `+`."""

    op: str
    operand: Expression


@dataclass(frozen=True)
class Comparison(Expression):
    """`op` is one of `= <> < <= > >=` or `IS DISTINCT FROM`; `IS NOT DISTINCT FROM` is a Not."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Logical(Expression):
    """`op` is `AND` or `OR`."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Not(Expression):
    operand: Expression


@dataclass(frozen=True)
class IsNull(Expression):
    operand: Expression


@dataclass(frozen=True)
class IsNotNull(Expression):
    operand: Expression


@dataclass(frozen=True)
class Between(Expression):
    value: Expression
    lower: Expression
    upper: Expression


@dataclass(frozen=True)
class InList(Expression):
    value: Expression
    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Like(Expression):
    value: Expression
    pattern: Expression
    escape: str | None = None


@dataclass(frozen=True)
class When(Node):
    condition: Expression
    result: Expression


@dataclass(frozen=True)
class SearchedCase(Expression):
    whens: tuple[When, ...]
    default: Expression | None = None


@dataclass(frozen=True)
class SimpleCase(Expression):
    operand: Expression
    whens: tuple[When, ...]
    default: Expression | None = None


@dataclass(frozen=True)
class Cast(Expression):
    """A cast; typed literals such as `DATE '2024-02-29'` are casts of their text."""

    operand: Expression
    type: SqlType


@dataclass(frozen=True)
class AtTimeZone(Expression):
    operand: Expression
    zone: str


@dataclass(frozen=True)
class Subscript(Expression):
    base: Expression
    index: Expression


@dataclass(frozen=True)
class Dereference(Expression):
    """A field of a struct: `base->field`."""

    base: Expression
    field: str


@dataclass(frozen=True)
class CreateArray(Expression):
    items: tuple[Expression, ...]


@dataclass(frozen=True)
class CreateMap(Expression):
    entries: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True)
class CreateStruct(Expression):
    fields: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class Call(Expression):
    """A function applied to arguments. `a || b` is a call of CONCAT; `f(*)` has no arguments."""

    name: str
    args: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Lambda(Expression):
    """An argument of a function that is itself a function of `params`."""

    params: tuple[str, ...]
    body: Expression


@dataclass(frozen=True)
class LambdaVar(Expression):
    """A parameter of an enclosing lambda."""

    name: str


class TimeUnit(Enum):
    """Units of time a duration may be written in; the value is its milliseconds."""

    MILLISECONDS = 1
    SECONDS = 1_000
    MINUTES = 60_000
    HOURS = 3_600_000
    DAYS = 86_400_000


@dataclass(frozen=True)
class IntervalUnit(Expression):
    """A unit of time as an argument of a function, as in `TIMESTAMPADD(DAYS, 1, ts)`."""

    unit: TimeUnit


# -------------------------------------------------------------------------------------- queries


@dataclass(frozen=True)
class Duration(Node):
    """A length of time as it was written."""

    value: int
    unit: TimeUnit

    @property
    def millis(self) -> int:
        return self.value * self.unit.value


@dataclass(frozen=True)
class Window(Node):
    """How a grouped query divides time."""


@dataclass(frozen=True)
class TumblingWindow(Window):
    size: Duration
    retention: Duration | None = None
    grace: Duration | None = None


@dataclass(frozen=True)
class HoppingWindow(Window):
    size: Duration
    advance: Duration
    retention: Duration | None = None
    grace: Duration | None = None


@dataclass(frozen=True)
class SessionWindow(Window):
    gap: Duration
    retention: Duration | None = None
    grace: Duration | None = None


@dataclass(frozen=True)
class SelectItem(Node):
    """One item between SELECT and FROM."""


@dataclass(frozen=True)
class SingleColumn(SelectItem):
    expression: Expression
    alias: str | None = None


@dataclass(frozen=True)
class AllColumns(SelectItem):
    """`*` or `source.*`"""

    source: str | None = None


@dataclass(frozen=True)
class StructAll(SelectItem):
    """`struct->*`: every field of a struct as a column."""

    base: Expression


@dataclass(frozen=True)
class AliasedRelation(Node):
    """A source and the name it has in the query; without an alias both are the same."""

    name: str
    alias: str


class JoinType(Enum):
    INNER = "INNER"
    LEFT = "LEFT OUTER"
    RIGHT = "RIGHT OUTER"
    OUTER = "FULL OUTER"


@dataclass(frozen=True)
class Within(Node):
    """How far apart in time two joined records may be."""

    before: Duration
    after: Duration
    grace: Duration | None = None


@dataclass(frozen=True)
class JoinedSource(Node):
    type: JoinType
    relation: AliasedRelation
    on: Expression
    within: Within | None = None


@dataclass(frozen=True)
class Join(Node):
    left: AliasedRelation
    sources: tuple[JoinedSource, ...]


Relation = AliasedRelation | Join


class Emit(Enum):
    CHANGES = "CHANGES"
    FINAL = "FINAL"


# ----------------------------------------------------------------------------------- statements


class Effect(Enum):
    """What a statement does to the server."""

    READS = "reads"
    CHANGES = "changes"
    SESSION = "session"  # it holds for the statements that follow it, and is then forgotten


@dataclass(frozen=True)
class Statement(Node):
    """Anything that ends with a semicolon. Whoever may only read may not run what changes: a new
    statement changes something unless it says otherwise."""

    effect: ClassVar[Effect] = Effect.CHANGES


@dataclass(frozen=True)
class Query(Statement):
    """A SELECT. Without `emit` it is a pull query; inside a statement that makes it persistent,
    EMIT CHANGES is implied. `group_by` is empty for `GROUP BY ()` and None without the clause."""

    effect: ClassVar[Effect] = Effect.READS

    select: tuple[SelectItem, ...]
    source: Relation
    window: Window | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] | None = None
    partition_by: tuple[Expression, ...] | None = None
    having: Expression | None = None
    emit: Emit | None = None
    limit: int | None = None

    @property
    def kind(self) -> QueryKind:
        return QueryKind.PULL if self.emit is None else QueryKind.PUSH


class ConstraintKind(Enum):
    KEY = "KEY"
    PRIMARY_KEY = "PRIMARY KEY"
    HEADERS = "HEADERS"
    HEADER = "HEADER"


KEY_KINDS = frozenset({ConstraintKind.KEY, ConstraintKind.PRIMARY_KEY})
HEADER_KINDS = frozenset({ConstraintKind.HEADERS, ConstraintKind.HEADER})


@dataclass(frozen=True)
class Constraint(Node):
    """Where a column is read from, other than the value; `header_key` only for `HEADER('key')`."""

    kind: ConstraintKind
    header_key: str | None = None


@dataclass(frozen=True)
class TableElement(Node):
    name: str
    type: SqlType
    constraint: Constraint | None = None


# The WITH clause: in written order, no name twice.
Properties = tuple[tuple[str, Literal], ...]


@dataclass(frozen=True)
class CreateSource(Statement):
    """A stream or table over a topic."""

    name: str
    elements: tuple[TableElement, ...] = ()
    properties: Properties = ()
    or_replace: bool = False
    if_not_exists: bool = False
    is_source: bool = False


@dataclass(frozen=True)
class CreateStream(CreateSource):
    pass


@dataclass(frozen=True)
class CreateTable(CreateSource):
    pass


@dataclass(frozen=True)
class CreateAsSelect(Statement):
    """A stream or table that a query fills."""

    name: str
    query: Query
    properties: Properties = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateStreamAsSelect(CreateAsSelect):
    pass


@dataclass(frozen=True)
class CreateTableAsSelect(CreateAsSelect):
    pass


@dataclass(frozen=True)
class InsertInto(Statement):
    """`position` is that of the target, here and in INSERT VALUES."""

    target: str
    query: Query
    properties: Properties = ()


@dataclass(frozen=True)
class InsertValues(Statement):
    target: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True)
class DropSource(Statement):
    name: str
    if_exists: bool = False
    delete_topic: bool = False


@dataclass(frozen=True)
class DropStream(DropSource):
    pass


@dataclass(frozen=True)
class DropTable(DropSource):
    pass


@dataclass(frozen=True)
class AlterOption(Node):
    """`ADD COLUMN name type`"""

    name: str
    type: SqlType


@dataclass(frozen=True)
class AlterSource(Statement):
    name: str
    options: tuple[AlterOption, ...]


@dataclass(frozen=True)
class AlterStream(AlterSource):
    pass


@dataclass(frozen=True)
class AlterTable(AlterSource):
    pass


@dataclass(frozen=True)
class AlterSystem(Statement):
    name: str
    value: str


@dataclass(frozen=True)
class CreateType(Statement):
    name: str
    type: SqlType
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropType(Statement):
    name: str
    if_exists: bool = False


class ConnectorType(Enum):
    SOURCE = "SOURCE"
    SINK = "SINK"


@dataclass(frozen=True)
class CreateConnector(Statement):
    """`properties` keep the case of quoted names: they are the Connect worker's, not ours."""

    name: str
    type: ConnectorType
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropConnector(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class QueryControl(Statement):
    """An order to a running query; `query_id` is None for ALL."""

    query_id: str | None


@dataclass(frozen=True)
class TerminateQuery(QueryControl):
    pass


@dataclass(frozen=True)
class PauseQuery(QueryControl):
    pass


@dataclass(frozen=True)
class ResumeQuery(QueryControl):
    pass


@dataclass(frozen=True)
class SetProperty(Statement):
    effect: ClassVar[Effect] = Effect.SESSION

    name: str
    value: str


@dataclass(frozen=True)
class UnsetProperty(Statement):
    effect: ClassVar[Effect] = Effect.SESSION

    name: str


@dataclass(frozen=True)
class DefineVariable(Statement):
    """`value` may itself hold `${variables}`."""

    effect: ClassVar[Effect] = Effect.SESSION

    name: str
    value: str


@dataclass(frozen=True)
class UndefineVariable(Statement):
    effect: ClassVar[Effect] = Effect.SESSION

    name: str


@dataclass(frozen=True)
class ListProperties(Statement):
    effect: ClassVar[Effect] = Effect.READS


@dataclass(frozen=True)
class ListTopics(Statement):
    effect: ClassVar[Effect] = Effect.READS

    all: bool = False
    extended: bool = False


@dataclass(frozen=True)
class ListStreams(Statement):
    effect: ClassVar[Effect] = Effect.READS

    extended: bool = False


@dataclass(frozen=True)
class ListTables(Statement):
    effect: ClassVar[Effect] = Effect.READS

    extended: bool = False


@dataclass(frozen=True)
class ListQueries(Statement):
    effect: ClassVar[Effect] = Effect.READS

    extended: bool = False


@dataclass(frozen=True)
class ListFunctions(Statement):
    effect: ClassVar[Effect] = Effect.READS


@dataclass(frozen=True)
class ListConnectors(Statement):
    """`type` is None for connectors of both types."""

    effect: ClassVar[Effect] = Effect.READS

    type: ConnectorType | None = None


@dataclass(frozen=True)
class ListConnectorPlugins(Statement):
    effect: ClassVar[Effect] = Effect.READS


@dataclass(frozen=True)
class ListTypes(Statement):
    effect: ClassVar[Effect] = Effect.READS


@dataclass(frozen=True)
class ListVariables(Statement):
    effect: ClassVar[Effect] = Effect.READS


@dataclass(frozen=True)
class DescribeSource(Statement):
    effect: ClassVar[Effect] = Effect.READS

    name: str
    extended: bool = False


@dataclass(frozen=True)
class DescribeStreams(Statement):
    effect: ClassVar[Effect] = Effect.READS

    extended: bool = False


@dataclass(frozen=True)
class DescribeTables(Statement):
    effect: ClassVar[Effect] = Effect.READS

    extended: bool = False


@dataclass(frozen=True)
class DescribeFunction(Statement):
    """`name` keeps its case and quotes, as written."""

    effect: ClassVar[Effect] = Effect.READS

    name: str


@dataclass(frozen=True)
class DescribeConnector(Statement):
    effect: ClassVar[Effect] = Effect.READS

    name: str


@dataclass(frozen=True)
class Explain(Statement):
    """Of a running query (`query_id`) or of a statement; never both."""

    effect: ClassVar[Effect] = Effect.READS

    query_id: str | None = None
    statement: Statement | None = None


@dataclass(frozen=True)
class PrintTopic(Statement):
    """`topic` keeps its case. Every `interval`-th record, at most `limit`."""

    effect: ClassVar[Effect] = Effect.READS

    topic: str
    from_beginning: bool = False
    interval: int | None = None
    limit: int | None = None


@dataclass(frozen=True)
class AssertTopic(Statement):
    effect: ClassVar[Effect] = Effect.READS

    topic: str
    properties: Properties = ()
    timeout: Duration | None = None
    exists: bool = True


@dataclass(frozen=True)
class AssertSchema(Statement):
    effect: ClassVar[Effect] = Effect.READS

    subject: str | None = None
    id: int | None = None
    timeout: Duration | None = None
    exists: bool = True


@dataclass(frozen=True)
class TestStatement(Statement):
    """A statement that only test files may hold."""

    __test__ = False  # not a test class, whatever its name suggests to pytest


@dataclass(frozen=True)
class AssertValues(TestStatement):
    row: InsertValues


@dataclass(frozen=True)
class AssertTombstone(TestStatement):
    """`ASSERT NULL VALUES`: `row` holds the key only."""

    row: InsertValues


@dataclass(frozen=True)
class AssertStream(TestStatement):
    expected: CreateStream


@dataclass(frozen=True)
class AssertTable(TestStatement):
    expected: CreateTable


@dataclass(frozen=True)
class RunScript(TestStatement):
    path: str


# ------------------------------------------------------------------------------------- the walk


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below a node, in written order."""
    return (child for name in _FIELD_NAMES[type(node)] for child in _nodes(getattr(node, name)))


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, outermost first."""
    todo = [node]
    while todo:
        one = todo.pop()
        yield one
        todo += reversed([*children(one)])


def rewrite(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with `change` applied to each part of it, innermost first."""
    updates = {}
    for name in _FIELD_NAMES[type(expression)]:
        old = getattr(expression, name)
        new = _rewrite_value(old, change)
        if new is not old:
            updates[name] = new
    return change(dataclasses.replace(expression, **updates) if updates else expression)


class _FieldNames(dict[type[Any], tuple[str, ...]]):
    """The fields of each kind of node that say what was written, looked up once."""

    def __missing__(self, kind: type[Any]) -> tuple[str, ...]:
        names = self[kind] = tuple(f.name for f in dataclasses.fields(kind) if f.compare)
        return names


_FIELD_NAMES = _FieldNames()


def _nodes(value: object) -> Iterable[Node]:
    if isinstance(value, Node):
        return (value,)
    if isinstance(value, tuple):
        return [node for item in value for node in _nodes(item)]
    return ()


def _rewrite_value(value: Any, change: Callable[[Expression], Expression]) -> Any:
    if isinstance(value, Expression):
        return rewrite(value, change)
    if isinstance(value, When):
        condition, result = (
            rewrite(value.condition, change),
            rewrite(value.result, change),
        )
        if condition is value.condition and result is value.result:
            return value
        return dataclasses.replace(value, condition=condition, result=result)
    if isinstance(value, tuple):
        items = tuple(_rewrite_value(item, change) for item in value)
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return value
