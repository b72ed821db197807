"""Where a query's rows go: the topic, its formats, and what they inherit from the left source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.formats.base import Side
from headrace.model.errors import StatementError
from headrace.model.schema import Column, Schema
from headrace.model.sources import Serde, Source, WindowedKey
from headrace.plan.analysis import Analysis
from headrace.plan.nodes import Node
from headrace.plan.properties import WithClause, timestamp_column
from headrace.plan.serdes import (
    check_schema,
    default_format,
    inherited_properties,
    named_format,
)
from headrace.plan.wrapping import check_wrap, wrap_inherited, wrap_of_sink

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
) -> Source:
    """The stream or table that CREATE … AS SELECT makes."""
    left = analysis.left.source
    key = _key_serde(name, analysis, node.schema, clause, settings, left)
    value_format = clause.value_format or left.value.format
    value = _serde(name, "value", value_format, node.schema.value, clause, settings, left.value)
    check_schema(node.schema, key, value)
    return Source(
        name=name,
        kind=node.kind,
        schema=node.schema,
        topic=clause.text("KAFKA_TOPIC") or settings.get(_TOPIC_PREFIX, "") + name,
        key=key,
        value=value,
        timestamp=timestamp_column(clause, node.schema),
        window=window,
        is_sink=True,
    )


def check_key_format(analysis: Analysis, clause: WithClause) -> None:
    if analysis.partitions_by_null and clause.key_format not in (None, "NONE"):
        raise StatementError("Key format specified for stream without key columns.")


def _key_serde(
    name: str,
    analysis: Analysis,
    schema: Schema,
    clause: WithClause,
    settings: Mapping[str, str],
    left: Source,
) -> Serde:
    check_key_format(analysis, clause)
    format_ = clause.key_format or left.key.format
    if analysis.partitions_by_null:
        format_ = "NONE"
    elif format_ == "NONE" and clause.key_format is None and schema.key:
        format_ = default_format("key", settings)
    return _serde(name, "key", format_, schema.key, clause, settings, left.key)


def _serde(
    name: str,
    side: Side,
    format_: str,
    columns: tuple[Column, ...],
    clause: WithClause,
    settings: Mapping[str, str],
    left: Serde,
) -> Serde:
    named = named_format(format_, clause, side, name, inherited_properties(left, format_))
    check_wrap(clause, side, named.name, len(columns))
    return Serde(
        named.name,
        wrap_of_sink(clause, side, settings, left),
        tuple(sorted(named.properties.items())),
        wrap_inherited=wrap_inherited(clause, side),
    )


def topic_options(clause: WithClause, partitions: int | None) -> TopicOptions:
    return TopicOptions(
        clause.number("PARTITIONS") or partitions,
        clause.number("REPLICAS"),
        clause.number("RETENTION_MS"),
        clause.text("CLEANUP_POLICY"),
    )
