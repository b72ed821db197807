"""Connectors: CREATE, DROP, SHOW, DESCRIBE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from headrace.model.errors import Position
from headrace.sql.statements.base import Drop, ReadingStatement
from headrace.sql.statements.statement_parser import StatementParser, begins
from headrace.sql.tree import Names, Properties, Statement, with_clause, words


class ConnectorType(Enum):
    SOURCE = "SOURCE"
    SINK = "SINK"


@begins("CREATE SOURCE CONNECTOR", "CREATE SINK CONNECTOR")
@dataclass(frozen=True)
class CreateConnector(Statement):
    """`properties` keep the case of quoted names: they are the Connect worker's, not ours."""

    name: str
    type: ConnectorType
    properties: Properties
    if_not_exists: bool = False

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        if_not_exists = p.accept_if_not_exists()
        name = p.identifier()
        if p.kind != "WITH":
            p.expect("WITH")
        properties = p.properties(keep_case=True)
        return cls(name, ConnectorType(words[1]), properties, if_not_exists, position=position)

    def sql(self, names: Names) -> str:
        head = words(
            f"CREATE {self.type.value} CONNECTOR",
            (self.if_not_exists, "IF NOT EXISTS"),
            names(self.name),
        )
        return head + with_clause(self.properties, names)


@begins("DROP CONNECTOR")
@dataclass(frozen=True)
class DropConnector(Drop):
    pass


@begins("SHOW CONNECTORS", "SHOW SOURCE CONNECTORS", "SHOW SINK CONNECTORS")
@dataclass(frozen=True)
class ListConnectors(ReadingStatement):
    """`type` is None for connectors of both types."""

    type: ConnectorType | None = None

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        return cls(ConnectorType(words[1]) if len(words) > 2 else None, position=position)

    def sql(self, names: Names) -> str:
        return words("SHOW", self.type.value if self.type is not None else "", "CONNECTORS")


@begins("SHOW CONNECTOR PLUGINS")
@dataclass(frozen=True)
class ListConnectorPlugins(ReadingStatement):
    pass


@begins("DESCRIBE CONNECTOR")
@dataclass(frozen=True)
class DescribeConnector(ReadingStatement):
    name: str

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        return cls(p.identifier(), position=position)

    def sql(self, names: Names) -> str:
        return f"{self.title} {names(self.name)}"
