"""The layout of each side of a source or sink in its topic, with the schema ids of the registry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace.engine.environment import Environment
from headrace.formats import FORMATS
from headrace.formats.base import Format, Layout, RegistryFormat, RegistrySchema, Side
from headrace.model.errors import StatementError
from headrace.model.schema import Column
from headrace.model.sources import Serde, Source
from headrace.plan import nodes as n
from headrace.registry.client import RegistryClient
from headrace.registry.schema import RegisteredSchema, Schema

Codec = tuple[Format, Layout]
_NO_ID = 0  # a registry counts from 1


def subject(topic: str, side: Side) -> str:
    return f"{topic}-{side}"


def unregistered_layout(serde: Serde, columns: Sequence[Column], side: Side, topic: str) -> Codec:
    """The layout without what the registry adds to it."""
    format_ = FORMATS[serde.format]
    layout = Layout(
        tuple(columns),
        wrapped=format_.wrapped(len(columns), serde.wrap),
        side=side,
        topic=topic,
        properties=serde.properties,
    )
    return format_, layout


def layout_of(env: Environment, node: n.ReadSource | n.Write, side: Side) -> Codec:
    """The layout for lowering: a source's has all writers' schemas, a sink's the id to write."""
    serde = node.key if side == "key" else node.value
    schema = node.columns if isinstance(node, n.ReadSource) else node.schema
    columns = schema.key if side == "key" else schema.value
    format_, layout = unregistered_layout(serde, columns, side, node.topic)
    if not isinstance(format_, RegistryFormat) or not columns:
        return format_, layout
    registry = _registry(env)
    if isinstance(node, n.ReadSource):
        return format_, replace(layout, writers=_writers(registry, subject(node.topic, side)))
    return format_, registered_layout(registry, format_, layout)


def source_layout(env: Environment, source: Source, side: Side) -> Codec:
    """The layout for reading and writing single rows."""
    return _of_source(env, source, side, written=True)


def read_layout(env: Environment, source: Source, side: Side) -> Codec:
    """The layout for reading single rows, which registers no schema, because one may not fit what
    others have registered. Keys in others' topics are only compared, and have an id of no
    schema."""
    return _of_source(env, source, side, written=source.is_sink)


def _of_source(env: Environment, source: Source, side: Side, *, written: bool) -> Codec:
    serde, columns = source.side(side)
    format_, layout = unregistered_layout(serde, columns, side, source.topic)
    if not isinstance(format_, RegistryFormat) or not columns:
        return format_, layout
    registry = _registry(env)
    if written or layout.option("schemaId") is not None:
        layout = registered_layout(registry, format_, layout)
    else:
        layout = replace(layout, schema_id=_NO_ID)
    return format_, replace(layout, writers=_writers(registry, subject(source.topic, side)))


def _registry(env: Environment) -> RegistryClient:
    if env.registry is None:
        raise StatementError(
            "Cannot create topic/schema: the schema registry is not configured. "
            "Set 'ksql.schema.registry.url'."
        )
    return env.registry


def registered_layout(registry: RegistryClient, format_: RegistryFormat, layout: Layout) -> Layout:
    """The layout with the schema id of its records: the named schema's, or the registered one."""
    named = layout.option("schemaId")
    if named is not None:
        found = registry.by_id(int(named))
        if found is None:
            raise StatementError(f"Schema id {named} does not exist in the Schema Registry.")
        return replace(layout, schema_id=int(named), physical=with_references(registry, found))
    schema = format_.to_registry(layout)
    id_ = registry.register(subject(layout.topic, layout.side), schema.text, schema.type)
    return replace(layout, schema_id=id_)


def _writers(registry: RegistryClient, subject_: str) -> tuple[tuple[int, RegistrySchema], ...]:
    return tuple((s.id, with_references(registry, s)) for s in registry.versions(subject_))


def with_references(registry: RegistryClient, schema: Schema | RegisteredSchema) -> RegistrySchema:
    imported = registry.referenced(schema) if schema.references else {}
    return RegistrySchema(schema.text, schema.type, tuple(imported.items()))
