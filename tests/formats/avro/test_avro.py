"""AVRO for single rows: the schema registered, exact bytes, any writer's schema read."""

import json
import struct
from decimal import Decimal as Number

import pytest

from headrace.formats import FORMATS
from headrace.formats.avro import binary as avro_binary
from headrace.formats.avro import columns_of_schema as avro_schema
from headrace.formats.avro.format import _spark_text
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
    SqlType,
    Struct,
)

AVRO = FORMATS["AVRO"]
HEADER = b"\0\0\0\0\7"


def layout(*columns: Column, wrapped: bool = True, **kwargs) -> Layout:
    return Layout(columns, wrapped, topic="t", schema_id=7, **kwargs)


def test_the_schema_of_every_type():
    columns = [
        Column("B", BOOLEAN),
        Column("I", INTEGER),
        Column("L", BIGINT),
        Column("D", DOUBLE),
        Column("S", STRING),
        Column("Y", BYTES),
        Column("N", Decimal(4, 2)),
        Column("DT", DATE),
        Column("TM", TIME),
        Column("TS", TIMESTAMP),
        Column("A", Array(STRING)),
        Column("M", Map(STRING, INTEGER)),
        Column("ST", Struct((Field("F.G", Struct((Field("H", INTEGER),))),))),
    ]
    schema = json.loads(AVRO.to_registry(layout(*columns)).text)
    name = "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema"

    def optional(name, type_):
        return {"name": name, "type": ["null", type_], "default": None}

    def logical(type_, connect, logical_type):
        return {
            "type": type_,
            "connect.version": 1,
            "connect.name": f"org.apache.kafka.connect.data.{connect}",
            "logicalType": logical_type,
        }

    assert schema == {
        "type": "record",
        "name": "KsqlDataSourceSchema",
        "namespace": "io.confluent.ksql.avro_schemas",
        "fields": [
            optional("B", "boolean"),
            optional("I", "int"),
            optional("L", "long"),
            optional("D", "double"),
            optional("S", "string"),
            optional("Y", "bytes"),
            optional(
                "N",
                {
                    "type": "bytes",
                    "scale": 2,
                    "precision": 4,
                    "connect.version": 1,
                    "connect.parameters": {"scale": "2", "connect.decimal.precision": "4"},
                    "connect.name": "org.apache.kafka.connect.data.Decimal",
                    "logicalType": "decimal",
                },
            ),
            optional("DT", logical("int", "Date", "date")),
            optional("TM", logical("int", "Time", "time-millis")),
            optional("TS", logical("long", "Timestamp", "timestamp-millis")),
            optional("A", {"type": "array", "items": ["null", "string"]}),
            optional(
                "M",
                {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "KsqlDataSourceSchema_M",
                        "fields": [optional("key", "string"), optional("value", "int")],
                        "connect.internal.type": "MapEntry",
                    },
                    "connect.name": f"{name}_M",
                },
            ),
            optional(
                "ST",
                {
                    "type": "record",
                    "name": "KsqlDataSourceSchema_ST",
                    "fields": [
                        optional(
                            "F_G",
                            {
                                "type": "record",
                                "name": "G",
                                "namespace": f"{name}_ST_F",
                                "fields": [optional("H", "int")],
                                "connect.name": f"{name}_ST_F.G",
                            },
                        )
                    ],
                    "connect.name": f"{name}_ST",
                },
            ),
        ],
        "connect.name": name,
    }


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (INTEGER, '"int"'),
        (STRING, '"string"'),
        (Array(BIGINT), '{"type":"array","items":["null","long"]}'),
        (
            Decimal(4, 2),
            '{"type":"bytes","scale":2,"precision":4,"connect.parameters":{"scale":"2",'
            '"connect.decimal.precision":"4"},"connect.name":'
            '"org.apache.kafka.connect.data.Decimal","logicalType":"decimal"}',
        ),
        (
            Struct((Field("F", INTEGER),)),
            '{"type":"record","name":"X","namespace":"a.b","fields":[{"name":"F","type":'
            '["null","int"],"default":null}],"connect.name":"a.b.X"}',
        ),
        (
            Map(STRING, INTEGER),
            '{"type":"array","items":{"type":"record","name":"X","namespace":"a.b","fields":['
            '{"name":"key","type":["null","string"],"default":null},'
            '{"name":"value","type":["null","int"],"default":null}],'
            '"connect.internal.type":"MapEntry"},"connect.name":"a.b.X"}',
        ),
    ],
    ids=str,
)
def test_the_schema_of_a_bare_value_is_the_anonymous_type(type_, text):
    bare = layout(Column("A", type_), wrapped=False, properties=(("fullSchemaName", "a.b.X"),))
    assert AVRO.to_registry(bare).text == text
    (field,) = AVRO.columns_from_registry(RegistrySchema(text, "AVRO"), "value", False, {})
    assert field == Field("ROWVAL", type_)


