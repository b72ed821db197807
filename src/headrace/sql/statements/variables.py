"""Variables: DEFINE, UNDEFINE, SHOW VARIABLES."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.model.errors import Position
from headrace.sql.statements.base import ReadingStatement, SessionStatement
from headrace.sql.statements.statement_parser import StatementParser, begins
from headrace.sql.tree import Names, Statement, string


@begins("DEFINE")
@dataclass(frozen=True)
class DefineVariable(SessionStatement):
    """`value` may itself hold `${variables}`."""

    name: str
    value: str

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        name = _variable_name(p)
        p.expect("=")
        return cls(name, p.string(), position=position)

    def sql(self, names: Names) -> str:
        return f"{self.title} {self.name}={string(self.value)}"


@begins("UNDEFINE")
@dataclass(frozen=True)
class UndefineVariable(SessionStatement):
    name: str

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        return cls(_variable_name(p), position=position)

    def sql(self, names: Names) -> str:
        return f"{self.title} {self.name}"


def _variable_name(p: StatementParser) -> str:
    if p.kind != "identifier" and not p.kind.isupper():  # any word may name a variable
        p.fail()
    return p.advance().text


@begins("SHOW VARIABLES")
@dataclass(frozen=True)
class ListVariables(ReadingStatement):
    pass
