"""PRINT guesses how keys and values are written."""

from __future__ import annotations

import json
import struct

import pytest

from headrace.engine.statements.print_topic import Guesses, _guesses, _key_guesses
from headrace.registry.client import InMemoryRegistry
from headrace.registry.core import SchemaRegistry
from headrace.registry.schema import Schema

NONE_YET = ["¯\\_(ツ)_/¯ - no data processed"]


def values() -> Guesses:
    return Guesses(_guesses(None))


def keys() -> Guesses:
    return Guesses(_key_guesses(None))


def test_nothing_is_known_before_the_first_record():
    guesses = values()
    assert guesses.text(None) == "<null>"
    assert guesses.names == NONE_YET


def test_json_is_also_a_text():
    guesses = values()
    assert guesses.text(b'{"a": 12}') == '{"a": 12}'
    assert guesses.names == ["JSON", "KAFKA_STRING"]
    assert guesses.text(b"hello there") == "hello there"
    assert guesses.names == ["KAFKA_STRING"]


def test_numbers_by_their_length():
    guesses = values()
    assert guesses.text(struct.pack(">i", 7)) == "7"
    assert guesses.names == ["KAFKA_INT", "KAFKA_STRING"]
    assert guesses.text(struct.pack(">i", -1)) == "-1"
    assert guesses.names == ["KAFKA_INT"]
    wide = values()
    assert wide.text(struct.pack(">q", -5)) == "-5"
    assert wide.names == ["KAFKA_BIGINT", "KAFKA_DOUBLE"]


def test_keys_of_windows():
    guesses = keys()
    assert guesses.text(b"ab" + struct.pack(">q", 10_000)) == "[ab@10000/-]"
    assert guesses.names[:2] == ["HOPPING(KAFKA_STRING)", "TUMBLING(KAFKA_STRING)"]


def test_keys_of_sessions():
    guesses = keys()
    session = b"x" + struct.pack(">qq", 2**40, 2**39)
    assert guesses.text(session) == f"[x@{2**39}/{2**40}]"
    assert "SESSION(KAFKA_STRING)" in guesses.names


def test_what_nobody_can_read():
    guesses = values()
    assert guesses.text(b"\xff\xfe\x00") == "\\xFF\\xFE\\x00"
    assert guesses.names == []


RECORD = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "id", "type": ["null", "long"]},
        {"name": "on", "type": {"type": "int", "logicalType": "date"}},
        {"name": "either", "type": ["int", "string"]},
        {
            "name": "map",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "E",
                    "connect.internal.type": "MapEntry",
                    "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": "int"}],
                },
            },
        },
    ],
}


@pytest.mark.parametrize(
    ("name", "schema", "payload", "shown"),
    [
        ("AVRO", Schema('"string"'), b"\x02x", "x"),
        ("AVRO", Schema('"bytes"'), b"\x02\xff", '{"bytes": "ÿ"}'),
        (
            "AVRO",
            Schema(json.dumps(RECORD)),
            b"\x02\x0e" + b"\x04" + b"\x02\x02a" + b"\x02\x02k\x06\x00",
            '{"id": 7, "on": 2, "either": "a", "map": [{"key": "k", "value": 3}]}',
        ),
        ("JSON_SR", Schema('{"type": "object"}', "JSON"), b'{"a": [1, true]}', "{a=[1, true]}"),
        (
            "PROTOBUF",
            Schema(
                'syntax = "proto3"; message M { int32 a = 1; N n = 2; repeated string s = 3;'
                " message N { bool b = 1; } }",
                "PROTOBUF",
            ),
            b"\0" + b"\x08\x05" + b"\x12\x02\x08\x01" + b"\x1a\x01x\x1a\x01y",
            'a: 5 n { b: true } s: "x" s: "y"',
        ),
    ],
)
def test_records_that_name_their_schema(name, schema, payload, shown):
    registry = SchemaRegistry()
    id_ = registry.register("t-value", schema).id
    data = b"\0" + id_.to_bytes(4) + payload
    guesses = Guesses(_guesses(InMemoryRegistry(registry)))
    assert guesses.text(data) == shown
    assert guesses.names[0] == name
    windowed = Guesses(_key_guesses(InMemoryRegistry(registry)))
    assert windowed.text(data + struct.pack(">q", 10_000)) == f"[{shown}@10000/-]"
    assert f"TUMBLING({name})" in windowed.names


def test_a_header_alone_is_no_json():
    registry = SchemaRegistry()
    id_ = registry.register("t-value", Schema('{"type": "object"}', "JSON")).id
    guesses = Guesses(_guesses(InMemoryRegistry(registry)))
    guesses.text(b"\0" + id_.to_bytes(4))
    assert "JSON_SR" not in guesses.names


def test_a_record_of_a_schema_that_nobody_knows():
    guesses = Guesses(_guesses(InMemoryRegistry(SchemaRegistry())))
    assert guesses.text(b"\0\0\0\0\x09\xff") == "\\x00\\x00\\x00\\x00\\x09\\xFF"
