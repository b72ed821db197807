"""PROTOBUF and PROTOBUF_NOSR for single rows: schemas, exact bytes, other writers' messages."""

from decimal import Decimal as Number

import pytest

from headrace.formats import FORMATS
from headrace.formats.base import DecodeError, EncodeError, Layout, RegistrySchema
from headrace.model.errors import StatementError
from headrace.model.schema import Column
from headrace.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    Struct,
)

PROTOBUF, NOSR = FORMATS["PROTOBUF"], FORMATS["PROTOBUF_NOSR"]
HEADER = b"\0\0\0\0\7"


def layout(*columns: Column, wrapped: bool = True, **kwargs) -> Layout:
    return Layout(columns, wrapped, topic="t", schema_id=7, **kwargs)


COLUMNS = (Column("I", INTEGER), Column("S", STRING), Column("A", Array(BIGINT)))


@pytest.mark.parametrize(
    ("nullable", "text"),
    [
        (
            None,
            'syntax = "proto3";\n\n'
            "message ConnectDefault1 {\n  int32 I = 1;\n  string S = 2;\n"
            "  repeated int64 A = 3;\n}\n",
        ),
        (
            "optional",
            'syntax = "proto3";\n\n'
            "message ConnectDefault1 {\n  optional int32 I = 1;\n  optional string S = 2;\n"
            "  repeated int64 A = 3;\n}\n",
        ),
        (
            "wrapper",
            'syntax = "proto3";\n\nimport "google/protobuf/wrappers.proto";\n\n'
            "message ConnectDefault1 {\n  google.protobuf.Int32Value I = 1;\n"
            "  google.protobuf.StringValue S = 2;\n"
            "  repeated google.protobuf.Int64Value A = 3;\n}\n",
        ),
    ],
)
def test_the_schema_by_representation_of_nulls(nullable, text):
    properties = () if nullable is None else (("nullableRepresentation", nullable),)
    assert PROTOBUF.to_registry(layout(*COLUMNS, properties=properties)).text == text


def test_the_schema_of_nested_and_logical_types():
    columns = (
        Column("ST", Struct((Field("F", Struct((Field("G", INTEGER),))),))),
        Column("M", Map(STRING, DOUBLE)),
        Column("N", Decimal(4, 2)),
        Column("D", DATE),
    )
    named = layout(*columns, properties=(("fullSchemaName", "com.acme.Row"),))
    assert PROTOBUF.to_registry(named).text == (
        'syntax = "proto3";\npackage com.acme;\n\n'
        'import "confluent/meta.proto";\n'
        'import "confluent/type/decimal.proto";\n'
        'import "google/type/date.proto";\n\n'
        "message Row {\n"
        "  ConnectDefault1 ST = 1;\n"
        "  repeated ConnectDefault3Entry M = 2;\n"
        "  confluent.type.Decimal N = 3 [(confluent.field_meta) = {\n"
        "    params: [\n"
        "      {\n"
        '        value: "4",\n'
        '        key: "precision"\n'
        "      },\n"
        "      {\n"
        '        value: "2",\n'
        '        key: "scale"\n'
        "      }\n"
        "    ]\n"
        "  }];\n"
        "  google.type.Date D = 4;\n"
        "\n"
        "  message ConnectDefault1 {\n"
        "    ConnectDefault2 F = 1;\n"
        "\n"
        "    message ConnectDefault2 {\n"
        "      int32 G = 1;\n"
        "    }\n"
        "  }\n"
        "  message ConnectDefault3Entry {\n"
        "    string key = 1;\n"
        "    double value = 2;\n"
        "  }\n"
        "}\n"
    )
    inferred = PROTOBUF.columns_from_registry(PROTOBUF.to_registry(named), "value", True, {})
    assert inferred == [Field(c.name, c.type) for c in columns]


def test_exact_bytes_and_nulls():
    rows = PROTOBUF.python(layout(*COLUMNS))
    assert rows.encode({"I": 1, "S": "x", "A": [1, 2]}) == (
        HEADER + b"\0" + b"\x08\1\x12\1x\x1a\2\1\2"
    )
    assert rows.encode({"I": None, "S": None, "A": None}) == HEADER + b"\0"
    assert rows.decode(HEADER + b"\0") == {"I": 0, "S": "", "A": []}
    assert rows.encode(None) is None
    assert rows.decode(None) is None
    with pytest.raises(EncodeError, match="cannot hold null"):
        rows.encode({"I": 1, "S": "x", "A": [None]})


@pytest.mark.parametrize(
    ("nullable", "null", "message_of_empty"),
    [(None, b"", b""), ("optional", None, b"\n\0"), ("wrapper", None, b"\n\0")],
)
def test_bytes_that_are_null_are_empty_unless_the_schema_knows_nulls(
    nullable, null, message_of_empty
):
    properties = () if nullable is None else (("nullableRepresentation", nullable),)
    rows = PROTOBUF.python(layout(Column("B", BYTES), properties=properties))
    assert rows.encode({"B": None}) == HEADER + b"\0"
    assert rows.decode(HEADER + b"\0") == {"B": null}
    assert rows.encode({"B": b""}) == HEADER + b"\0" + message_of_empty
    assert rows.decode(HEADER + b"\0" + message_of_empty) == {"B": b""}


