"""Functions: SHOW FUNCTIONS, DESCRIBE FUNCTION."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.model.errors import Position
from headrace.sql.statements.base import ReadingStatement
from headrace.sql.statements.sources import DescribeSource
from headrace.sql.statements.statement_parser import StatementParser, begins
from headrace.sql.tree import Names, Statement


@begins("SHOW FUNCTIONS")
@dataclass(frozen=True)
class ListFunctions(ReadingStatement):
    pass


@begins("DESCRIBE FUNCTION")
@dataclass(frozen=True)
class DescribeFunction(ReadingStatement):
    """`name` keeps its case and quotes, as written."""

    name: str

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        if p.sees_end() or p.kind == "EXTENDED":  # a source that is called FUNCTION
            return DescribeSource("FUNCTION", p.accept("EXTENDED"), position=position)
        text = p.token.text
        p.identifier()
        return cls(text, position=position)

    def sql(self, names: Names) -> str:
        return f"{self.title} {self.name}"