@pytest.mark.parametrize(
    ("type_", "value", "payload"),
    [
        (INTEGER, -1, b"\2\1"),
        (BIGINT, 2**63 - 1, b"\2\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1"),
        (DOUBLE, 1.5, b"\2" + struct.pack("<d", 1.5)),
        (BOOLEAN, True, b"\2\1"),
        (STRING, "é", b"\2\4\xc3\xa9"),
        (BYTES, b"\0\1", b"\2\4\0\1"),
        (Decimal(4, 2), Number("-1.28"), b"\2\2\x80"),
        (Decimal(4, 2), Number("1.28"), b"\2\4\0\x80"),
        (DATE, 1, b"\2\2"),
        (Array(INTEGER), [1, None], b"\2\4\2\2\0\0"),
        (Map(STRING, INTEGER), {"k": 1}, b"\2\2\2\2k\2\2\0"),
        (Struct((Field("X.Y", INTEGER),)), {"X.Y": 3}, b"\2\2\6"),
        (INTEGER, None, b"\0"),
    ],
    ids=str,
)
def test_exact_bytes(type_, value, payload):
    rows = AVRO.python(layout(Column("A", type_)))
    assert rows.encode({"A": value}) == HEADER + payload
    assert rows.decode(HEADER + payload) == {"A": value}
    bare = AVRO.python(layout(Column("A", type_), wrapped=False))
    if value is None:
        assert bare.encode({"A": None}) is None
    else:
        assert bare.encode({"A": value}) == HEADER + payload[1:]
        assert bare.decode(HEADER + payload[1:]) == {"A": value}


def read(type_: SqlType, writer, payload: bytes):
    text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": writer}]})
    known = ((9, RegistrySchema(text, "AVRO")),)
    row = AVRO.python(layout(Column("A", type_), writers=known)).decode(b"\0\0\0\0\x09" + payload)
    assert row is not None
    return row["A"]


@pytest.mark.parametrize(
    ("type_", "writer", "payload", "value"),
    [
        (BIGINT, "int", b"\x0e", 7),
        (DOUBLE, "float", struct.pack("<f", 0.5), 0.5),
        (STRING, "int", b"\x0e", "7"),
        (STRING, "float", struct.pack("<f", 1.1), "1.1"),
        (STRING, "double", struct.pack("<d", 1e10), "1.0E10"),
        (STRING, "boolean", b"\1", "true"),
        (STRING, {"type": "enum", "name": "E", "symbols": ["X", "Y"]}, b"\2", "Y"),
        (INTEGER, ["int", "null"], b"\2", None),
        (INTEGER, [{"type": "int", "logicalType": "date"}], b"\0\2", 1),
        (BYTES, {"type": "fixed", "name": "F", "size": 2}, b"xy", b"xy"),
        (
            Decimal(6, 3),
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            b"\4\0\x80",
            Number("1.280"),
        ),
        (Map(STRING, INTEGER), {"type": "map", "values": "int"}, b"\2\2k\2\0", {"k": 1}),
        (
            Struct((Field("STRING", STRING), Field("INT", INTEGER))),
            ["null", "int", "string"],
            b"\4\2x",
            {"STRING": "x", "INT": None},
        ),
        (
            Struct((Field("X", INTEGER), Field("Z", INTEGER))),
            {"type": "record", "name": "S", "fields": [{"name": "x", "type": "int"}]},
            b"\2",
            {"X": 1, "Z": None},
        ),
    ],
    ids=str,
)
def test_other_writers(type_, writer, payload, value):
    assert read(type_, writer, payload) == value


