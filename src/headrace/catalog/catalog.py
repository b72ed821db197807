"""The catalog: every stream, table, custom type and persistent query by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from headrace.model.sources import Source
from headrace.model.types import SqlType

V = TypeVar("V")


@dataclass(frozen=True)
class QueryRecord:
    """A persistent query as the catalog knows it, running or not. `creates_sink`: its sink was made
    for it (CREATE … AS SELECT), and goes with it."""

    id: str
    statement: str
    sources: tuple[str, ...]
    sink: str
    creates_sink: bool = False


@dataclass(frozen=True)
class Catalog:
    """All sources, types and queries; immutable, each change returns a new catalog.

    `topic_partitions` answers how many partitions a topic has, from what was last heard.
    """

    streams_and_tables: Mapping[str, Source] = field(default_factory=dict)
    types: Mapping[str, SqlType] = field(default_factory=dict)
    queries: Mapping[str, QueryRecord] = field(default_factory=dict)
    topic_partitions: Callable[[str], int | None] = lambda topic: None

    def source(self, name: str) -> Source | None:
        return self.streams_and_tables.get(name)

    def sources(self) -> Iterable[Source]:
        return self.streams_and_tables.values()

    def type(self, name: str) -> SqlType | None:
        return self.types.get(name.upper())

    def partitions(self, topic: str) -> int | None:
        return self.topic_partitions(topic)

    def readers(self, name: str) -> list[QueryRecord]:
        return [q for q in self.queries.values() if name in q.sources]

    def writers(self, name: str) -> list[QueryRecord]:
        return [q for q in self.queries.values() if q.sink == name]

    def with_source(self, source: Source) -> Catalog:
        return replace(self, streams_and_tables={**self.streams_and_tables, source.name: source})

    def without_source(self, name: str) -> Catalog:
        return replace(self, streams_and_tables=_without(self.streams_and_tables, name))

    def with_type(self, name: str, type_: SqlType) -> Catalog:
        return replace(self, types={**self.types, name.upper(): type_})

    def without_type(self, name: str) -> Catalog:
        return replace(self, types=_without(self.types, name.upper()))

    def with_query(self, query: QueryRecord) -> Catalog:
        return replace(self, queries={**self.queries, query.id: query})

    def without_query(self, id_: str) -> Catalog:
        return replace(self, queries=_without(self.queries, id_))


def _without(mapping: Mapping[str, V], name: str) -> dict[str, V]:
    return {k: v for k, v in mapping.items() if k != name}