@pytest.mark.parametrize(
    ("nullable", "data"),
    [("optional", b"\x08\0"), ("wrapper", b"\x0a\0")],
)
def test_nulls_are_told_from_zeros(nullable, data):
    shown = layout(
        Column("I", INTEGER),
        Column("S", STRING),
        properties=(("nullableRepresentation", nullable),),
    )
    for format_, header in ((PROTOBUF, HEADER + b"\0"), (NOSR, b"")):
        rows = format_.python(shown)
        assert rows.encode({"I": 0, "S": None}) == header + data
        assert rows.decode(header + data) == {"I": 0, "S": None}


def test_every_type_reads_back():
    columns = tuple(
        Column(name, type_)
        for name, type_ in (
            ("B", BOOLEAN),
            ("I", INTEGER),
            ("L", BIGINT),
            ("D", DOUBLE),
            ("S", STRING),
            ("Y", BYTES),
            ("N", Decimal(4, 2)),
            ("DT", DATE),
            ("TM", TIME),
            ("TS", TIMESTAMP),
            ("A", Array(Struct((Field("X", DATE),)))),
            ("M", Map(STRING, Decimal(4, 2))),
            ("ST", Struct((Field("X", Map(STRING, INTEGER)),))),
        )
    )
    row = {
        "B": True,
        "I": -1,
        "L": 2**63 - 1,
        "D": 1.5,
        "S": "é",
        "Y": b"\0",
        "N": Number("-1.28"),
        "DT": -1,
        "TM": 86399999,
        "TS": -1,
        "A": [{"X": 1}, {"X": None}],
        "M": {"k": Number("1.00")},
        "ST": {"X": {"k": 1}},
    }
    for format_ in (PROTOBUF, NOSR):
        rows = format_.python(layout(*columns))
        assert rows.decode(rows.encode(row)) == row


@pytest.mark.parametrize(
    ("type_", "value", "data"),
    [
        (INTEGER, 5, b"\x08\5"),
        (STRING, "x", b"\x0a\1x"),
        (Decimal(4, 2), Number("1.20"), b"\x0a\1x\x10\3\x18\2"),
        (TIMESTAMP, 1500, b"\x08\1\x10\x80\xca\xb5\xee\1"),
        (Struct((Field("F", INTEGER),)), {"F": 5}, b"\x08\5"),
    ],
    ids=str,
)
def test_bare_values_without_registry(type_, value, data):
    rows = NOSR.python(layout(Column("A", type_), wrapped=False))
    assert rows.encode({"A": value}) == data
    assert rows.decode(data) == {"A": value}
    assert rows.encode({"A": None}) is None


SCHEMA = """
// a comment
syntax = "proto3";
package p;
import 'google/protobuf/wrappers.proto';
import "google/protobuf/timestamp.proto";
option java_package = "x.y";
message First { int32 a = 1; }
message Other {
  reserved 9, 10 to 12;
  enum Suit { SPADES = 0; HEARTS = 1; }
  message Inner { google.protobuf.BoolValue flag = 1 [deprecated = true]; }
  Suit suit = 1;
  Inner inner = 2;
  map<string, uint64> counts = 3;
  oneof choice { string text = 4; Inner more = 5; }
  optional float ratio = 6;
  google.protobuf.Timestamp at = 7;
  repeated Suit suits = 8;
}
service Ignored { rpc Get (First) returns (Other) {} }
"""


def test_other_writers():
    schema = RegistrySchema(SCHEMA, "PROTOBUF")
    assert PROTOBUF.columns_from_registry(schema, "value", True, {}) == [Field("A", INTEGER)]
    fields = PROTOBUF.columns_from_registry(schema, "value", True, {"fullSchemaName": "p.Other"})
    inner = Struct((Field("FLAG", BOOLEAN),))
    assert fields == [
        Field("CHOICE_0", Struct((Field("TEXT", STRING), Field("MORE", inner)))),
        Field("SUIT", STRING),
        Field("INNER", inner),
        Field("COUNTS", Map(STRING, BIGINT)),
        Field("RATIO", DOUBLE),
        Field("AT", TIMESTAMP),
        Field("SUITS", Array(STRING)),
    ]
    rows = PROTOBUF.python(
        layout(*(Column(f.name, f.type) for f in fields), writers=((9, schema),))
    )
    start = b"\0\0\0\0\x09"
    second = b"\2\2"  # one index: 1
    data = (
        b"\x08\1"  # suit
        b"\x12\4\x0a\2\x08\1"  # inner
        b"\x1a\x0e\x0a\1k\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"  # counts
        b"\x22\1x"  # text
        b"\x35\0\0\0\x3f"  # ratio
        b"\x3a\2\x08\1"  # at
        b"\x42\2\1\5"  # suits
    )
    assert rows.decode(start + second + data) == {
        "CHOICE_0": {"TEXT": "x", "MORE": None},
        "SUIT": "HEARTS",
        "INNER": {"FLAG": True},
        "COUNTS": {"k": -1},
        "RATIO": 0.5,
        "AT": 1000,
        "SUITS": ["HEARTS", "UNKNOWN_ENUM_VALUE_Suit_5"],
    }
    assert rows.decode(start + second) == {
        "CHOICE_0": None,
        "SUIT": "SPADES",
        "INNER": None,
        "COUNTS": {},
        "RATIO": None,
        "AT": None,
        "SUITS": [],
    }
    for bad, cause in [
        (start + b"\2\4", "Invalid message indexes: [2]"),
        (start + second + b"\xff", "Error deserializing Protobuf message"),
        (b"\0\0\0\0\1\0", "unknown schema id 1"),
    ]:
        with pytest.raises(DecodeError) as e:
            rows.decode(bad)
        assert cause in e.value.message


