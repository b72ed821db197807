"""Streams and tables: CREATE, CREATE … AS SELECT, ALTER, DROP, SHOW, DESCRIBE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from headrace.model.errors import Position
from headrace.model.sources import SourceKind
from headrace.model.types import SqlType, quote
from headrace.sql.statements.base import Drop, ExtendableStatement, ReadingStatement
from headrace.sql.statements.statement_parser import StatementParser, begins
from headrace.sql.tree import (
    ConstraintKind,
    Names,
    Node,
    Properties,
    Query,
    Statement,
    TableElement,
    listed,
    type_text,
    with_clause,
    words,
)


@begins("CREATE OR REPLACE")
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

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        kind, is_source = words[-1], "SOURCE" in words
        or_replace = kind == "REPLACE"
        if or_replace:
            is_source = p.accept("SOURCE")
            kind = p.expect("TABLE" if p.kind == "TABLE" else "STREAM").kind
        create, create_as, key = _CREATED[kind]
        if_not_exists = p.accept_if_not_exists()
        name = p.source_name()
        elements = p.elements()
        properties = p.properties()
        if not elements and not is_source and p.accept("AS"):
            query = p.query(persistent=True)
            if query.limit is not None:
                p.reject(f"CREATE {kind} AS SELECT statements don't support LIMIT clause.")
            return create_as(name, query, properties, or_replace, if_not_exists, position=position)
        p.key_must_be(key, elements)
        return create(
            name, elements, properties, or_replace, if_not_exists, is_source, position=position
        )

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
        return head + elements + with_clause(self.properties, names)


@begins("CREATE STREAM", "CREATE SOURCE STREAM")
@dataclass(frozen=True)
class CreateStream(CreateSource):
    source_kind = SourceKind.STREAM


@begins("CREATE TABLE", "CREATE SOURCE TABLE")
@dataclass(frozen=True)
class CreateTable(CreateSource):
    source_kind = SourceKind.TABLE


@dataclass(frozen=True)
class CreateAsSelect(Statement):
    """A stream or table that a query fills; read as one over a topic until AS."""

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
        return f"{head}{with_clause(self.properties, names)} AS {self.query.sql(names)}"


@dataclass(frozen=True)
class CreateStreamAsSelect(CreateAsSelect):
    source_kind = SourceKind.STREAM


@dataclass(frozen=True)
class CreateTableAsSelect(CreateAsSelect):
    source_kind = SourceKind.TABLE


_CREATED: dict[str, tuple[type[CreateSource], type[CreateAsSelect], ConstraintKind]] = {
    "STREAM": (CreateStream, CreateStreamAsSelect, ConstraintKind.KEY),
    "TABLE": (CreateTable, CreateTableAsSelect, ConstraintKind.PRIMARY_KEY),
}


@dataclass(frozen=True)
class DropSource(Drop):
    source_kind: ClassVar[SourceKind]

    delete_topic: bool = False

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        if_exists = p.accept_if_exists()
        name = p.source_name()
        delete_topic = p.accept("DELETE")
        if delete_topic:
            p.expect("TOPIC")
        return cls(name, if_exists, delete_topic, position=position)

    def sql(self, names: Names) -> str:
        return words(super().sql(names), (self.delete_topic, "DELETE TOPIC"))


@begins("DROP STREAM")
@dataclass(frozen=True)
class DropStream(DropSource):
    source_kind = SourceKind.STREAM


@begins("DROP TABLE")
@dataclass(frozen=True)
class DropTable(DropSource):
    source_kind = SourceKind.TABLE


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

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        name = p.source_name()
        return cls(name, p.listed(lambda: _alter_option(p)), position=position)

    def sql(self, names: Names) -> str:
        options = ",\n".join(option.sql(names) for option in self.options)
        return f"{self.title} {names(self.name)}\n{options}"


def _alter_option(p: StatementParser) -> AlterOption:
    position = p.position_of(p.expect("ADD"))
    # In `ADD COLUMN INT` it is the name: the type that would begin before the third token is over.
    is_name = p.sees_end(2) or p.peek(2) in (",", "(", "<")
    if p.kind == "COLUMN" and p.sees_name(1) and not is_name:
        p.advance()
    return AlterOption(p.identifier(), p.type(), position=position)


@begins("ALTER STREAM")
@dataclass(frozen=True)
class AlterStream(AlterSource):
    source_kind = SourceKind.STREAM


@begins("ALTER TABLE")
@dataclass(frozen=True)
class AlterTable(AlterSource):
    source_kind = SourceKind.TABLE


@begins("SHOW STREAMS")
@dataclass(frozen=True)
class ListStreams(ExtendableStatement):
    pass


@begins("SHOW TABLES")
@dataclass(frozen=True)
class ListTables(ExtendableStatement):
    pass


@begins("DESCRIBE")
@dataclass(frozen=True)
class DescribeSource(ReadingStatement):
    name: str
    extended: bool = False

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        name = p.source_name()
        return cls(name, p.accept("EXTENDED"), position=position)

    def sql(self, names: Names) -> str:
        # Without quotes TABLES would mean all of them.
        name = quote(self.name) if self.name in ("TABLES", "FUNCTION") else names(self.name)
        return words(self.title, name, (self.extended, "EXTENDED"))


@begins("DESCRIBE STREAMS")
@dataclass(frozen=True)
class DescribeStreams(ExtendableStatement):
    pass


@begins("DESCRIBE TABLES")
@dataclass(frozen=True)
class DescribeTables(ExtendableStatement):
    pass
