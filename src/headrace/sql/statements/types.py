"""Custom types: CREATE TYPE, DROP TYPE, SHOW TYPES."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.model.errors import Position
from headrace.model.types import SqlType
from headrace.sql.statements.base import Drop, ReadingStatement
from headrace.sql.statements.statement_parser import StatementParser, begins
from headrace.sql.tree import Names, Statement, type_text, words


@begins("CREATE TYPE")
@dataclass(frozen=True)
class CreateType(Statement):
    name: str
    type: SqlType
    if_not_exists: bool = False

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        if_not_exists = p.accept_if_not_exists()
        name = p.identifier()
        p.expect("AS")
        return cls(name, p.type(), if_not_exists, position=position)

    def sql(self, names: Names) -> str:
        return words(
            self.title,
            (self.if_not_exists, "IF NOT EXISTS"),
            f"{names(self.name)} AS {type_text(self.type, names)}",
        )


@begins("DROP TYPE")
@dataclass(frozen=True)
class DropType(Drop):
    pass


@begins("SHOW TYPES")
@dataclass(frozen=True)
class ListTypes(ReadingStatement):
    pass
