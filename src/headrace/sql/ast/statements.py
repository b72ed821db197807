"""Statements: their parts, printed form, and effect on the server."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from headrace.model.sources import SourceKind
from headrace.model.types import SqlType, quote
from headrace.sql.ast.base import (
    Effect,
    Names,
    Node,
    Statement,
    listed,
    needs_quotes,
    string,
    type_text,
    words,
)
from headrace.sql.ast.expressions import Expression, Literal
from headrace.sql.ast.queries import Duration, Query, clause


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

    def sql(self, names: Names) -> str:
        key = f"({string(self.header_key)})" if self.header_key is not None else ""
        return self.kind.value + key


@dataclass(frozen=True)
class TableElement(Node):
    name: str
    type: SqlType
    constraint: Constraint | None = None

    def sql(self, names: Names) -> str:
        constraint = f" {self.constraint.sql(names)}" if self.constraint is not None else ""
        return f"{names(self.name)} {type_text(self.type, names)}{constraint}"


# The WITH clause: in written order, no name twice.
Properties = tuple[tuple[str, Literal], ...]


def _with(properties: Properties, names: Names) -> str:
    if not properties:
        return ""
    entries = (f"{_property_name(name)}={value.sql(names)}" for name, value in properties)
    return f" WITH ({', '.join(entries)})"


def _property_name(name: str) -> str:
    return string(name) if needs_quotes(name) else name


# ------------------------------------------------------------------------------ CREATE, INSERT


@dataclass(frozen=True)
class CreateSource(Statement):
    """A stream or table over a topic."""

    source_kind: ClassVar[SourceKind]

    name: str
    elements: tuple[TableElement, ...] = ()
    properties: Properties = ()
    or_replace: bool = False
    if_not_exists: bool = False
    is_source: bool = False

    def sql(self, names: Names) -> str:
        head = words(
            "CREATE",
            (self.or_replace, "OR REPLACE"),
            (self.is_source, "SOURCE"),
            self.source_kind.value,
            (self.if_not_exists, "IF NOT EXISTS"),
            names(self.name),
        )
        elements = f" ({listed(self.elements, names)})" if self.elements else ""
        return head + elements + _with(self.properties, names)


@dataclass(frozen=True)
class CreateStream(CreateSource):
    source_kind = SourceKind.STREAM


@dataclass(frozen=True)
class CreateTable(CreateSource):
    source_kind = SourceKind.TABLE


@dataclass(frozen=True)
class CreateAsSelect(Statement):
    """A stream or table that a query fills."""

    source_kind: ClassVar[SourceKind]

    name: str
    query: Query
    properties: Properties = ()
    or_replace: bool = False
    if_not_exists: bool = False

    def sql(self, names: Names) -> str:
        head = words(
            "CREATE",
            (self.or_replace, "OR REPLACE"),
            self.source_kind.value,
            (self.if_not_exists, "IF NOT EXISTS"),
            names(self.name),
        )
        return f"{head}{_with(self.properties, names)} AS {self.query.sql(names)}"


@dataclass(frozen=True)
class CreateStreamAsSelect(CreateAsSelect):
    source_kind = SourceKind.STREAM


@dataclass(frozen=True)
class CreateTableAsSelect(CreateAsSelect):
    source_kind = SourceKind.TABLE


@dataclass(frozen=True)
class InsertInto(Statement):
    """`position` is that of the target, here and in INSERT VALUES."""

    target: str
    query: Query
    properties: Properties = ()

    def sql(self, names: Names) -> str:
        properties = _with(self.properties, names)
        return f"INSERT INTO {names(self.target)}{properties} {self.query.sql(names)}"


@dataclass(frozen=True)
class InsertValues(Statement):
    target: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]

    def sql(self, names: Names) -> str:
        return self.row("INSERT INTO", "VALUES", names)

    def row(self, verb: str, keyword: str, names: Names) -> str:
        columns = f"({', '.join(map(names, self.columns))}) " if self.columns else ""
        return f"{verb} {names(self.target)} {columns}{keyword} ({listed(self.values, names)})"


# --------------------------------------------------------------------------------- DROP, ALTER


@dataclass(frozen=True)
class Drop(Statement):
    """DROP of something that has a name; `what` is the word for it."""

    what: ClassVar[str]

    name: str
    if_exists: bool = False

    def sql(self, names: Names) -> str:
        return words("DROP", self.what, (self.if_exists, "IF EXISTS"), names(self.name))


@dataclass(frozen=True)
class DropSource(Drop):
    source_kind: ClassVar[SourceKind]

    delete_topic: bool = False

    def sql(self, names: Names) -> str:
        return words(super().sql(names), (self.delete_topic, "DELETE TOPIC"))


@dataclass(frozen=True)
class DropStream(DropSource):
    source_kind = SourceKind.STREAM
    what = "STREAM"


@dataclass(frozen=True)
class DropTable(DropSource):
    source_kind = SourceKind.TABLE
    what = "TABLE"


@dataclass(frozen=True)
class AlterOption(Node):
    """`ADD COLUMN name type` of an ALTER."""

    name: str
    type: SqlType

    def sql(self, names: Names) -> str:
        return f"ADD COLUMN {names(self.name)} {type_text(self.type, names)}"


@dataclass(frozen=True)
class AlterSource(Statement):
    source_kind: ClassVar[SourceKind]

    name: str
    options: tuple[AlterOption, ...]

    def sql(self, names: Names) -> str:
        options = ",\n".join(option.sql(names) for option in self.options)
        return f"ALTER {self.source_kind.value} {names(self.name)}\n{options}"


@dataclass(frozen=True)
class AlterStream(AlterSource):
    source_kind = SourceKind.STREAM


@dataclass(frozen=True)
class AlterTable(AlterSource):
    source_kind = SourceKind.TABLE


@dataclass(frozen=True)
class AlterSystem(Statement):
    name: str
    value: str

    def sql(self, names: Names) -> str:
        return f"ALTER SYSTEM {string(self.name)}={string(self.value)}"


# ------------------------------------------------------------------------- types and connectors


@dataclass(frozen=True)
class CreateType(Statement):
    name: str
    type: SqlType
    if_not_exists: bool = False

    def sql(self, names: Names) -> str:
        return words(
            "CREATE TYPE",
            (self.if_not_exists, "IF NOT EXISTS"),
            f"{names(self.name)} AS {type_text(self.type, names)}",
        )


@dataclass(frozen=True)
class DropType(Drop):
    what = "TYPE"


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

    def sql(self, names: Names) -> str:
        head = words(
            f"CREATE {self.type.value} CONNECTOR",
            (self.if_not_exists, "IF NOT EXISTS"),
            names(self.name),
        )
        return head + _with(self.properties, names)


@dataclass(frozen=True)
class DropConnector(Drop):
    what = "CONNECTOR"


# ------------------------------------------------------------------- queries and the session


@dataclass(frozen=True)
class QueryControl(Statement):
    """A statement that controls a running query; `query_id` is None for ALL."""

    verb: ClassVar[str]

    query_id: str | None

    def sql(self, names: Names) -> str:
        return f"{self.verb} {'ALL' if self.query_id is None else names(self.query_id)}"


@dataclass(frozen=True)
class TerminateQuery(QueryControl):
    verb = "TERMINATE"


@dataclass(frozen=True)
class PauseQuery(QueryControl):
    verb = "PAUSE"


@dataclass(frozen=True)
class ResumeQuery(QueryControl):
    verb = "RESUME"


@dataclass(frozen=True)
class SessionStatement(Statement):
    """A statement that applies to later statements of the same session."""

    effect = Effect.SESSION


@dataclass(frozen=True)
class SetProperty(SessionStatement):
    name: str
    value: str

    def sql(self, names: Names) -> str:
        return f"SET {string(self.name)}={string(self.value)}"


@dataclass(frozen=True)
class UnsetProperty(SessionStatement):
    name: str

    def sql(self, names: Names) -> str:
        return f"UNSET {string(self.name)}"


@dataclass(frozen=True)
class DefineVariable(SessionStatement):
    """`value` may itself hold `${variables}`."""

    name: str
    value: str

    def sql(self, names: Names) -> str:
        return f"DEFINE {self.name}={string(self.value)}"


@dataclass(frozen=True)
class UndefineVariable(SessionStatement):
    name: str

    def sql(self, names: Names) -> str:
        return f"UNDEFINE {self.name}"


# ---------------------------------------------------------------------- statements that only read


@dataclass(frozen=True)
class ReadingStatement(Statement):
    """A statement that changes nothing; `title` is all that one without parts says."""

    effect = Effect.READS
    title: ClassVar[str]

    def sql(self, names: Names) -> str:
        return self.title


@dataclass(frozen=True)
class ExtendableStatement(ReadingStatement):
    """One that EXTENDED may follow."""

    extended: bool = False

    def sql(self, names: Names) -> str:
        return words(self.title, (self.extended, "EXTENDED"))


@dataclass(frozen=True)
class ListProperties(ReadingStatement):
    title = "SHOW PROPERTIES"


@dataclass(frozen=True)
class ListTopics(ReadingStatement):
    all: bool = False
    extended: bool = False

    def sql(self, names: Names) -> str:
        return words("SHOW", (self.all, "ALL"), "TOPICS", (self.extended, "EXTENDED"))


@dataclass(frozen=True)
class ListStreams(ExtendableStatement):
    title = "SHOW STREAMS"


@dataclass(frozen=True)
class ListTables(ExtendableStatement):
    title = "SHOW TABLES"


@dataclass(frozen=True)
class ListQueries(ExtendableStatement):
    title = "SHOW QUERIES"


@dataclass(frozen=True)
class ListFunctions(ReadingStatement):
    title = "SHOW FUNCTIONS"


@dataclass(frozen=True)
class ListConnectors(ReadingStatement):
    """`type` is None for connectors of both types."""

    type: ConnectorType | None = None

    def sql(self, names: Names) -> str:
        return words("SHOW", self.type.value if self.type is not None else "", "CONNECTORS")


@dataclass(frozen=True)
class ListConnectorPlugins(ReadingStatement):
    title = "SHOW CONNECTOR PLUGINS"


@dataclass(frozen=True)
class ListTypes(ReadingStatement):
    title = "SHOW TYPES"


@dataclass(frozen=True)
class ListVariables(ReadingStatement):
    title = "SHOW VARIABLES"


@dataclass(frozen=True)
class DescribeSource(ReadingStatement):
    name: str
    extended: bool = False

    def sql(self, names: Names) -> str:
        # Without quotes TABLES would mean all of them.
        name = quote(self.name) if self.name in ("TABLES", "FUNCTION") else names(self.name)
        return words("DESCRIBE", name, (self.extended, "EXTENDED"))


@dataclass(frozen=True)
class DescribeStreams(ExtendableStatement):
    title = "DESCRIBE STREAMS"


@dataclass(frozen=True)
class DescribeTables(ExtendableStatement):
    title = "DESCRIBE TABLES"


@dataclass(frozen=True)
class DescribeFunction(ReadingStatement):
    """`name` keeps its case and quotes, as written."""

    name: str

    def sql(self, names: Names) -> str:
        return f"DESCRIBE FUNCTION {self.name}"


@dataclass(frozen=True)
class DescribeConnector(ReadingStatement):
    name: str

    def sql(self, names: Names) -> str:
        return f"DESCRIBE CONNECTOR {names(self.name)}"


@dataclass(frozen=True)
class Explain(ReadingStatement):
    """Of a running query (`query_id`) or of a statement; never both."""

    query_id: str | None = None
    statement: Statement | None = None

    def sql(self, names: Names) -> str:
        what = (
            self.statement.sql(names) if self.statement is not None else names(self.query_id or "")
        )
        return f"EXPLAIN \n{what}"


@dataclass(frozen=True)
class PrintTopic(ReadingStatement):
    """`topic` keeps its case. Every `interval`-th record, at most `limit`."""

    topic: str
    from_beginning: bool = False
    interval: int | None = None
    limit: int | None = None

    def sql(self, names: Names) -> str:
        return words(
            f"PRINT {string(self.topic)}",
            (self.from_beginning, "FROM BEGINNING"),
            (self.interval is not None, f"INTERVAL {self.interval}"),
            (self.limit is not None, f"LIMIT {self.limit}"),
        )


@dataclass(frozen=True)
class AssertTopic(ReadingStatement):
    topic: str
    properties: Properties = ()
    timeout: Duration | None = None
    exists: bool = True

    def sql(self, names: Names) -> str:
        head = words("ASSERT", (not self.exists, "NOT EXISTS"), "TOPIC", string(self.topic))
        return words(head + _with(self.properties, names), clause("TIMEOUT", self.timeout))


@dataclass(frozen=True)
class AssertSchema(ReadingStatement):
    subject: str | None = None
    id: int | None = None
    timeout: Duration | None = None
    exists: bool = True

    def sql(self, names: Names) -> str:
        return words(
            "ASSERT",
            (not self.exists, "NOT EXISTS"),
            "SCHEMA",
            (self.subject is not None, f"SUBJECT {string(self.subject or '')}"),
            (self.id is not None, f"ID {self.id}"),
            clause("TIMEOUT", self.timeout),
        )


# ------------------------------------------------------------------------------------ test files


@dataclass(frozen=True)
class TestStatement(Statement):
    """A statement that only test files may hold."""

    __test__ = False  # not a test class, whatever its name suggests to pytest


@dataclass(frozen=True)
class AssertValues(TestStatement):
    row: InsertValues

    def sql(self, names: Names) -> str:
        return self.row.row("ASSERT VALUES", "VALUES", names)


@dataclass(frozen=True)
class AssertTombstone(TestStatement):
    """`ASSERT NULL VALUES`: `row` holds the key only."""

    row: InsertValues

    def sql(self, names: Names) -> str:
        return self.row.row("ASSERT NULL VALUES", "KEY", names)


@dataclass(frozen=True)
class AssertStream(TestStatement):
    expected: CreateStream

    def sql(self, names: Names) -> str:
        return "ASSERT" + self.expected.sql(names).removeprefix("CREATE")


@dataclass(frozen=True)
class AssertTable(TestStatement):
    expected: CreateTable

    def sql(self, names: Names) -> str:
        return "ASSERT" + self.expected.sql(names).removeprefix("CREATE")


@dataclass(frozen=True)
class RunScript(TestStatement):
    path: str

    def sql(self, names: Names) -> str:
        return f"RUN SCRIPT {string(self.path)}"
