"""What statements have in common: what they do, and the forms that many of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.model.errors import Position
from headrace.sql.statements.statement_parser import StatementParser
from headrace.sql.tree import Effect, Names, Statement, words


@dataclass(frozen=True)
class ReadingStatement(Statement):
    """A statement that changes nothing; one without parts says nothing but its title."""

    effect = Effect.READS

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        return cls(position=position)

    def sql(self, names: Names) -> str:
        return self.title


@dataclass(frozen=True)
class ExtendableStatement(ReadingStatement):
    """One that EXTENDED may follow."""

    extended: bool = False

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        return cls(extended=p.accept("EXTENDED"), position=position)

    def sql(self, names: Names) -> str:
        return words(self.title, (self.extended, "EXTENDED"))


@dataclass(frozen=True)
class SessionStatement(Statement):
    """A statement that applies to later statements of the same session."""

    effect = Effect.SESSION


@dataclass(frozen=True)
class Drop(Statement):
    """DROP of something that has a name."""

    name: str
    if_exists: bool = False

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        if_exists = p.accept_if_exists()
        return cls(p.identifier(), if_exists, position=position)

    def sql(self, names: Names) -> str:
        return words(self.title, (self.if_exists, "IF EXISTS"), names(self.name))
