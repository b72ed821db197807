"""Protobuf schemas: texts to descriptors, and back."""

from __future__ import annotations

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from headrace.registry.compatibility.protobuf import incompatibilities as proto_incompatibilities
from headrace.schemas import protobuf
from headrace.schemas.protobuf import ProtoSyntaxError
from headrace.schemas.protobuf_text import proto_text

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
    assert proto_incompatibilities(again.descriptor, file.descriptor) == []
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


def test_messages_with_all_that_they_import() -> None:
    imports = {
        "all.proto": 'syntax = "proto3"; import public "event.proto";',
        "event.proto": """syntax = "proto3"; package e; import "confluent/type/decimal.proto";
            message Event { confluent.type.Decimal amount = 1 [(confluent.field_meta) =
              {params: [{value: "9", key: "precision"}, {value: "2", key: "scale"}]}]; }""",
    }
    text = """syntax = "proto3"; import "all.proto"; message M { e.Event event = 1; Kind kind = 2;
              enum Kind { option allow_alias = true; NORMAL = 0; USUAL = 0; } }"""
    file = protobuf.parse(text, imports)
    assert file.params == {"e.Event.amount": {"precision": "9", "scale": "2"}}
    (event, _) = file.message().fields
    assert event.message_type is not None
    assert event.message_type.fields[0].message_type is file.message("confluent.type.Decimal")
    # So it is where the schema is a descriptor.
    sent = protobuf.parse(file.serialized, imports)
    assert [f.full_name for f in sent.message("e.Event").fields] == ["e.Event.amount"]
    with pytest.raises(ValueError, match="There is no message X in the schema"):
        file.message("X")


@pytest.mark.parametrize(
    "text",
    [
        'syntax = "proto3"; enum E { ONE = 1; } message M { E e = 1; }',
        'syntax = "proto3"; message M { int32 a_b = 1; int32 aB = 2; }',
        "message M {" * 300 + "}" * 300,
    ],
)
def test_files_that_no_message_can_be_made_of(text: str) -> None:
    file = protobuf.parse(text, {})  # the registry takes them, as others do
    with pytest.raises(ValueError, match="Invalid protobuf schema"):
        file.message()
