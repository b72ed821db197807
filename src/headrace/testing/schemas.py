"""The schema registry of a case: in memory, with the schemas that the case says are there."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.testing.cases import CaseSchema, CaseTopic
from headrace.topics.registry.client import InMemoryRegistry
from headrace.topics.registry.core import SchemaRegistry
from headrace.topics.registry.schema import Reference, Schema, SchemaType

_TYPES: dict[str, SchemaType] = {"AVRO": "AVRO", "JSON_SR": "JSON", "PROTOBUF": "PROTOBUF"}


def registry_of(topics: Iterable[CaseTopic]) -> InMemoryRegistry:
    """Cases may put any schemas after another: compatibility is not what they are about."""
    registry = SchemaRegistry()
    registry.set_level("NONE")
    for topic in topics:
        for side, schema in (("key", topic.key), ("value", topic.value)):
            if schema is not None and schema.format in _TYPES:
                _register(registry, f"{topic.name}-{side}", schema)
    return InMemoryRegistry(registry)


def _register(registry: SchemaRegistry, subject: str, schema: CaseSchema) -> None:
    type_ = _TYPES[schema.format]
    references = []
    for reference in schema.references:
        place = registry.register(reference.subject, Schema(reference.text, type_))
        references.append(Reference(reference.name, reference.subject, place.version))
    if schema.id is not None:  # only then may one choose an id
        registry.set_mode("IMPORT", subject)
    registry.register(subject, Schema(schema.text, type_, tuple(references)), id_=schema.id)
    if schema.id is not None:
        registry.set_mode("READWRITE", subject)