@pytest.mark.parametrize(
    ("type_", "writer", "payload", "causes"),
    [
        (DOUBLE, "int", b"\2", "Cannot deserialize type int32 as type float64 for path: ->A"),
        (INTEGER, "long", b"\2", "Cannot deserialize type int64 as type int32 for path: ->A"),
        (
            Array(INTEGER),
            {"type": "array", "items": "string"},
            b"\0",
            "Cannot deserialize type string as type int32 for path: ->A->ARRAY",
        ),
        (
            Decimal(2, 1),
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            b"\4\0\x80",
            "Cannot fit decimal '1.28' into DECIMAL(2, 1) without rounding. (Requires 3,2)",
        ),
        (
            STRING,
            "string",
            b"\x10x",
            "Failed to deserialize data for topic t to Avro: \n"
            "Malformed data. Length is out of bounds: 8",
        ),
        (
            INTEGER,
            "int",
            b"",
            "Failed to deserialize data for topic t to Avro: \nUnexpected end of data",
        ),
    ],
    ids=str,
)
def test_refusals(type_, writer, payload, causes):
    with pytest.raises(DecodeError) as e:
        read(type_, writer, payload)
    assert e.value.message == f"Error deserializing message from topic: t\n{causes}"


def test_headers_that_are_none():
    rows = AVRO.python(layout(Column("A", INTEGER)))
    for data, cause in [
        (b"", "Unknown magic byte!"),
        (b"\1\0\0\0\7\2\2", "Unknown magic byte!"),
        (b"\0\0\0", "Record is too short to bear a schema id"),
        (b"\0\0\0\0\x63\2\2", "unknown schema id 99"),
    ]:
        with pytest.raises(DecodeError) as e:
            rows.decode(data)
        assert e.value.message == f"Error deserializing message from topic: t\n{cause}"


def test_writing_by_a_schema_that_the_statement_names():
    schema = RegistrySchema(
        json.dumps(
            {
                "type": "record",
                "name": "R",
                "fields": [
                    {"name": "extra", "type": "int", "default": 5},
                    {"name": "B", "type": "string"},
                    {"name": "A", "type": "long", "default": 3},
                ],
            }
        ),
        "AVRO",
    )
    rows = AVRO.python(layout(Column("A", BIGINT), Column("B", STRING), physical=schema))
    assert rows.encode({"A": 1, "B": "x"}) == HEADER + b"\x0a\2x\2"
    assert rows.encode({"A": None, "B": "x"}) == HEADER + b"\x0a\2x\6"
    with pytest.raises(EncodeError, match="Invalid value: null used for required field"):
        rows.encode({"A": 1, "B": None})
    wrong = AVRO.python(layout(Column("Z", BIGINT), physical=schema))
    with pytest.raises(EncodeError, match="misses field with name: Z"):
        wrong.encode({"Z": 1})


def test_fields_that_the_query_does_not_have_take_the_defaults_of_the_schema():
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    inner = {
        "type": "record",
        "name": "I",
        "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "string", "default": "z"}],
    }
    extra = [
        ("n", ["null", "int"], None),
        ("d", decimal, "\u0001\u0002"),
        ("b", "bytes", "\u00ff"),
        ("f", {"type": "fixed", "name": "F", "size": 2}, "ab"),
        ("e", {"type": "enum", "name": "E", "symbols": ["P", "Q"]}, "Q"),
        ("a", {"type": "array", "items": "bytes"}, ["\u00fe"]),
        ("m", {"type": "map", "values": "double"}, {"k": 1}),
        ("r", inner, {"x": 7}),
        ("u", ["string", "int"], "s"),
        ("o", ["int", "null"], 3),
    ]
    fields = [{"name": name, "type": type_, "default": value} for name, type_, value in extra]
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "A", "type": "long"}, *fields],
    }
    named = RegistrySchema(json.dumps(schema), "AVRO")
    written = AVRO.python(layout(Column("A", BIGINT), physical=named)).encode({"A": 1})
    node = avro_schema.parse(named)
    assert avro_binary.decoder(node)(avro_binary.Source(written[5:])) == {
        "A": 1,
        "n": None,
        "d": Number("2.58"),
        "b": b"\xff",
        "f": b"ab",
        "e": "Q",
        "a": [b"\xfe"],
        "m": {"k": 1.0},
        "r": {"x": 7, "y": "z"},
        "u": {"string": "s"},
        "o": 3,
    }


