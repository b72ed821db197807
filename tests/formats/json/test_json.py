"""JSON records of single rows: the bytes written, the coercions and refusals in reading."""

from decimal import Decimal as Number

import pytest

from headrace.formats import FORMATS
from headrace.formats.base import DecodeError, Layout
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

JSON = FORMATS["JSON"]


def codec(*types: SqlType, wrapped: bool = True):
    columns = tuple(Column("ABCDEFGHIJKL"[i], type_) for i, type_ in enumerate(types))
    return JSON.python(Layout(columns, wrapped, topic="t"))


def read(type_: SqlType, text: str):
    row = codec(type_).decode(text.encode())
    assert row is not None
    return row["A"]


ALL = (
    BOOLEAN,
    INTEGER,
    BIGINT,
    DOUBLE,
    Decimal(10, 8),
    STRING,
    BYTES,
    DATE,
    TIME,
    TIMESTAMP,
    Array(INTEGER),
    Struct((Field("X", Map(STRING, DOUBLE)),)),
)
ROW = {
    "A": True,
    "B": -1,
    "C": 2**63 - 1,
    "D": 1e7,
    "E": Number("0.00000001"),
    "F": 'é"\\\n\x1f',
    "G": b"\x00\xff",
    "H": 19000,
    "I": 86399999,
    "J": 1700000000000,
    "K": [1, None],
    "L": {"X": {"a": 0.001, "b": None}},
}
TEXT = (
    '{"A":true,"B":-1,"C":9223372036854775807,"D":1.0E7,"E":1E-8,"F":"é\\"\\\\\\n\\u001F",'
    '"G":"AP8=","H":19000,"I":86399999,"J":1700000000000,"K":[1,null],"L":{"X":{"a":0.001,"b":null}}}'
)


def test_a_row_of_every_type_has_exactly_these_bytes_and_reads_back():
    rows = codec(*ALL)
    assert rows.encode(ROW) == TEXT.encode()
    assert rows.decode(TEXT.encode()) == ROW


def test_null_fields_are_written_null_records_are_not():
    rows = codec(INTEGER, STRING)
    assert rows.encode({"A": None, "B": None}) == b'{"A":null,"B":null}'
    assert rows.decode(b'{"A":null}') == {"A": None, "B": None}
    assert rows.encode(None) is None
    assert rows.decode(None) is None


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (INTEGER, 7, b"7"),
        (STRING, "x", b'"x"'),
        (DOUBLE, float("nan"), b'"NaN"'),
        (Array(STRING), ["x", None], b'["x",null]'),
        (Map(STRING, INTEGER), {"k": 1}, b'{"k":1}'),
        (Struct((Field("F", INTEGER),)), {"F": None}, b'{"F":null}'),
    ],
)
def test_a_bare_value(type_, value, text):
    rows = codec(type_, wrapped=False)
    assert rows.encode({"A": value}) == text
    if value == value:
        assert rows.decode(text) == {"A": value}


def test_null_bare_value_is_a_null_record_but_the_text_null_is_a_row():
    rows = codec(INTEGER, wrapped=False)
    assert rows.encode({"A": None}) is None
    assert rows.decode(b"null") == {"A": None}


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (INTEGER, '{"a":1}', 1),
        (INTEGER, '{"A":"+12"}', 12),
        (INTEGER, '{"A":-1.9}', -1),
        (INTEGER, '{"A":3000000000}', -1294967296),
        (INTEGER, '{"A":1,"A":2}', 2),
        (INTEGER, '{"A":1} trailing', 1),
        (INTEGER, '\ufeff {"A":1}', 1),
        (BIGINT, '{"A":1e3}', 1000),
        (DOUBLE, '{"A":5}', 5.0),
        (DOUBLE, '{"A":" 5.5d "}', 5.5),
        (DOUBLE, '{"A":"NaN"}', pytest.approx(float("nan"), nan_ok=True)),
        (DOUBLE, '{"A":1e999}', float("inf")),
        (Decimal(4, 2), '{"A":"1.5"}', Number("1.50")),
        (Decimal(4, 2), '{"A":1e1}', Number("10.00")),
        (Decimal(4, 2), '{"A":0e9}', Number("0.00")),
        (STRING, '{"A":1.50}', "1.50"),
        (STRING, '{"A":1e3}', "1E+3"),
        (STRING, '{"A":true}', "true"),
        (STRING, '{"A":{"b": [1, 2.50]}}', '{"b":[1,2.50]}'),
        (STRING, '{"A":[1, "x", null, {"y": 1}]}', '[1, x, null, {"y":1}]'),
        (STRING, '{"A":"\\ud83d"}', "?"),
        (BYTES, '{"A":"AQI="}', b"\1\2"),
        (DATE, '{"A":"19000"}', 19000),
        (Struct((Field("FieldName", INTEGER),)), '{"A":{"fieldname":1}}', {"FieldName": None}),
    ],
)
def test_coercions(type_, text, value):
    assert read(type_, text) == value


