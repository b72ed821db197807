"""A catalog in memory, and planning from SQL text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.model.sources import Source
from headrace.model.types import SqlType
from headrace.plan.query import Planned, plan_create_as, plan_insert_select, plan_push
from headrace.plan.sources.ddl import plan_create_source
from headrace.sql import ast
from headrace.sql.parser import parse


@dataclass
class Catalog:
    """Statements run against it change nothing but itself."""

    known: dict[str, Source] = field(default_factory=dict)
    types: dict[str, SqlType] = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    def source(self, name: str) -> Source | None:
        return self.known.get(name)

    def sources(self) -> Iterable[Source]:
        return self.known.values()

    def type(self, name: str) -> SqlType | None:
        return self.types.get(name)

    def partitions(self, topic: str) -> int | None:
        return self.topics.get(topic)

    def run(self, sql: str) -> Planned | None:
        """Runs statements; the plan of the last one that is a query."""
        planned = None
        for parsed in parse(sql):
            match parsed.statement:
                case ast.CreateAsSelect() as statement:
                    planned = plan_create_as(statement, self, self.settings)
                    assert planned.sink is not None
                    self.known[statement.name] = planned.sink
                case ast.CreateSource() as statement:
                    source = plan_create_source(statement, self, self.settings)
                    self.known[source.name] = source
                case ast.InsertInto() as statement:
                    planned = plan_insert_select(statement, self, self.settings)
                case ast.Query() as statement:
                    planned = plan_push(statement, self, self.settings)
        return planned

    def plan(self, sql: str) -> Planned:
        planned = self.run(sql)
        assert planned is not None
        return planned
