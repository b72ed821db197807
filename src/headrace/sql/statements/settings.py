"""Settings: SET, UNSET, ALTER SYSTEM, SHOW PROPERTIES."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.model.errors import Position
from headrace.sql.statements.base import ReadingStatement, SessionStatement
from headrace.sql.statements.statement_parser import StatementParser, begins
from headrace.sql.tree import Names, Statement, string


@begins("SET")
@dataclass(frozen=True)
class SetProperty(SessionStatement):
    name: str
    value: str

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        name = p.string()
        p.expect("=")
        return cls(name, p.string(), position=position)

    def sql(self, names: Names) -> str:
        return f"{self.title} {string(self.name)}={string(self.value)}"


@begins("UNSET")
@dataclass(frozen=True)
class UnsetProperty(SessionStatement):
    name: str

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        return cls(p.string(), position=position)

    def sql(self, names: Names) -> str:
        return f"{self.title} {string(self.name)}"


@begins("ALTER SYSTEM")
@dataclass(frozen=True)
class AlterSystem(Statement):
    name: str
    value: str

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        name = p.string()
        p.expect("=")
        return cls(name, p.string(), position=position)

    def sql(self, names: Names) -> str:
        return f"{self.title} {string(self.name)}={string(self.value)}"


@begins("SHOW PROPERTIES")
@dataclass(frozen=True)
class ListProperties(ReadingStatement):
    pass
