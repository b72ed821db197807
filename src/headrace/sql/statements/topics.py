"""Topics and their schemas: SHOW TOPICS, PRINT, ASSERT TOPIC, ASSERT SCHEMA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.model.errors import Position
from headrace.sql.statements.base import ReadingStatement
from headrace.sql.statements.statement_parser import StatementParser, begins
from headrace.sql.tree import (
    Duration,
    IntegerLiteral,
    Names,
    Properties,
    Statement,
    clause,
    string,
    with_clause,
    words,
)


@begins("SHOW TOPICS", "SHOW ALL TOPICS")
@dataclass(frozen=True)
class ListTopics(ReadingStatement):
    all: bool = False
    extended: bool = False

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        return cls("ALL" in words, p.accept("EXTENDED"), position=position)

    def sql(self, names: Names) -> str:
        return words("SHOW", (self.all, "ALL"), "TOPICS", (self.extended, "EXTENDED"))


@begins("PRINT")
@dataclass(frozen=True)
class PrintTopic(ReadingStatement):
    """`topic` keeps its case. Every `interval`-th record, at most `limit`."""

    topic: str
    from_beginning: bool = False
    interval: int | None = None
    limit: int | None = None

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        topic = p.resource_name()
        from_beginning = p.accept("FROM")
        if from_beginning:
            p.expect("BEGINNING")
        interval = None
        if p.accept("INTERVAL") or p.accept("SAMPLE"):
            interval = p.integer("INTERVAL")
        return cls(topic, from_beginning, interval, p.limit(), position=position)

    def sql(self, names: Names) -> str:
        return words(
            f"{self.title} {string(self.topic)}",
            (self.from_beginning, "FROM BEGINNING"),
            (self.interval is not None, f"INTERVAL {self.interval}"),
            (self.limit is not None, f"LIMIT {self.limit}"),
        )


@begins("ASSERT TOPIC", "ASSERT NOT EXISTS")
@dataclass(frozen=True)
class AssertTopic(ReadingStatement):
    topic: str
    properties: Properties = ()
    timeout: Duration | None = None
    exists: bool = True

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        exists = "NOT" not in words
        if not exists:
            if p.accept("SCHEMA"):
                return AssertSchema.read(p, position, words)
            p.expect("TOPIC")
        topic = p.resource_name()
        properties = p.properties()
        return cls(topic, properties, p.timeout(), exists, position=position)

    def sql(self, names: Names) -> str:
        head = words("ASSERT", (not self.exists, "NOT EXISTS"), "TOPIC", string(self.topic))
        return words(head + with_clause(self.properties, names), clause("TIMEOUT", self.timeout))


@begins("ASSERT SCHEMA")
@dataclass(frozen=True)
class AssertSchema(ReadingStatement):
    subject: str | None = None
    id: int | None = None
    timeout: Duration | None = None
    exists: bool = True

    @classmethod
    def read(cls, p: StatementParser, position: Position, words: Sequence[str]) -> Statement:
        subject = p.resource_name() if p.accept("SUBJECT") else None
        literal = p.literal() if p.accept("ID") else None
        if literal is not None and not isinstance(literal, IntegerLiteral):
            p.reject("ID must be an integer")
        if subject is None and literal is None:
            p.reject("ASSERT SCHEMA statements much include a subject name or an id")
        id_ = literal.value if isinstance(literal, IntegerLiteral) else None
        return cls(subject, id_, p.timeout(), "NOT" not in words, position=position)

    def sql(self, names: Names) -> str:
        return words(
            "ASSERT",
            (not self.exists, "NOT EXISTS"),
            "SCHEMA",
            (self.subject is not None, f"SUBJECT {string(self.subject or '')}"),
            (self.id is not None, f"ID {self.id}"),
            clause("TIMEOUT", self.timeout),
        )
