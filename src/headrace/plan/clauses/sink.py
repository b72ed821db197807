"""The sink of a query: its topic, formats, and what it inherits from the left source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.formats.base import Side
from headrace.model.errors import StatementError
from headrace.model.schema import Schema
from headrace.model.sources import Serde, Source, WindowedKey
from headrace.plan.clauses.analysis import Analysis
from headrace.plan.nodes import Node
from headrace.plan.sources.properties import WithClause, timestamp_column
from headrace.plan.sources.serdes import (
    check_schema,
    default_format,
    inherited_properties,
    named_format,
)
from headrace.plan.sources.wrapping import serde_of

_TOPIC_PREFIX = "ksql.output.topic.name.prefix"


@dataclass(frozen=True)
class TopicOptions:
    """How a sink's topic is made if it is not there; None leaves the choice to the broker."""

    partitions: int | None
    replicas: int | None
    retention_ms: int | None
    cleanup_policy: str | None


def sink_source(
    name: str,
    analysis: Analysis,
    node: Node,
    clause: WithClause,
    settings: Mapping[str, str],
    window: WindowedKey | None,
    replaced: Source | None,
) -> Source:
    """The stream or table that CREATE … AS SELECT makes, in place of `replaced` if it is there."""
    left = analysis.left.source

    def serde(side: Side, format_: str) -> Serde:
        inherited = inherited_properties(left.side(side)[0], format_)
        named = named_format(format_, clause, side, name, inherited)
        columns = len(node.schema.key if side == "key" else node.schema.value)
        return serde_of(named, clause, side, columns, settings, replaced=replaced, left=left)

    key = serde("key", _key_format(analysis, node.schema, clause, settings))
    value = serde("value", clause.value_format or left.value.format)
    check_schema(node.schema, key, value)
    return Source(
        name=name,
        kind=node.kind,
        schema=node.schema,
        topic=clause.text("KAFKA_TOPIC") or default_topic(name, settings),
        key=key,
        value=value,
        timestamp=timestamp_column(clause, node.schema),
        window=window,
        is_sink=True,
    )


def default_topic(name: str, settings: Mapping[str, str]) -> str:
    """The topic of a sink whose statement names none."""
    return settings.get(_TOPIC_PREFIX, "") + name


def check_key_format(analysis: Analysis, clause: WithClause) -> None:
    if analysis.partitions_by_null and clause.key_format not in (None, "NONE"):
        raise StatementError("Key format specified for stream without key columns.")


def _key_format(
    analysis: Analysis, schema: Schema, clause: WithClause, settings: Mapping[str, str]
) -> str:
    check_key_format(analysis, clause)
    if analysis.partitions_by_null:
        return "NONE"
    format_ = clause.key_format or analysis.left.source.key.format
    if format_ == "NONE" and clause.key_format is None and schema.key:
        return default_format("key", settings)
    return format_


def topic_options(clause: WithClause, partitions: int | None) -> TopicOptions:
    return TopicOptions(
        clause.number("PARTITIONS") or partitions,
        clause.number("REPLICAS"),
        clause.number("RETENTION_MS"),
        clause.text("CLEANUP_POLICY"),
    )
