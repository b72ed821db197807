"""The facts of the world that planning asks for: topics, and what the registry knows."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.engine.changes import Change, NewQuery
from headrace.engine.resolve import Resolved, check_named_schemas, resolve_schema
from headrace.engine.running import exactly_once
from headrace.engine.world import World
from headrace.model.settings import Settings
from headrace.model.sources import Source
from headrace.plan.repeatable import check_repeatable
from headrace.sql import ast


def check_promises(query: NewQuery) -> None:
    """Refuses a query that could not keep what its settings promise."""
    if exactly_once(Settings(query.settings)):
        check_repeatable(query.planned.node)


class LiveOutside:
    """As the world is now."""

    def __init__(self, world: World) -> None:
        self._world = world

    def resolve(
        self, statement: ast.Statement, settings: Mapping[str, str], replaced: Source | None
    ) -> Resolved:
        return resolve_schema(statement, settings, self._world.registry, replaced)

    def check_sink(self, sink: Source) -> None:
        check_named_schemas(sink, self._world.registry)

    def check_query(self, query: NewQuery) -> None:
        check_promises(query)

    def partitions(self, topic: str) -> int | None:
        admin = self._world.admin
        return admin.describe(topic).partitions if admin.exists(topic) else None

    def has_records(self, topic: str) -> bool:
        admin = self._world.admin
        return admin.exists(topic) and admin.begin_offsets(topic) != admin.end_offsets(topic)


class PretendOutside(LiveOutside):
    """As the world would be after the changes planned so far."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._topics: dict[str, int] = {}

    def partitions(self, topic: str) -> int | None:
        return self._topics.get(topic) or super().partitions(topic)

    def pretend(self, change: Change) -> None:
        if change.creates is not None and change.topic is not None:
            known = self.partitions(change.creates.topic)
            self._topics[change.creates.topic] = known or change.topic.partitions or 1


class RecordedOutside:
    """For statements of the command log: they are resolved already, and were checked. Nothing is
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