def test_a_required_field_that_the_query_does_not_have_fails_each_record():
    fields = [{"name": "A", "type": "long"}, {"name": "more", "type": "string"}]
    schema = {"type": "record", "name": "R", "fields": fields}
    named = RegistrySchema(json.dumps(schema), "AVRO")
    rows = AVRO.python(layout(Column("A", BIGINT), physical=named))
    with pytest.raises(EncodeError) as failed:
        rows.encode({"A": 1})
    assert failed.value.message.endswith(
        "Missing default value for required Avro field: [more]. "
        "This field appears in Avro schema in Schema Registry"
    )


def test_inference():
    schema = RegistrySchema(
        json.dumps(
            {
                "type": "record",
                "name": "R",
                "fields": [
                    {"name": "id", "type": "int"},
                    {
                        "name": "price",
                        "type": ["null", {"type": "bytes", "logicalType": "decimal"}],
                    },
                    {"name": "when", "type": {"type": "long", "logicalType": "timestamp-millis"}},
                    {"name": "tags", "type": {"type": "map", "values": "float"}},
                    {"name": "either", "type": ["null", "int", "string"]},
                ],
            }
        ),
        "AVRO",
    )
    assert AVRO.columns_from_registry(schema, "value", True, {}) == [
        Field("ID", INTEGER),
        Field("PRICE", Decimal(64, 0)),
        Field("WHEN", TIMESTAMP),
        Field("TAGS", Map(STRING, DOUBLE)),
        Field("EITHER", Struct((Field("INT", INTEGER), Field("STRING", STRING)))),
    ]
    assert AVRO.columns_from_registry(schema, "value", True, {}, keep_case=True)[0].name == "id"
    with pytest.raises(StatementError, match="WRAP_SINGLE_VALUE=false"):
        AVRO.columns_from_registry(RegistrySchema('"int"', "AVRO"), "value", True, {})
    key = AVRO.columns_from_registry(RegistrySchema('"int"', "AVRO"), "key", False, {})
    assert key == [Field("ROWKEY", INTEGER)]


def test_names_that_avro_does_not_take():
    for name, reason in [
        ("1A", "Illegal initial character: 1A"),
        ("A-B", "Illegal character in: A-B"),
    ]:
        with pytest.raises(StatementError, match=f"Schema is not compatible with Avro: {reason}"):
            AVRO.check([Column(name, INTEGER)], "value")


def test_references():
    customer = json.dumps(
        {
            "type": "record",
            "name": "Customer",
            "namespace": "shop",
            "fields": [{"name": "name", "type": "string"}],
        }
    )
    order = {
        "type": "record",
        "name": "shop.Order",
        "fields": [{"name": "by", "type": ["null", "Customer"]}, {"name": "on", "type": "int"}],
    }
    schema = RegistrySchema(json.dumps(order), "AVRO", (("shop.Customer", customer),))
    inner = Struct((Field("NAME", STRING),))
    assert AVRO.columns_from_registry(schema, "value", True, {}) == [
        Field("BY", inner),
        Field("ON", INTEGER),
    ]
    rows = AVRO.python(layout(Column("BY", inner), Column("ON", INTEGER), writers=((9, schema),)))
    assert rows.decode(b"\0\0\0\0\x09" + b"\x02\x02x" + b"\x0e") == {"BY": {"NAME": "x"}, "ON": 7}
    # Spark, which knows no references, is given one schema.
    assert json.loads(_spark_text(avro_schema.parse(schema)))["fields"][0]["type"] == [
        "null",
        {
            "type": "record",
            "name": "Customer",
            "fields": [{"name": "name", "type": "string"}],
        },
    ]


def test_defaults_that_are_none_do_not_keep_others_records_from_being_read():
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "int", "default": "x"}],
    }
    known = ((9, RegistrySchema(json.dumps(schema), "AVRO")),)
    rows = AVRO.python(layout(Column("A", INTEGER), writers=known))
    assert rows.decode(b"\0\0\0\0\x09\x0e") == {"A": 7}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]},
        {
            "type": "array",
            "items": {
                "type": "record",
                "name": "E",
                "connect.internal.type": "MapEntry",
                "fields": [
                    {"name": "key", "type": "string"},
                    {"name": "value", "type": {"type": "array", "items": "E"}},
                ],
            },
        },
    ],
)
def test_schemas_that_contain_themselves(schema):
    with pytest.raises(StatementError, match="Cyclic schemas are not supported"):
        AVRO.columns_from_registry(RegistrySchema(json.dumps(schema), "AVRO"), "value", False, {})
