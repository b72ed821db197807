"""Streams and tables: SHOW, LIST and DESCRIBE."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from headrace.catalog.catalog import QueryRecord
from headrace.engine.queries import PersistentQuery
from headrace.engine.statements.handling import Asked, handles
from headrace.engine.statements.queries import notices_of, query_info, warnings_of
from headrace.model.entities import (
    DescribedSource,
    Entity,
    FieldInfo,
    GroupOffsets,
    PartitionOffsets,
    QueryInfo,
    SourceDescription,
    SourceDescriptionList,
    SourceInfo,
    StreamList,
    TableList,
    TopicOffsets,
)
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.sources import Source, SourceKind
from headrace.plan.view import alternatives
from headrace.sql import ast
from headrace.topics.admin import Topic

# A group's name where ksqlDB has a consumer group: Spark keeps a query's offsets itself.
_GROUP = "_confluent-ksql-{service}query_{query}"


@handles(ast.ListStreams)
def _streams(statement: ast.ListStreams, asked: Asked) -> Entity:
    found = _of_kind(asked, SourceKind.STREAM)
    if statement.extended:
        return _described_all(asked, found, extended=True)
    return StreamList(asked.text, tuple(map(_info, found)))


@handles(ast.ListTables)
def _tables(statement: ast.ListTables, asked: Asked) -> Entity:
    found = _of_kind(asked, SourceKind.TABLE)
    if statement.extended:
        return _described_all(asked, found, extended=True)
    return TableList(asked.text, tuple(map(_info, found)))


@handles(ast.DescribeStreams)
def _describe_streams(statement: ast.DescribeStreams, asked: Asked) -> Entity:
    return _described_all(asked, _of_kind(asked, SourceKind.STREAM), statement.extended)


@handles(ast.DescribeTables)
def _describe_tables(statement: ast.DescribeTables, asked: Asked) -> Entity:
    return _described_all(asked, _of_kind(asked, SourceKind.TABLE), statement.extended)


@handles(ast.DescribeSource)
def _describe(statement: ast.DescribeSource, asked: Asked) -> Entity:
    source = asked.catalog.source(statement.name)
    if source is None:
        raise StatementError(
            f"Could not find STREAM/TABLE '{statement.name}' in the Metastore"
            + alternatives(asked.catalog, statement.name)
        )
    description, warnings = describe(source, asked, statement.extended)
    return DescribedSource(asked.text, description, warnings=warnings)


def _of_kind(asked: Asked, kind: SourceKind) -> list[Source]:
    return sorted((s for s in asked.catalog.sources() if s.kind is kind), key=lambda s: s.name)


def _info(source: Source) -> SourceInfo:
    return SourceInfo(
        source.kind.value,
        source.name,
        source.topic,
        source.key.format,
        source.value.format,
        source.window is not None,
    )


def _described_all(asked: Asked, found: Sequence[Source], extended: bool) -> Entity:
    told = [describe(source, asked, extended) for source in found]
    return SourceDescriptionList(
        asked.text,
        tuple(description for description, _ in told),
        warnings=tuple(w for _, warnings in told for w in warnings),
    )


def describe(
    source: Source, asked: Asked, extended: bool
) -> tuple[SourceDescription, tuple[str, ...]]:
    """What there is to tell of a source, and what could not be found out."""
    catalog = asked.catalog
    topic: Topic | None = None
    warnings: tuple[str, ...] = ()
    try:
        topic = asked.world.admin.describe(source.topic)
    except HeadraceError as e:
        warnings = (f"Error from Kafka: {e}",)
    command = f"{source.kind.value.lower()}/{source.name}/create"
    if command in asked.engine.unplanned:
        warnings += (asked.engine.unplanned[command],)
    around = (*catalog.writers(source.name), *catalog.readers(source.name))
    found = (asked.engine.queries.get(q.id) for q in around)
    queries = [query for query in found if query is not None]
    warnings += warnings_of(asked, queries)
    if extended:
        warnings += notices_of(queries)
    derived = {q.sink for q in catalog.readers(source.name) if q.id[:4] in ("CSAS", "CTAS")}
    writers = catalog.writers(source.name)
    description = SourceDescription(
        name=source.name,
        window_type=source.window.type.value if source.window else None,
        read_queries=_infos(asked, catalog.readers(source.name)),
        write_queries=_infos(asked, writers),
        fields=FieldInfo.all_of(source.schema),
        type=source.kind.value,
        timestamp=source.timestamp.name if source.timestamp else "",
        statistics=_statistics(asked, topic) if extended else "",
        error_stats="",
        extended=extended,
        key_format=source.key.format,
        value_format=source.value.format,
        topic=source.topic,
        partitions=topic.partitions if topic else 0,
        replication=topic.replication_factor if topic else 0,
        statement=source.statement,
        query_offset_summaries=_offsets(asked, writers) if extended else (),
        source_constraints=tuple(sorted(derived)) if topic else (),
    )
    return description, warnings


def _infos(asked: Asked, records: Sequence[QueryRecord]) -> tuple[QueryInfo, ...]:
    found = (asked.engine.queries.get(q.id) for q in records)
    return tuple(query_info(asked, q) for q in found if q is not None)


def _statistics(asked: Asked, topic: Topic | None) -> str:
    if topic is None:
        return ""
    admin = asked.world.admin
    total = sum(admin.end_offsets(topic.name).values()) - sum(
        admin.begin_offsets(topic.name).values()
    )
    return f"total-messages: {total:>9}"


# ------------------------------------------------------------------------------- offsets


def _offsets(asked: Asked, writers: Sequence[QueryRecord]) -> tuple[GroupOffsets, ...]:
    """How far the queries that write the source have read."""
    found = (asked.engine.queries.get(q.id) for q in writers)
    return tuple(_group(asked, query) for query in found if query is not None)


def _group(asked: Asked, query: PersistentQuery) -> GroupOffsets:
    admin = asked.world.admin
    topics = []
    for topic, read in sorted(_read_so_far(query).items()):
        begin, end = admin.begin_offsets(topic), admin.end_offsets(topic)
        partitions = (PartitionOffsets(p, begin[p], end[p], read.get(p, 0)) for p in sorted(begin))
        topics.append(TopicOffsets(topic, tuple(partitions)))
    name = _GROUP.format(service=asked.world.service_id, query=query.id)
    return GroupOffsets(name, tuple(topics))


def _read_so_far(query: PersistentQuery) -> dict[str, Mapping[int, int]]:
    """By topic and partition, from the query's last micro-batch."""
    progress = query.streaming.lastProgress if query.streaming is not None else None
    read: dict[str, Mapping[int, int]] = {}
    for source in progress["sources"] if progress else ():
        offsets = source["endOffset"]
        by_topic = json.loads(offsets) if isinstance(offsets, str) else offsets
        for topic, partitions in (by_topic or {}).items():
            read[topic] = {int(p): offset for p, offset in partitions.items()}
    return read
