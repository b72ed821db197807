"""Records that are no records, of every kind, among many good ones."""

from __future__ import annotations

import io
import random
import struct

import fastavro
import pytest

from scene import Scene, record

pytestmark = pytest.mark.heavy

GOOD, BAD = 100_000, 10_000
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "ID", "type": ["null", "int"]},
        {"name": "NAME", "type": ["null", "string"]},
        {"name": "AMOUNT", "type": ["null", "double"]},
    ],
}
# What another team writes to the same topic: the amount is a list.
OTHER = {
    **ORDER,
    "fields": [
        *ORDER["fields"][:2],
        {"name": "AMOUNT", "type": {"type": "array", "items": "string"}},
    ],
}
UNKNOWN_ID = 987_654


def framed(schema_id: int, schema: dict, row: dict, magic: int = 0) -> bytes:
    """Confluent's wire format."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return struct.pack(">bI", magic, schema_id) + out.getvalue()


def test_each_good_record_comes_through_and_each_bad_one_has_an_entry(scene: Scene, server):
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

    registry = SchemaRegistryClient({"url": server.registry})
    schema_id, other_id = (
        registry.register_schema(subject, Schema(fastavro.schema.to_parsing_canonical_form(s)))
        for subject, s in (("orders-corrupted-value", ORDER), ("somewhere-else", OTHER))
    )
    choose = random.Random(7)

    def bad(i: int) -> bytes:
        row = {"ID": i, "NAME": "x", "AMOUNT": 1.5}
        kinds = (
            lambda: framed(schema_id, ORDER, row)[:-1],  # truncated
            lambda: framed(schema_id, ORDER, row, magic=7),
            lambda: framed(UNKNOWN_ID, ORDER, row),
            lambda: framed(other_id, OTHER, {**row, "AMOUNT": ["much"]}),  # wrong type
            lambda: b"\x01" + choose.randbytes(choose.randrange(40)),
        )
        return kinds[i % len(kinds)]()

    scene.topic("orders-corrupted", partitions=2)
    every = (GOOD + BAD) // BAD
    wrong = {i for i in range(GOOD + BAD) if i % every == 3}
    assert len(wrong) == BAD
    scene.write(
        "orders-corrupted",
        *(
            record(
                bad(i // every)
                if i in wrong
                else framed(schema_id, ORDER, {"ID": i, "NAME": "n", "AMOUNT": i / 2}),
                key=str(i),
                partition=i % 2,
            )
            for i in range(GOOD + BAD)
        ),
    )
    scene.sql(
        "CREATE STREAM CORRUPTED (K STRING KEY, ID INT, NAME STRING, AMOUNT DOUBLE) "
        "WITH (kafka_topic='orders-corrupted', value_format='AVRO');"
    )
    with scene.query(
        "CREATE STREAM SOUND WITH (value_format='DELIMITED') AS "
        "SELECT K, ID, AMOUNT FROM CORRUPTED;"
    ) as query_id:
        written = scene.records("SOUND", GOOD)
        entries = scene.log(query_id, BAD)
    assert {int(r.key): r.value for r in written} == {
        i: f"{i},{i / 2}".encode() for i in range(GOOD + BAD) if i not in wrong
    }
    assert {e.message["type"] for e in entries} == {0}
    told = {(e.detail["partition"], e.detail["offset"]) for e in entries}
    assert told == {(i % 2, i // 2) for i in wrong}
