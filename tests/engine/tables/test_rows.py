"""Rows of topics whose schemas others registered: read as they are, with nothing registered."""

from __future__ import annotations

import json
from typing import cast

import pytest

from headrace.engine.environment import Environment
from headrace.engine.tables.row_store import StoredRecord
from headrace.engine.tables.rows import RowReader
from headrace.model.sources import Source
from headrace.plan.sources.ddl import plan_create_source
from headrace.registry.client import InMemoryRegistry
from headrace.sql import ast
from headrace.sql.parser import parse_statement


class _Registered:
    """As much of an environment as reading needs."""

    def __init__(self) -> None:
        self.registry = InMemoryRegistry()

    def in_kafka(self, topic: str) -> str:
        return topic


class _Empty:
    def source(self, name: str) -> None:
        return None

    def type(self, name: str) -> None:
        return None

    def partitions(self, topic: str) -> int:
        return 1


def table() -> Source:
    statement = parse_statement(
        "CREATE SOURCE TABLE t (k INT PRIMARY KEY, v INT) WITH (kafka_topic='t', format='AVRO');"
    )
    assert isinstance(statement, ast.CreateSource)
    return plan_create_source(statement, _Empty(), {})  # type: ignore[arg-type]


@pytest.mark.parametrize("schema", [["null", "int"], ["int", "null"], "int"])
def test_nothing_is_registered_for_reading(schema):
    env = _Registered()
    heads = {}
    for side in ("key", "value"):
        id_ = env.registry.register(f"t-{side}", json.dumps(schema), "AVRO")
        heads[side] = b"\0" + id_.to_bytes(4, "big")
    branch, null = (b"", None)
    if isinstance(schema, list):
        branch, null = (bytes([2 * schema.index(name)]) for name in ("int", "null"))
    reader = RowReader(cast(Environment, env), table())
    admit = reader.followed().admit
    assert admit is not None
    key, ten = heads["key"] + branch + b"\x02", heads["value"] + branch + b"\x14"
    values = {10: ten} if null is None else {10: ten, None: heads["value"] + null}
    for expected, value in values.items():
        stored = admit(key, value)
        assert stored == reader.key_bytes((1,))  # so it is found by its key
        row = reader.row(StoredRecord(stored, value, 1, 0, 0, None))
        assert row is not None and (row["K"], row["V"]) == (1, expected)
    for side in ("key", "value"):
        assert len(env.registry.versions(f"t-{side}")) == 1
