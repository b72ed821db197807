"""Statements that only test files may hold: assertions, and RUN SCRIPT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from headrace.model.errors import Position
from headrace.sql.statements.inserts import InsertValues
from headrace.sql.statements.sources import CreateSource, CreateStream, CreateTable
from headrace.sql.statements.statement_parser import TEST_STATEMENTS, StatementParser, begins
from headrace.sql.tree import ConstraintKind, Names, Statement, string


@dataclass(frozen=True)
class TestStatement(Statement):
    """A statement that only test files may hold."""

    __test__ = False  # not a test class, whatever its name suggests to pytest


@begins("ASSERT VALUES", table=TEST_STATEMENTS)
@dataclass(frozen=True)
class AssertValues(TestStatement):
    row: InsertValues

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        return cls(InsertValues.row_after(p, "VALUES"), position=position)

    def sql(self, names: Names) -> str:
        return self.row.row(self.title, "VALUES", names)


@begins("ASSERT NULL VALUES", table=TEST_STATEMENTS)
@dataclass(frozen=True)
class AssertTombstone(TestStatement):
    """`ASSERT NULL VALUES`: `row` holds the key only."""

    row: InsertValues

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        return cls(InsertValues.row_after(p, "KEY"), position=position)

    def sql(self, names: Names) -> str:
        return self.row.row(self.title, "KEY", names)


@dataclass(frozen=True)
class AssertSource(TestStatement):
    """A source must be as a CREATE statement would make it."""

    creates: ClassVar[type[CreateSource]]
    key: ClassVar[ConstraintKind]

    expected: CreateSource

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        name, elements = p.source_name(), p.elements()
        p.key_must_be(cls.key, elements)
        expected = cls.creates(name, elements, p.properties(), position=position)
        return cls(expected, position=position)

    def sql(self, names: Names) -> str:
        return "ASSERT" + self.expected.sql(names).removeprefix("CREATE")


@begins("ASSERT STREAM", table=TEST_STATEMENTS)
@dataclass(frozen=True)
class AssertStream(AssertSource):
    creates = CreateStream
    key = ConstraintKind.KEY


@begins("ASSERT TABLE", table=TEST_STATEMENTS)
@dataclass(frozen=True)
class AssertTable(AssertSource):
    creates = CreateTable
    key = ConstraintKind.PRIMARY_KEY


@begins("RUN SCRIPT", table=TEST_STATEMENTS)
@dataclass(frozen=True)
class RunScript(TestStatement):
    path: str

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        return cls(p.string(), position=position)

    def sql(self, names: Names) -> str:
        return f"{self.title} {string(self.path)}"
