"""JSON and Protobuf schemas: what is one, and who can read whom."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from headrace.registry.compatibility import json as json_compatibility
from headrace.registry.compatibility.protobuf import incompatibilities as proto_incompatibilities
from headrace.schemas import protobuf


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
    assert [o.kind for o in json_compatibility.incompatibilities(reader, writer)] == expected


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

    found = proto_incompatibilities(descriptor(reader), descriptor(writer))
    assert [incompatibility.kind for incompatibility in found] == expected


def test_required_fields() -> None:
    with_it = protobuf.parse("message M { required string a = 1; }", {}).descriptor
    without = protobuf.parse("message M { }", {}).descriptor
    assert [o.kind for o in proto_incompatibilities(with_it, without)] == ["REQUIRED_FIELD_ADDED"]
    assert [o.kind for o in proto_incompatibilities(without, with_it)] == ["REQUIRED_FIELD_REMOVED"]
