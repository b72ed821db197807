"""Schemas that a new source brings to the registry, and what stays when it is refused."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import cast

import pytest

from headrace.engine.environment import Environment
from headrace.engine.statements.provision import Provisioned
from headrace.model.errors import StatementError
from headrace.model.schema import Column, Namespace, Schema
from headrace.model.sources import Serde, Source, SourceKind
from headrace.model.types import INTEGER, STRING
from headrace.registry.client import InMemoryRegistry

ID = Column("ID", INTEGER, Namespace.KEY)
NAME = Column("NAME", STRING)
AVRO = Serde("AVRO", True)


def source(*, is_sink: bool, value: Serde = AVRO, column: Column = NAME) -> Source:
    schema = Schema((ID, column))
    return Source("S", SourceKind.STREAM, schema, "t", AVRO, value, is_sink=is_sink)


def provisioned(registry: InMemoryRegistry | None) -> Provisioned:
    return Provisioned(cast(Environment, SimpleNamespace(registry=registry)))


def test_new_subjects_and_their_end():
    registry = InMemoryRegistry()
    made = provisioned(registry)
    made.provision(source(is_sink=True), None)
    assert registry.subjects() == ["t-key", "t-value"]
    assert json.loads(registry.latest("t-value").text)["fields"][0]["name"] == "NAME"  # type: ignore[union-attr]
    made.undo()
    assert registry.subjects() == []


def test_a_declared_source_leaves_the_schemas_that_are_there_alone():
    registry = InMemoryRegistry()
    registry.register("t-value", '"long"')
    provisioned(registry).provision(source(is_sink=False), None)
    assert len(registry.versions("t-value")) == 1
    assert len(registry.versions("t-key")) == 1


def test_an_incompatible_sink_registers_nothing():
    registry = InMemoryRegistry()
    registry.register("t-value", '"long"')
    made = provisioned(registry)
    with pytest.raises(StatementError) as caught:
        made.provision(source(is_sink=True), None)
    assert caught.value.message.startswith(
        "Could not register schema for topic: Schema being registered is incompatible with an "
        'earlier schema for subject "t-value", details: ['
    )
    assert registry.subjects() == ["t-value"]


def test_a_schema_that_is_named_by_its_id_goes_to_the_new_subject():
    registry = InMemoryRegistry()
    id_ = registry.register("elsewhere", '"string"')
    named = Serde("AVRO", False, (("schemaId", str(id_)),))
    provisioned(registry).provision(source(is_sink=True, value=named), None)
    found = registry.latest("t-value")
    assert found is not None
    assert found.id == id_


def test_no_registry():
    with pytest.raises(StatementError) as caught:
        provisioned(None).provision(source(is_sink=False), None)
    assert caught.value.message == (
        "Cannot create topic 't' with format AVRO without configuring 'ksql.schema.registry.url'"
    )
