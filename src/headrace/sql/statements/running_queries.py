"""Running queries: TERMINATE, PAUSE, RESUME, SHOW QUERIES, EXPLAIN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.model.errors import Position
from headrace.sql.statements.base import ExtendableStatement, ReadingStatement
from headrace.sql.statements.statement_parser import SYNONYMS, StatementParser, begins
from headrace.sql.tree import Names, Statement


@dataclass(frozen=True)
class QueryControl(Statement):
    """A statement that controls a running query; `query_id` is None for ALL."""

    query_id: str | None

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        query_id = None if p.accept("ALL") else p.identifier()
        return cls(query_id, position=position)

    def sql(self, names: Names) -> str:
        return f"{self.title} {'ALL' if self.query_id is None else names(self.query_id)}"


@begins("TERMINATE")
@dataclass(frozen=True)
class TerminateQuery(QueryControl):
    pass


@begins("PAUSE")
@dataclass(frozen=True)
class PauseQuery(QueryControl):
    pass


@begins("RESUME")
@dataclass(frozen=True)
class ResumeQuery(QueryControl):
    pass


@begins("SHOW QUERIES")
@dataclass(frozen=True)
class ListQueries(ExtendableStatement):
    pass


@begins("EXPLAIN")
@dataclass(frozen=True)
class Explain(ReadingStatement):
    """Of a running query (`query_id`) or of a statement; never both."""

    query_id: str | None = None
    statement: Statement | None = None

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        is_statement = any(start[0] == SYNONYMS.get(p.kind, p.kind) for start in p.table)
        if is_statement and not (p.sees_name() and p.sees_end(1)):
            p.deeper()
            statement = p.statement()
            p.shallower()
            return cls(statement=statement, position=position)
        return cls(query_id=p.identifier(), position=position)

    def sql(self, names: Names) -> str:
        what = (
            self.statement.sql(names) if self.statement is not None else names(self.query_id or "")
        )
        return f"{self.title} \n{what}"
