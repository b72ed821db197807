"""Confluent's own serializers and ours read each other's records."""

import json

import pytest
from google.protobuf import struct_pb2, timestamp_pb2, wrappers_pb2

from headrace.formats import FORMATS
from headrace.formats.base import Layout, RegistrySchema
from headrace.model.schema import Column
from headrace.model.types import BIGINT, DOUBLE, STRING, TIMESTAMP, Array, Field, Map, Struct

for module in ("avro", "json_schema", "protobuf"):
    pytest.importorskip(f"confluent_kafka.schema_registry.{module}", exc_type=ImportError)
pytestmark = pytest.mark.filterwarnings("ignore")

COLUMNS = (
    Column("ID", BIGINT),
    Column("NAME", STRING),
    Column("TAGS", Array(STRING)),
    Column("POINT", Struct((Field("X", DOUBLE),))),
)
ROW = {"ID": 5, "NAME": "é", "TAGS": ["a", "b"], "POINT": {"X": 1.5}}


@pytest.fixture
def registry():
    from confluent_kafka.schema_registry import SchemaRegistryClient

    return SchemaRegistryClient.new_client({"url": "mock://formats"})


def context():
    from confluent_kafka.serialization import MessageField, SerializationContext

    return SerializationContext("topic", MessageField.VALUE)


def registered(registry, format_, layout) -> Layout:
    """The layout with its own schema registered."""
    from dataclasses import replace

    from confluent_kafka.schema_registry import Schema

    schema = format_.to_registry(layout)
    schema_id = registry.register_schema("topic-value", Schema(schema.text, schema.type))
    return replace(layout, schema_id=schema_id)


def by_their_schema(registry, data: bytes, type_: str) -> Layout:
    schema_id = int.from_bytes(data[1:5], "big")
    text = registry.get_schema(schema_id).schema_str
    return Layout(COLUMNS, writers=((schema_id, RegistrySchema(text, type_)),))


def test_avro(registry):
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer

    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": ["null", "string"]},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {
                "name": "point",
                "type": {
                    "type": "record",
                    "name": "P",
                    "fields": [{"name": "x", "type": "double"}],
                },
            },
        ],
    }
    value = {"id": 5, "name": "é", "tags": ["a", "b"], "point": {"x": 1.5}}
    data = AvroSerializer(registry, json.dumps(schema))(value, context())
    avro = FORMATS["AVRO"]
    assert avro.python(by_their_schema(registry, data, "AVRO")).decode(data) == ROW
    layout = registered(registry, avro, Layout(COLUMNS))
    assert AvroDeserializer(registry)(avro.python(layout).encode(ROW), context()) == ROW


def test_json(registry):
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer

    schema = {
        "title": "R",
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": ["null", "string"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "point": {"type": "object", "properties": {"x": {"type": "number"}}},
        },
    }
    value = {"id": 5, "name": "é", "tags": ["a", "b"], "point": {"x": 1.5}}
    data = JSONSerializer(json.dumps(schema), registry)(value, context())
    json_sr = FORMATS["JSON_SR"]
    assert json_sr.python(by_their_schema(registry, data, "JSON")).decode(data) == ROW
    layout = registered(registry, json_sr, Layout(COLUMNS))
    own = JSONDeserializer(None, schema_registry_client=registry)
    assert own(json_sr.python(layout).encode(ROW), context()) == ROW


def test_protobuf(registry):
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer

    protobuf = FORMATS["PROTOBUF"]
    settings = {"use.deprecated.format": False}
    serializer = ProtobufSerializer(timestamp_pb2.Timestamp, registry, settings)
    data = serializer(timestamp_pb2.Timestamp(seconds=5), context())
    # What their serializer registers is a descriptor; which schema that is, we know.
    schema_id = int.from_bytes(data[1:5], "big")
    text = 'syntax = "proto3"; message T { int64 seconds = 1; int32 nanos = 2; }'
    layout = Layout(
        (Column("SECONDS", BIGINT),), writers=((schema_id, RegistrySchema(text, "PROTOBUF")),)
    )
    assert protobuf.python(layout).decode(data) == {"SECONDS": 5}
    bare = registered(registry, protobuf, Layout((Column("seconds", BIGINT),)))
    theirs = ProtobufDeserializer(timestamp_pb2.Timestamp, settings)
    written = protobuf.python(bare).encode({"seconds": 7})
    assert theirs(written, context()).seconds == 7


def test_messages_of_googles_library():
    """Maps, wrappers and timestamps, as any protobuf library writes them."""
    text = """
        syntax = "proto3";
        import "google/protobuf/wrappers.proto";
        import "google/protobuf/timestamp.proto";
        message R {
          google.protobuf.StringValue name = 1;
          google.protobuf.Timestamp at = 2;
          map<string, google.protobuf.DoubleValue> sums = 3;
        }"""
    columns = (
        Column("NAME", STRING),
        Column("AT", TIMESTAMP),
        Column("SUMS", Map(STRING, DOUBLE)),
    )
    name = wrappers_pb2.StringValue(value="x").SerializeToString()
    at = timestamp_pb2.Timestamp(seconds=1, nanos=5_000_000).SerializeToString()
    number = wrappers_pb2.DoubleValue(value=2.0).SerializeToString()
    entry = struct_pb2.Struct(fields={"k": struct_pb2.Value()}).SerializeToString()
    assert entry[:5] == b"\x0a\x05\x0a\x01k"
    sums = b"\x0a\x01k\x12" + bytes([len(number)]) + number
    parts = ((1, name), (2, at), (3, sums))
    payload = b"".join(bytes([n << 3 | 2, len(p)]) + p for n, p in parts)
    layout = Layout(columns, writers=((1, RegistrySchema(text, "PROTOBUF")),))
    rows = FORMATS["PROTOBUF"].python(layout)
    assert rows.decode(b"\0\0\0\0\1\0" + payload) == {"NAME": "x", "AT": 1005, "SUMS": {"k": 2.0}}
