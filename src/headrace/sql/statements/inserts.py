"""INSERT INTO … SELECT, and INSERT INTO … VALUES."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.model.errors import Position
from headrace.sql.statements.statement_parser import StatementParser, begins
from headrace.sql.tree import (
    Expression,
    Names,
    Properties,
    Query,
    Statement,
    listed,
    with_clause,
)


@begins("INSERT INTO")
@dataclass(frozen=True)
class InsertInto(Statement):
    """`position` is that of the target, here and in INSERT VALUES."""

    target: str
    query: Query
    properties: Properties = ()

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        if p.peek(1) in ("(", "VALUES"):
            return InsertValues.row_after(p, "VALUES")
        target_position = p.position
        target = p.source_name()
        properties = p.properties()
        query = p.query(persistent=True)
        return cls(target, query, properties, position=target_position)

    def sql(self, names: Names) -> str:
        properties = with_clause(self.properties, names)
        return f"{self.title} {names(self.target)}{properties} {self.query.sql(names)}"


@dataclass(frozen=True)
class InsertValues(Statement):
    target: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]

    @classmethod
    def row_after(cls, p: StatementParser, keyword: str) -> InsertValues:
        """A target, its columns, and their values after the keyword."""
        position = p.position
        target = p.source_name()
        columns: tuple[str, ...] = ()
        if p.accept("("):
            columns = p.listed(p.identifier)
            p.expect(")")
        p.expect(keyword)
        p.expect("(")
        values = () if p.kind == ")" else p.listed(p.value)
        p.expect(")")
        if not values:
            p.reject("Expected some values for INSERT INTO statement.")
        elif columns and len(columns) != len(values):
            p.reject(f"Expected number columns and values to match: {len(columns)}, {len(values)}")
        return cls(target, columns, values, position=position)

    def sql(self, names: Names) -> str:
        return self.row("INSERT INTO", "VALUES", names)

    def row(self, verb: str, keyword: str, names: Names) -> str:
        columns = f"({', '.join(map(names, self.columns))}) " if self.columns else ""
        return f"{verb} {names(self.target)} {columns}{keyword} ({listed(self.values, names)})"
