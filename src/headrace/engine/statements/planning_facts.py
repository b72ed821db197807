"""What planning needs to know of topics and the schema registry."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.engine.environment import Environment
from headrace.engine.queries.program import exactly_once
from headrace.engine.queries.starting_offsets import offsets_of
from headrace.engine.statements.changes import Change, NewQuery
from headrace.engine.statements.resolve import Resolved, check_named_schemas, resolve_schema
from headrace.model.settings import Settings
from headrace.model.sources import Source
from headrace.plan import nodes as n
from headrace.plan.determinism import check_repeatable
from headrace.plan.sources.start_from import Edge
from headrace.sql import ast


def check_promises(query: NewQuery) -> None:
    """Refuses a query that could not keep the guarantees of its settings."""
    if exactly_once(Settings(query.settings)):
        check_repeatable(query.planned.node)


class LiveFacts:
    """Facts that Kafka and the registry give now."""

    def __init__(self, env: Environment) -> None:
        self._env = env

    def resolve(
        self, statement: ast.Statement, settings: Mapping[str, str], replaced: Source | None
    ) -> Resolved:
        return resolve_schema(statement, settings, self._env.registry, replaced)

    def check_sink(self, sink: Source) -> None:
        check_named_schemas(sink, self._env.registry)

    def check_query(self, query: NewQuery) -> None:
        check_promises(query)
        admin, said = self._env.admin, query.planned.start_from
        for topic in {source.topic for source in n.sources(query.planned.node)}:
            place = said.of(topic)
            if place is not None and admin.exists(topic):  # the request may be about to make it
                offsets_of(admin, topic, place, Edge.EARLIEST)

    def partitions(self, topic: str) -> int | None:
        admin = self._env.admin
        return admin.describe(topic).partitions if admin.exists(topic) else None

    def has_records(self, topic: str) -> bool:
        admin = self._env.admin
        return admin.exists(topic) and admin.begin_offsets(topic) != admin.end_offsets(topic)


class RehearsedFacts(LiveFacts):
    """Facts as they would be after the changes planned so far."""

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self._topics: dict[str, int] = {}

    def partitions(self, topic: str) -> int | None:
        return self._topics.get(topic) or super().partitions(topic)

    def pretend(self, change: Change) -> None:
        if change.creates is not None and change.topic is not None:
            known = self.partitions(change.creates.topic)
            self._topics[change.creates.topic] = known or change.topic.partitions or 1


class RecordedFacts:
    """Facts for statements of the command log, which were resolved and checked before. Nothing is
    asked, so that they mean the same to every server at any time."""

    def resolve(
        self, statement: ast.Statement, settings: Mapping[str, str], replaced: Source | None
    ) -> Resolved:
        return Resolved(statement)

    def check_sink(self, sink: Source) -> None:
        pass

    def check_query(self, query: NewQuery) -> None:
        pass

    def partitions(self, topic: str) -> int | None:
        return 1  # every topic: it is there, and what is joined lies alike

    def has_records(self, topic: str) -> bool:
        return False  # what it has by now came after the statement
