"""JSON_SR for single rows: the schema registered, exact bytes, other writers' schemas."""

import json
from decimal import Decimal as Number

import pytest

from headrace.formats import FORMATS
from headrace.formats.base import DecodeError, Layout, RegistrySchema
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
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    Struct,
)

JSON_SR = FORMATS["JSON_SR"]
HEADER = b"\0\0\0\0\7"
NULL = {"type": "null"}


def layout(*columns: Column, wrapped: bool = True, **kwargs) -> Layout:
    return Layout(columns, wrapped, topic="t", schema_id=7, **kwargs)


def optional(index, schema):
    return {"connect.index": index, "oneOf": [NULL, schema]}


def test_the_schema_of_a_row():
    columns = [
        Column("I", INTEGER),
        Column("S", Struct((Field("B", BOOLEAN),))),
        Column("M", Map(STRING, BIGINT)),
        Column("A", Array(BYTES)),
        Column("N", Decimal(4, 2)),
        Column("D", DATE),
    ]
    text = JSON_SR.to_registry(layout(*columns)).text
    assert json.loads(text) == {
        "type": "object",
        "properties": {
            "I": optional(0, {"type": "integer", "connect.type": "int32"}),
            "S": optional(
                1, {"type": "object", "properties": {"B": optional(0, {"type": "boolean"})}}
            ),
            "M": optional(
                2,
                {
                    "type": "array",
                    "connect.type": "map",
                    "items": {
                        "type": "object",
                        "properties": {
                            "key": optional(0, {"type": "string"}),
                            "value": optional(1, {"type": "integer", "connect.type": "int64"}),
                        },
                    },
                },
            ),
            "A": optional(
                3,
                {
                    "type": "array",
                    "items": {"oneOf": [NULL, {"type": "string", "connect.type": "bytes"}]},
                },
            ),
            "N": optional(
                4,
                {
                    "type": "number",
                    "title": "org.apache.kafka.connect.data.Decimal",
                    "connect.version": 1,
                    "connect.type": "bytes",
                    "connect.parameters": {"scale": "2", "connect.decimal.precision": "4"},
                },
            ),
            "D": optional(
                5,
                {
                    "type": "integer",
                    "title": "org.apache.kafka.connect.data.Date",
                    "connect.version": 1,
                    "connect.type": "int32",
                },
            ),
        },
    }
    inferred = JSON_SR.columns_from_registry(RegistrySchema(text, "JSON"), "value", True, {})
    assert inferred == [Field(c.name, c.type) for c in columns]


def test_the_schema_of_a_bare_value_may_be_null():
    text = JSON_SR.to_registry(layout(Column("A", INTEGER), wrapped=False)).text
    assert text == '{"oneOf":[{"type":"null"},{"type":"integer","connect.type":"int32"}]}'
    (field,) = JSON_SR.columns_from_registry(RegistrySchema(text, "JSON"), "key", False, {})
    assert field == Field("ROWKEY", INTEGER)


def test_exact_bytes():
    columns = (
        Column("I", INTEGER),
        Column("M", Map(STRING, DOUBLE)),
        Column("N", Decimal(4, 2)),
        Column("Y", BYTES),
        Column("S", Struct((Field("F", STRING),))),
    )
    rows = JSON_SR.python(layout(*columns))
    row = {"I": None, "M": {"k": 1.0}, "N": Number("1.20"), "Y": b"\1", "S": {"F": "x"}}
    data = HEADER + (b'{"I":null,"M":[{"key":"k","value":1.0}],"N":1.20,"Y":"AQ==","S":{"F":"x"}}')
    assert rows.encode(row) == data
    assert rows.decode(data) == row
    bare = JSON_SR.python(layout(Column("A", Array(INTEGER)), wrapped=False))
    assert bare.encode({"A": [1, None]}) == HEADER + b"[1,null]"
    assert bare.encode({"A": None}) is None
    assert bare.decode(HEADER + b"null") == {"A": None}


def read(column: Column, schema, text: str):
    writers = ((9, RegistrySchema(json.dumps(schema), "JSON")),)
    row = JSON_SR.python(layout(column, writers=writers)).decode(b"\0\0\0\0\x09" + text.encode())
    assert row is not None
    return row[column.name]


