"""JSON and Protobuf schemas: what is one, and who can read whom."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from headrace.topics.registry import json_compatibility, protobuf
from headrace.topics.registry.protobuf import ProtoSyntaxError
from headrace.topics.registry.protobuf_compatibility import obstacles as proto_obstacles
from headrace.topics.registry.protobuf_text import proto_text


def thing(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties} | more


STRING, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}
CLOSED = {"additionalProperties": False}
NODE = {
    "$ref": "#/definitions/node",
    "definitions": {"node": thing({"next": {"$ref": "#/definitions/node"}, "v": INTEGER})},
}


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        (True, STRING, []),
        (False, STRING, ["TYPE_NARROWED"]),
        (NUMBER, INTEGER, []),
        (INTEGER, NUMBER, ["TYPE_CHANGED"]),
        ({"type": ["string", "null"]}, STRING, []),
        (STRING, {"type": ["string", "null"]}, ["TYPE_NARROWED"]),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, []),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, ["ENUM_ARRAY_NARROWED"]),
        ({"const": 1}, {"const": 1}, []),
        (thing({}), thing({"a": STRING}), []),
        (thing({"a": STRING}), thing({}), ["PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"]),
        (thing({"a": STRING}, **CLOSED), thing({}, **CLOSED), []),
        (
            thing({"a": STRING}, required=["a"], **CLOSED),
            thing({}, **CLOSED),
            ["REQUIRED_ATTRIBUTE_ADDED"],
        ),
        (
            thing({"a": STRING | {"default": ""}}, required=["a"], **CLOSED),
            thing({}, **CLOSED),
            [],
        ),
        (
            thing({}, **CLOSED),
            thing({"a": STRING}, **CLOSED),
            ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"],
        ),
        (thing({}, **CLOSED), thing({}), ["ADDITIONAL_PROPERTIES_REMOVED"]),
        (thing({"a": NUMBER}), thing({"a": STRING}), ["TYPE_CHANGED"]),
        ({"type": "array", "items": NUMBER}, {"type": "array", "items": INTEGER}, []),
        (
            {"type": "array", "items": INTEGER},
            {"type": "array", "items": STRING},
            ["TYPE_CHANGED"],
        ),
        ({"oneOf": [STRING, NUMBER]}, STRING, []),
        ({"oneOf": [STRING]}, {"oneOf": [STRING, NUMBER]}, ["SUM_TYPE_NARROWED"]),
        (STRING | {"maxLength": 5}, STRING | {"maxLength": 9}, ["MAX_LENGTH_DECREASED"]),
        (STRING | {"maxLength": 9}, STRING | {"maxLength": 5}, []),
        (STRING | {"minLength": 1}, STRING, ["MIN_LENGTH_ADDED"]),
        (NODE, json.loads(json.dumps(NODE)), []),
        (
            NODE,
            json.loads(json.dumps(NODE).replace("integer", "string")),
            ["TYPE_CHANGED"],
        ),
    ],
)
def test_json(reader: Any, writer: Any, expected: list[str]) -> None:
    assert [o.kind for o in json_compatibility.obstacles(reader, writer)] == expected


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '"string"', '{"type":"text"}', '{"properties":[]}', '{"items":3}', "[" * 9999],
)
def test_what_is_not_a_json_schema(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_compatibility.parse(text)


FULL = """
// an order
syntax = "proto3";
package shop.v1;
import "google/protobuf/timestamp.proto";
import "confluent/type/decimal.proto";
import "customer.proto";
option java_package = "com.shop";
message Order {
  option deprecated = false;
  string id = 1 [json_name = "ID"]; /* the id */
  optional int32 amount = 2;
  repeated Line lines = 3;
  map<string, Line> by_name = 4;
  oneof payment { string card = 5; bool cash = 6; }
  google.protobuf.Timestamp at = 7;
  confluent.type.Decimal total = 8;
  .shop.Customer customer = 9;
  Kind kind = 10;
  reserved 20 to 30, 40;
  reserved "old";
  message Line { string name = 1; Order parent = 2; }
  enum Kind { option allow_alias = true; NORMAL = 0; RUSH = 1; HURRY = 1 [deprecated = true]; }
}
service Orders { rpc Get (Order) returns (Order) { option x = "{"; } }
"""
CUSTOMER = 'syntax = "proto3"; package shop; message Customer { string name = 1; }'


def test_a_proto_file_and_back() -> None:
    file = protobuf.parse(FULL, {"customer.proto": CUSTOMER})
    order = file.descriptor.message_type[0]
    types = {field.name: field.type_name for field in order.field if field.type_name}
    assert types == {
        "lines": ".shop.v1.Order.Line",
        "by_name": ".shop.v1.Order.ByNameEntry",
        "at": ".google.protobuf.Timestamp",
        "total": ".confluent.type.Decimal",
        "customer": ".shop.Customer",
        "kind": ".shop.v1.Order.Kind",
    }
    # Printed and read again, and sent as base64, it is the same.
    again = protobuf.parse(proto_text(file.descriptor), {"customer.proto": CUSTOMER})
    assert proto_obstacles(again.descriptor, file.descriptor) == []
    assert proto_text(again.descriptor) == proto_text(file.descriptor)
    sent = protobuf.parse(file.serialized, {})
    assert sent.text == proto_text(file.descriptor)


def test_the_descriptor_is_one_that_protobuf_takes() -> None:
    text = """syntax = "proto3"; message M { optional string a = 1; map<int32, E> m = 2;
              oneof o { M b = 3; } enum E { ZERO = 0; } }"""
    descriptor = protobuf.parse(text, {}).descriptor
    pool = DescriptorPool()
    pool.Add(FileDescriptorProto.FromString(base64.b64decode(protobuf.parse(text, {}).serialized)))
    message = pool.FindMessageTypeByName("M")
    assert [f.name for f in message.fields] == ["a", "m", "b"]
    assert message.fields_by_name["a"].has_presence
    assert descriptor.message_type[0].nested_type[0].options.map_entry


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("message M {", "unexpected end of file"),
        ("message M { string a; }", "expected '=' but found ';'"),
        ("message M { string a = 0; }", "cannot have the number 0"),
        ("message M { string a = 1; int32 b = 1; }", "name or number twice"),
        ("message M { Nothing a = 1; }", '"Nothing" is not defined'),
        ('import "gone.proto";', "No dependency 'gone.proto' found"),
        ("message M { map<bytes, string> a = 1; }", "cannot be the key of a map"),
        ("enum E { }", "has no values"),
        ("SELECT 1", "unexpected 'SELECT'"),
        ("message M { string a = 1; } $", r"unexpected '\$'"),
        ("message M {" * 5000, "nested too deeply|unexpected end"),
    ],
)
def test_what_is_not_a_proto_file(text: str, message: str) -> None:
    with pytest.raises(ProtoSyntaxError, match=message):
        protobuf.parse(text, {})


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        ("string a = 1; int32 b = 2;", "string a = 1;", []),
        ("string a = 1;", "string a = 1; int32 b = 2;", []),
        ("string renamed = 1;", "string a = 1;", []),
        ("int64 a = 1;", "int32 a = 1;", []),
        ("bytes a = 1;", "string a = 1;", []),
        ("string a = 1;", "int32 a = 1;", ["FIELD_SCALAR_KIND_CHANGED"]),
        ("sint32 a = 1;", "int32 a = 1;", ["FIELD_SCALAR_KIND_CHANGED"]),
        ("repeated int32 a = 1;", "int32 a = 1;", ["FIELD_NUMERIC_LABEL_CHANGED"]),
        ("repeated string a = 1;", "string a = 1;", []),
        ("N a = 1; message N {}", "int32 a = 1; message N {}", ["FIELD_KIND_CHANGED"]),
        (
            "O a = 1; message N {} message O {}",
            "N a = 1; message N {} message O {}",
            ["FIELD_NAMED_TYPE_CHANGED"],
        ),
        ("", "message N {}", ["MESSAGE_REMOVED"]),
        ("", "oneof o { string a = 1; }", ["ONEOF_FIELD_REMOVED"]),
        ("oneof o { string a = 1; }", "string a = 1;", []),
        (
            "oneof o { string a = 1; string b = 2; }",
            "string a = 1; string b = 2;",
            ["MULTIPLE_FIELDS_MOVED_TO_ONEOF"],
        ),
    ],
)
def test_protobuf(reader: str, writer: str, expected: list[str]) -> None:
    def descriptor(fields: str) -> FileDescriptorProto:
        return protobuf.parse(f'syntax = "proto3"; message M {{ {fields} }}', {}).descriptor

    found = proto_obstacles(descriptor(reader), descriptor(writer))
    assert [obstacle.kind for obstacle in found] == expected


def test_required_fields() -> None:
    with_it = protobuf.parse("message M { required string a = 1; }", {}).descriptor
    without = protobuf.parse("message M { }", {}).descriptor
    assert [o.kind for o in proto_obstacles(with_it, without)] == ["REQUIRED_FIELD_ADDED"]
    assert [o.kind for o in proto_obstacles(without, with_it)] == ["REQUIRED_FIELD_REMOVED"]