def test_writing_by_a_schema_that_the_statement_names():
    schema = RegistrySchema(SCHEMA, "PROTOBUF")
    shown = layout(
        Column("ratio", DOUBLE),
        Column("suit", STRING),
        physical=schema,
        properties=(("fullSchemaName", "p.Other"),),
    )
    rows = PROTOBUF.python(shown)
    assert rows.encode({"ratio": 0.5, "suit": "HEARTS"}) == (
        HEADER + b"\2\2" + b"\x08\1\x35\0\0\0\x3f"
    )
    with pytest.raises(EncodeError, match="CLUBS is not a value of Suit"):
        rows.encode({"ratio": 0.5, "suit": "CLUBS"})


@pytest.mark.parametrize("nullable", [None, "OPTIONAL", "WRAPPER"])
def test_fields_that_the_query_does_not_have(nullable):
    """They are left out, which is their default, unless only some fields may be null."""
    text = """
        syntax = "proto3";
        import "google/protobuf/wrappers.proto";
        message M {
          int32 A = 1;
          %s B = 2;
          google.protobuf.StringValue w = 3;
          repeated int32 r = 4;
          optional bytes o = 5;
        }
    """
    options = (("nullableRepresentation", nullable),) if nullable else ()

    def rows(type_):
        schema = RegistrySchema(text % type_, "PROTOBUF")
        shown = layout(Column("A", INTEGER), physical=schema, properties=options)
        return PROTOBUF.python(shown)

    if nullable != "WRAPPER":
        assert rows("google.protobuf.Int32Value").encode({"A": 1}) == HEADER + b"\0\x08\1"
    if nullable is None:
        assert rows("string").encode({"A": 1}) == HEADER + b"\0\x08\1"
        return
    with pytest.raises(EncodeError) as failed:
        rows("string").encode({"A": 1})
    assert failed.value.message.endswith(
        "Missing default value for required Protobuf field: [B]. "
        "This field appears in Protobuf schema in Schema Registry"
    )
    with pytest.raises(EncodeError, match="null used for required field"):
        rows("google.protobuf.Int32Value").encode({"A": None})


@pytest.mark.parametrize("format_", [PROTOBUF, NOSR])
@pytest.mark.parametrize(("nullable", "null"), [(None, b""), ("OPTIONAL", None), ("WRAPPER", None)])
def test_null_and_empty_bytes(format_, nullable, null):
    """A message knows no null bytes unless it is told how to write them."""
    options = (("nullableRepresentation", nullable),) if nullable else ()
    rows = format_.python(layout(Column("B", BYTES), Column("N", INTEGER), properties=options))
    for given, read in ((None, null), (b"", b""), (b"\0", b"\0")):
        assert rows.decode(rows.encode({"B": given, "N": 1})) == {"B": read, "N": 1}


def test_references():
    schema = RegistrySchema(
        'syntax = "proto3"; import "event.proto"; message Logistics { Event event = 1; }',
        "PROTOBUF",
        (("event.proto", 'syntax = "proto3"; message Event { int64 timestamp = 1; }'),),
    )
    assert PROTOBUF.columns_from_registry(schema, "value", True, {}, keep_case=True) == [
        Field("event", Struct((Field("timestamp", BIGINT),)))
    ]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (
            Column("A", Map(INTEGER, STRING)),
            "PROTOBUF format only supports MAP types with STRING keys. "
            "See https://github.com/confluentinc/ksql/issues/6177.",
        ),
        (Column("A", Array(Array(INTEGER))), "Array cannot be nested"),
        (
            Column("A-B", INTEGER),
            'Invalid protobuf schema definition: "A-B" is not a valid identifier.',
        ),
    ],
    ids=str,
)
def test_columns_that_no_message_holds(column, reason):
    for format_ in (PROTOBUF, NOSR):
        with pytest.raises(StatementError) as e:
            format_.check([column], "value")
        assert e.value.message.endswith(f"reason: {reason}")


@pytest.mark.parametrize(
    "text",
    [
        "message A {",
        'syntax = "proto3"; message A { Unknown b = 1; }',
        "message A {" * 5000 + "}" * 5000,
        "message A {" * 300 + "}" * 300,
    ],
)
def test_what_is_no_schema(text):
    with pytest.raises(StatementError, match="Invalid protobuf schema"):
        PROTOBUF.columns_from_registry(RegistrySchema(text, "PROTOBUF"), "value", True, {})
