"""VALUE_SCHEMA_ID: what a query writes by a schema that has more fields than it has columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_cases import failures

AVRO = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "A", "type": ["null", "int"], "default": None},
        {"name": "N", "type": "long", "default": 5},
        {"name": "T", "type": ["null", "string"], "default": None},
        {"name": "B", "type": "bytes", "default": "\u0001"},
    ],
}
STRICT = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "A", "type": "int"}, {"name": "N", "type": "long"}],
}
PROTOBUF = 'syntax = "proto3"; message M { int32 A = 1; int64 N = 2; optional string T = 3; }'


def case(name, format_, schema, outputs, with_clause=""):
    return {
        "name": name,
        "statements": [
            "CREATE STREAM S (K INT KEY, V INT) WITH (kafka_topic='s', value_format='JSON');",
            f"CREATE STREAM O WITH (kafka_topic='o', value_format='{format_}', VALUE_SCHEMA_ID=42"
            f"{with_clause}) AS SELECT K, V AS A FROM S;",
        ],
        "properties": {"ksql.persistence.wrap.single.values": "true"},
        "topics": [
            {"name": "s"},
            {"name": "o", "valueFormat": format_, "valueSchema": schema, "valueSchemaId": 42},
        ],
        "inputs": [{"topic": "s", "key": 1, "value": {"V": 7}}],
        "outputs": [{"topic": "o", "key": 1, "value": value} for value in outputs],
    }


@pytest.mark.heavy
def test_fields_that_the_query_does_not_have(tmp_path: Path):
    defaults = {"A": 7, "N": 5, "T": None, "B": "AQ=="}
    empty = {"A": 7, "N": 0, "T": None}
    told = ", VALUE_PROTOBUF_NULLABLE_REPRESENTATION='OPTIONAL'"
    cases = [
        case("avro", "AVRO", AVRO, [defaults]),
        case("avro, required", "AVRO", STRICT, []),
        case("protobuf", "PROTOBUF", PROTOBUF, [empty]),
        case("protobuf, required", "PROTOBUF", PROTOBUF, [], told),
    ]
    assert failures(tmp_path, cases, "--direct") == {}