def an_object(**properties):
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("type_", "schema", "text", "value"),
    [
        (BIGINT, {"type": "integer"}, '{"a":5}', 5),
        (STRING, {"type": "integer"}, '{"a":5}', "5"),
        (DOUBLE, {"type": "number"}, '{"a":5}', 5.0),
        (DOUBLE, {"type": ["null", "number"]}, '{"a":null}', None),
        (STRING, {"type": "string", "default": "d"}, "{}", "d"),
        (STRING, {"enum": ["x", "y"]}, '{"a":"x"}', "x"),
        (
            Map(STRING, BIGINT),
            {
                "type": "object",
                "connect.type": "map",
                "additionalProperties": {"type": "integer"},
            },
            '{"a":{"k":1}}',
            {"k": 1},
        ),
        (
            Struct((Field("X", BIGINT),)),
            {"$ref": "#/definitions/inner"},
            '{"a":{"x":1,"X":2}}',
            {"X": 1},
        ),
        (
            Decimal(4, 2),
            {
                "type": "string",
                "title": "org.apache.kafka.connect.data.Decimal",
                "connect.type": "bytes",
                "connect.parameters": {"scale": "1"},
            },
            '{"a":"AIA="}',
            Number("12.80"),
        ),
    ],
    ids=str,
)
def test_other_writers(type_, schema, text, value):
    definitions = {"definitions": {"inner": an_object(x={"type": "integer"})}}
    assert read(Column("A", type_), an_object(a=schema) | definitions, text) == value


def test_one_of_several():
    union = {"oneOf": [{"type": "string"}, an_object(x={"type": "integer"})]}
    prefix = "io.confluent.connect.json.OneOf.field."
    (field,) = JSON_SR.columns_from_registry(
        RegistrySchema(json.dumps(an_object(a=union)), "JSON"), "value", True, {}
    )
    assert field == Field(
        "A",
        Struct(
            (
                Field(f"{prefix}0".upper(), STRING),
                Field(f"{prefix}1".upper(), Struct((Field("X", BIGINT),))),
            )
        ),
    )
    column = Column("A", field.type)
    assert read(column, an_object(a=union), '{"a":"s"}')[f"{prefix}0".upper()] == "s"
    assert read(column, an_object(a=union), '{"a":{"x":1}}')[f"{prefix}1".upper()] == {"X": 1}


@pytest.mark.parametrize(
    ("type_", "schema", "text", "cause"),
    [
        (
            INTEGER,
            {"type": "integer"},
            '{"a":5}',
            "Cannot deserialize type int64 as type int32 for path: ->A",
        ),
        (BIGINT, {"type": "integer"}, '{"a":null}', "Invalid null value for required INT64 field"),
        (BIGINT, {"type": "integer"}, '{"a":true}', "Expected an integer, but found true"),
        (BIGINT, {"type": "integer"}, '{"a":', "Unexpected end-of-input"),
        (BIGINT, {"type": "integer"}, "", "No content to map due to end-of-input"),
    ],
    ids=str,
)
def test_refusals(type_, schema, text, cause):
    with pytest.raises(DecodeError) as e:
        read(Column("A", type_), an_object(a=schema), text)
    message = e.value.message
    assert message.startswith("Error deserializing message from topic: t\n")
    assert message.endswith(cause)


def test_writing_by_a_schema_that_the_statement_names():
    schema = an_object(
        A={"type": "integer"},
        M={"type": "object", "connect.type": "map", "additionalProperties": {"type": "integer"}},
        more={"type": "integer"},
        less={"type": ["null", "integer"]},
    )
    physical = RegistrySchema(json.dumps(schema), "JSON")
    columns = (Column("A", BIGINT), Column("M", Map(STRING, BIGINT)))
    rows = JSON_SR.python(layout(*columns, physical=physical))
    assert rows.encode({"A": 1, "M": {"k": 2}}) == HEADER + b'{"A":1,"M":{"k":2},"less":null}'


def test_what_is_no_row():
    with pytest.raises(StatementError, match="WRAP_SINGLE_VALUE=false"):
        JSON_SR.columns_from_registry(
            RegistrySchema('{"type":"integer"}', "JSON"), "value", True, {}
        )
    inferred = JSON_SR.columns_from_registry(
        RegistrySchema(
            json.dumps(
                an_object(
                    t={
                        "type": "integer",
                        "connect.type": "int64",
                        "title": "org.apache.kafka.connect.data.Timestamp",
                    },
                    v={},
                )
            ),
            "JSON",
        ),
        "value",
        True,
        {},
    )
    assert inferred == [Field("T", TIMESTAMP)]
