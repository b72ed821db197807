"""SHOW STREAMS, SHOW TABLES and DESCRIBE."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.catalog.catalog import QueryRecord
from headrace.engine.queries.lags import QueryLags
from headrace.engine.queries.persistent import PersistentQuery
from headrace.engine.queries.statistics import Statistic
from headrace.engine.statements.handling import StatementContext, handles
from headrace.engine.statements.show_queries import notices_of, query_info, warnings_of
from headrace.kafka.admin import Topic
from headrace.model.entities import (
    DescribedSource,
    Entity,
    FieldInfo,
    GroupOffsets,
    HostStatistic,
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
from headrace.model.moments import iso_moment
from headrace.model.sources import Source, SourceKind
from headrace.plan.language.catalog_view import alternatives
from headrace.sql import ast


@handles(ast.ListStreams)
def _streams(statement: ast.ListStreams, context: StatementContext) -> Entity:
    found = _of_kind(context, SourceKind.STREAM)
    if statement.extended:
        return _described_all(context, found, extended=True)
    return StreamList(context.text, tuple(map(_info, found)))


@handles(ast.ListTables)
def _tables(statement: ast.ListTables, context: StatementContext) -> Entity:
    found = _of_kind(context, SourceKind.TABLE)
    if statement.extended:
        return _described_all(context, found, extended=True)
    return TableList(context.text, tuple(map(_info, found)))


@handles(ast.DescribeStreams)
def _describe_streams(statement: ast.DescribeStreams, context: StatementContext) -> Entity:
    return _described_all(context, _of_kind(context, SourceKind.STREAM), statement.extended)


@handles(ast.DescribeTables)
def _describe_tables(statement: ast.DescribeTables, context: StatementContext) -> Entity:
    return _described_all(context, _of_kind(context, SourceKind.TABLE), statement.extended)


@handles(ast.DescribeSource)
def _describe(statement: ast.DescribeSource, context: StatementContext) -> Entity:
    source = context.catalog.source(statement.name)
    if source is None:
        raise StatementError(
            f"Could not find STREAM/TABLE '{statement.name}' in the Metastore"
            + alternatives(context.catalog, statement.name)
        )
    description, warnings = describe(source, context, statement.extended)
    return DescribedSource(context.text, description, warnings=warnings)


def _of_kind(context: StatementContext, kind: SourceKind) -> list[Source]:
    return sorted((s for s in context.catalog.sources() if s.kind is kind), key=lambda s: s.name)


def _info(source: Source) -> SourceInfo:
    return SourceInfo(
        source.kind.value,
        source.name,
        source.topic,
        source.key.format,
        source.value.format,
        source.window is not None,
    )


def _described_all(context: StatementContext, found: Sequence[Source], extended: bool) -> Entity:
    told = [describe(source, context, extended) for source in found]
    return SourceDescriptionList(
        context.text,
        tuple(description for description, _ in told),
        warnings=tuple(w for _, warnings in told for w in warnings),
    )


def describe(
    source: Source, context: StatementContext, extended: bool
) -> tuple[SourceDescription, tuple[str, ...]]:
    """The description of a source, with warnings about what could not be found out."""
    catalog = context.catalog
    topic: Topic | None = None
    warnings: tuple[str, ...] = ()
    try:
        topic = context.env.admin.describe(source.topic)
    except HeadraceError as e:
        warnings = (f"Error from Kafka: {e}",)
    command = f"{source.kind.value.lower()}/{source.name}/create"
    if command in context.unplanned:
        warnings += (context.unplanned[command],)
    around = (*catalog.writers(source.name), *catalog.readers(source.name))
    found = (context.queries.persistent.get(q.id) for q in around)
    queries = [query for query in found if query is not None]
    warnings += warnings_of(context, queries)
    if extended:
        warnings += notices_of(queries)
    derived = {q.sink for q in catalog.readers(source.name) if q.creates_sink}
    writers = catalog.writers(source.name)
    done = context.queries.statistics
    statistics = done.of(source.topic) if extended else ()
    failures = done.failures_of(source.topic) if extended else ()
    description = SourceDescription(
        name=source.name,
        window_type=source.window.type.value if source.window else None,
        read_queries=_infos(context, catalog.readers(source.name)),
        write_queries=_infos(context, writers),
        fields=FieldInfo.all_of(source.schema),
        type=source.kind.value,
        timestamp=source.timestamp.name if source.timestamp else "",
        statistics=_figures(statistics, "last-message"),
        error_stats=_figures(failures, "last-failed"),
        extended=extended,
        key_format=source.key.format,
        value_format=source.value.format,
        topic=source.topic,
        partitions=topic.partitions if topic else 0,
        replication=topic.replication_factor if topic else 0,
        statement=source.statement,
        query_offset_summaries=_offsets(context, writers) if extended and topic else (),
        source_constraints=tuple(sorted(derived)) if topic else (),
        cluster_statistics=_by_host(context, statistics),
        cluster_error_stats=_by_host(context, failures),
        topic_records=_held(context, topic) if extended and topic else None,
    )
    return description, warnings


def _infos(context: StatementContext, records: Sequence[QueryRecord]) -> tuple[QueryInfo, ...]:
    found = (context.queries.persistent.get(q.id) for q in records)
    return tuple(query_info(context, q) for q in found if q is not None)


# ---------------------------------------------------------------------------- statistics


def _figures(statistics: Sequence[Statistic], last: str) -> str:
    """The figures in one line, as ksqlDB lays them out."""
    if not statistics:
        return ""
    texts = [f"{s.name:>16}:{s.value:>10.{0 if s.value.is_integer() else 2}f}" for s in statistics]
    at = iso_moment(max(s.timestamp for s in statistics))
    return " ".join([*texts, f"{last:>16}: {at:>9}"])


def _held(context: StatementContext, topic: Topic) -> int | None:
    """The number of records in a topic; None if it is gone, or Kafka does not tell."""
    admin = context.env.admin
    try:
        ends, begins = admin.end_offsets(topic.name), admin.begin_offsets(topic.name)
    except HeadraceError:
        return None
    return sum(ends.values()) - sum(begins.values())


def _by_host(
    context: StatementContext, statistics: Sequence[Statistic]
) -> tuple[HostStatistic, ...]:
    host = context.queries.members.address if statistics else ""
    return tuple(HostStatistic(s.name, host, s.value, s.timestamp) for s in statistics)


# ------------------------------------------------------------------------------- offsets


def _offsets(context: StatementContext, writers: Sequence[QueryRecord]) -> tuple[GroupOffsets, ...]:
    """How far the queries that write the source have read. What Kafka does not tell is left out."""
    found = (context.queries.persistent.get(q.id) for q in writers)
    return tuple(_group(context, query) for query in found if query is not None)


def _group(context: StatementContext, query: PersistentQuery) -> GroupOffsets:
    lags = QueryLags(context.env, context.queries.members.runs_queries).of(query)
    topics = tuple(
        TopicOffsets(topic, tuple(PartitionOffsets(p, *lag) for p, lag in sorted(found.items())))
        for topic, found in sorted(lags.items())
    )
    return GroupOffsets(context.env.query_group(query.id), topics)
