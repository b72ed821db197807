"""Where a query's rows go: the topic, its formats, and what they inherit from the left source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.model.errors import StatementError
from headrace.model.schema import Namespace, Schema
from headrace.model.sources import Serde, Source, SourceKind, WindowedKey
from headrace.plan.analysis import Analysis
from headrace.plan.nodes import Node
from headrace.plan.properties import WithClause, timestamp_column
from headrace.plan.serdes import (
    check_format,
    check_schema,
    check_wrap,
    format_properties,
    inherited_properties,
)

_TOPIC_PREFIX = "ksql.output.topic.name.prefix"
_KEY_FORMAT = "ksql.persistence.default.format.key"
_WRAP = {
    "key": "ksql.persistence.wrap.single.keys",
    "value": "ksql.persistence.wrap.single.values",
}


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
    value = _value_serde(clause, node.schema, settings, left)
    check_schema(node.schema, key, value)
    return Source(
        name=name,
        kind=node.kind,
        schema=node.schema,
        topic=clause.text("KAFKA_TOPIC") or settings.get(_TOPIC_PREFIX, "") + name,
        key=key,
        value=value,
        timestamp=timestamp_column(clause, node.schema),
        window=window if node.kind is SourceKind.TABLE or window is not None else None,
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
        format_ = settings.get(_KEY_FORMAT, "KAFKA")
    check_format(format_)
    properties = {
        **inherited_properties(left.key, format_),
        **format_properties(clause, "key", format_, name),
    }
    wrap = _wrap(clause, "key", settings, left.key)
    return Serde(format_, wrap, tuple(sorted(properties.items())))


def _value_serde(
    clause: WithClause, schema: Schema, settings: Mapping[str, str], left: Source
) -> Serde:
    format_ = clause.value_format or left.value.format
    check_format(format_)
    properties = {
        **inherited_properties(left.value, format_),
        **format_properties(clause, "value", format_, None),
    }
    single = sum(c.namespace is Namespace.VALUE for c in schema) == 1
    check_wrap(clause, format_, single)
    wrap = _wrap(clause, "value", settings, left.value)
    return Serde(
        format_,
        wrap,
        tuple(sorted(properties.items())),
        wrap_inherited=clause.flag("WRAP_SINGLE_VALUE") is None,
    )


def _wrap(
    clause: WithClause, side: str, settings: Mapping[str, str], inherited: Serde
) -> bool | None:
    """How single fields are written: as the statement, the left source or the settings say."""
    explicit = wrap_property(clause, side)
    if explicit is not None:
        return explicit
    if inherited.wrap_inherited and inherited.wrap is not None:
        return inherited.wrap
    return default_wrap(settings, side)


def wrap_property(clause: WithClause, side: str) -> bool | None:
    names = {
        "key": ("WRAP_SINGLE_KEYS", "WRAP_SINGLE_FIELDS"),
        "value": ("WRAP_SINGLE_VALUE", "WRAP_SINGLE_VALUES", "WRAP_SINGLE_FIELDS"),
    }[side]
    given = [name for name in names if clause.flag(name) is not None]
    if len(given) > 1:
        raise StatementError(
            f"Duplicate setting: '{given[0]}' and '{given[1]}' cannot both be set."
        )
    return clause.flag(given[0]) if given else None


def default_wrap(settings: Mapping[str, str], side: str) -> bool:
    return settings.get(_WRAP[side], "false").lower() == "true"


def topic_options(clause: WithClause, partitions: int | None) -> TopicOptions:
    return TopicOptions(
        clause.number("PARTITIONS") or partitions,
        clause.number("REPLICAS"),
        clause.number("RETENTION_MS"),
        clause.text("CLEANUP_POLICY"),
    )