@pytest.mark.parametrize("spelling", ["NAME", "name", "Name", "nAmE"])
def test_unquoted_names_match_in_any_case(spelling):
    rows = JSON.python(Layout((Column("NAME", STRING),)))
    assert rows.decode(b'{"%s": "x"}' % spelling.encode()) == {"NAME": "x"}


@pytest.mark.parametrize(
    ("type_", "text", "reason"),
    [
        (
            INTEGER,
            '{"A":"x"}',
            "Can't coerce string to type. targetType: INTEGER, path: $.A",
        ),
        (
            INTEGER,
            '{"A":true}',
            "Can't convert type. sourceType: BooleanNode, requiredType: INTEGER, path: $.A",
        ),
        (
            BOOLEAN,
            '{"A":"true"}',
            "Can't convert type. sourceType: TextNode, requiredType: BOOLEAN, path: $.A",
        ),
        (
            Array(INTEGER),
            '{"A":[1,"x"]}',
            "Can't coerce string to type. targetType: INTEGER, path: $.A[1]",
        ),
        (
            Map(STRING, Array(STRING)),
            '{"A":{"k":1}}',
            "Can't convert type. sourceType: IntNode, requiredType: ARRAY<VARCHAR>, "
            "path: $.A.k.value",
        ),
        (
            INTEGER,
            "[1]",
            "Can't convert type. sourceType: ArrayNode, requiredType: STRUCT<A INT>, path: $",
        ),
        (
            INTEGER,
            "",
            "Can't convert type. sourceType: MissingNode, requiredType: STRUCT<A INT>, path: $",
        ),
        (
            Decimal(4, 2),
            '{"A":1.255}',
            "Cannot fit decimal '1.255' into DECIMAL(4, 2) without rounding. (Requires 4,3), "
            "path: $.A",
        ),
        (
            Decimal(4, 2),
            '{"A":100}',
            "Numeric field overflow: A field with precision 4 and scale 2 must round to an "
            "absolute value less than 10^2. Got 100, path: $.A",
        ),
        (
            TIME,
            '{"A":86400001}',
            "Time values must use number of milliseconds greater than 0 and less than 86400000., "
            "path: $.A",
        ),
        (BYTES, '{"A":"?"}', "Value is not a valid Base64 encoded string: ?, path: $.A"),
        (INTEGER, '{"A":01}', "Unexpected character ('1' (code 49))"),
        (INTEGER, '{"A":1', "Unexpected end-of-input"),
    ],
)
def test_refusals(type_, text, reason):
    with pytest.raises(DecodeError) as e:
        read(type_, text)
    assert e.value.message == f"Failed to deserialize value from topic: t. {reason}"


@pytest.mark.parametrize("text", [b"null", b'{"A":NaN}', b"{'A':1}", b"\xff", b'{"A":1,}', b"//"])
def test_what_is_no_json_object_is_an_error(text):
    with pytest.raises(DecodeError, match="Failed to deserialize value from topic: t"):
        codec(INTEGER).decode(text)


@pytest.mark.parametrize("text", [b"5x", b"5,6", b"tru", b"-"])
def test_what_is_no_bare_value_is_an_error(text):
    with pytest.raises(DecodeError):
        codec(INTEGER, wrapped=False).decode(text)


def test_map_keys_must_be_strings():
    columns = [Column("A", Map(INTEGER, STRING))]
    with pytest.raises(StatementError) as e:
        JSON.check(columns, "value", wrap=True)
    assert e.value.message == (
        "Value format does not support schema.\n"
        "format: JSON\n"
        "schema: Persistence{columns=[`A` MAP<INTEGER, STRING>], features=[WRAP_SINGLES]}\n"
        "reason: JSON only supports MAP types with STRING keys"
    )


@pytest.mark.parametrize("frames", [0, 900], ids=["flat", "deep"])
def test_how_deep_a_document_may_be_is_not_for_the_stack_to_say(frames):
    def decoded(more, text):
        return decoded(more - 1, text) if more else codec(INTEGER).decode(text)

    def nested(depth):
        return b"[" * depth + b"]" * depth

    brackets = b'{"x":"%s","A":1}' % (b'[{\\"' * 2000)
    for text in (b'{"x":%s,"A":1}' % nested(999), b'{"A":1}' + nested(3000), brackets):
        assert decoded(frames, text) == {"A": 1}
    for text in (b'{"x":%s,"A":1}' % nested(1000), b"[" * 100_000):
        with pytest.raises(DecodeError, match="nesting depth exceeds the maximum"):
            decoded(frames, text)
