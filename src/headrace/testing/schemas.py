"""The schema registry of a case: in memory, with the schemas that the case defines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.engine.layouts import unregistered_layout
from headrace.formats import REGISTRY_FORMATS
from headrace.formats.base import RegistryFormat, Side
from headrace.model.sources import Source
from headrace.registry.client import InMemoryRegistry
from headrace.registry.core import SchemaRegistry
from headrace.registry.schema import (
    Reference,
    RegisteredSchema,
    Schema,
)
from headrace.schemas import SchemaType
from headrace.testing.cases import CaseSchema, CaseTopic

# Cases name the type of a schema, or the format.
_TYPES: dict[str, SchemaType] = {
    name: format_.schema_type
    for format_ in REGISTRY_FORMATS
    for name in (format_.name, format_.schema_type)
}
_SIDES: tuple[Side, Side] = ("key", "value")
_FIRST_REFERENCE_ID = 1000


def registry_of(topics: Sequence[CaseTopic], declared: Iterable[Source] = ()) -> InMemoryRegistry:
    """Schemas of the sources that the statements declare in full come before those of the topics:
    cases count on the ids that they get so.

    Cases may put any schemas after another: compatibility is not what they are about.
    """
    registry = SchemaRegistry()
    registry.set_level("NONE")
    given = {t.name for t in topics if t.key is not None or t.value is not None}
    for source in declared:
        if source.topic not in given:
            _register_declared(registry, source)
    for topic in topics:
        for side, schema in (("key", topic.key), ("value", topic.value)):
            if schema is not None and schema.format in _TYPES:
                _register(registry, f"{topic.name}-{side}", schema)
    return InMemoryRegistry(registry)


def _register(registry: SchemaRegistry, subject: str, schema: CaseSchema) -> None:
    """Cases name the ids of topics' schemas, never of those that these refer to: they lie apart."""
    type_ = _TYPES[schema.format]
    id_ = schema.id
    if id_ is None and schema.references:
        id_ = registry.last_id + 1
    references = []
    for reference in schema.references:
        apart = max(registry.last_id, _FIRST_REFERENCE_ID) + 1
        place = _put(registry, reference.subject, Schema(reference.text, type_), apart)
        references.append(Reference(reference.name, reference.subject, place.version))
    _put(registry, subject, Schema(schema.text, type_, tuple(references)), id_)


def _put(
    registry: SchemaRegistry, subject: str, schema: Schema, id_: int | None
) -> RegisteredSchema:
    if id_ is None:
        return registry.register(subject, schema)
    registry.set_mode("IMPORT", subject, force=True)  # only then may one choose an id
    place = registry.register(subject, schema, id_=id_)
    registry.set_mode("READWRITE", subject)
    return place


def _register_declared(registry: SchemaRegistry, source: Source) -> None:
    for side in _SIDES:
        serde = source.key if side == "key" else source.value
        columns = source.schema.key if side == "key" else source.schema.value
        format_, layout = unregistered_layout(serde, columns, side, source.topic)
        if isinstance(format_, RegistryFormat) and columns:
            schema = format_.to_registry(layout)
            registry.register(f"{source.topic}-{side}", Schema(schema.text, schema.type))
