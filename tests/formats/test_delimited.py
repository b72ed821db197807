"""DELIMITED records of single rows: quoting, counts, every type, delimiters."""

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
    SqlType,
)

DELIMITED = FORMATS["DELIMITED"]


def codec(*types: SqlType, delimiter: str = ","):
    columns = tuple(Column("ABCDEFGHIJ"[i], type_) for i, type_ in enumerate(types))
    return DELIMITED.python(
        Layout(columns, topic="t", properties=(("delimiter", delimiter),), wrapped=False)
    )


def test_a_row_of_every_type_has_exactly_these_bytes_and_reads_back():
    types = (
        BIGINT,
        BOOLEAN,
        INTEGER,
        DOUBLE,
        Decimal(10, 8),
        STRING,
        BYTES,
        DATE,
        TIME,
        TIMESTAMP,
    )
    row = dict(
        zip(
            "ABCDEFGHIJ",
            (1, True, -2, 1e-5, Number("0.00000001"), "é", b"\1\2\3", 19000, 1, -5),
            strict=True,
        )
    )
    data = "1,true,-2,1.0E-5,0.00000001,é,AQID,19000,1,-5".encode()
    assert codec(*types).encode(row) == data
    assert codec(*types).decode(data) == row


@pytest.mark.parametrize(
    ("value", "first", "second"),
    [
        ("plain", b"plain", b"plain"),
        ("", b'""', b""),
        ("a,b", b'"a,b"', b'"a,b"'),
        ('a"b', b'"a""b"', b'"a""b"'),
        ("a\nb", b'"a\nb"', b'"a\nb"'),
        ("#a", b'"#a"', b'"#a"'),
        ("a ", b'"a "', b'"a "'),
        ("-a", b'"-a"', b"-a"),
        ("_a", b'"_a"', b"_a"),
        ("é", '"é"'.encode(), "é".encode()),
    ],
)
def test_quotes_are_put_where_the_csv_library_puts_them(value, first, second):
    assert codec(STRING, STRING).encode({"A": value, "B": value}) == first + b"," + second
    assert codec(STRING, STRING).decode(first + b"," + second) == {
        "A": value or None,
        "B": value or None,
    }


@pytest.mark.parametrize(
    ("data", "row"),
    [
        (b"1,a", {"A": 1, "B": "a"}),
        (b",", {"A": None, "B": None}),
        (b"+1,a\nignored,line,here", {"A": 1, "B": "a"}),
        (b"\r\n\n1,a", {"A": 1, "B": "a"}),
        (b'"1" ,"a,""b"""', {"A": 1, "B": 'a,"b"'}),
        (b'1,a"b"', {"A": 1, "B": 'a"b"'}),
        (b"1, a ", {"A": 1, "B": " a "}),
        (b"1,\xff", {"A": 1, "B": "\ufffd"}),
    ],
)
def test_reading(data, row):
    assert codec(INTEGER, STRING).decode(data) == row


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"", "No fields in record"),
        (b"\n", "No fields in record"),
        (b"1", "Column count mismatch on deserialization. topic: t, expected: 2, got: 1"),
        (b"1,2,3", "Column count mismatch on deserialization. topic: t, expected: 2, got: 3"),
        (b" 1,a", 'For input string: " 1"'),
        (b"1.5,a", 'For input string: "1.5"'),
        (b'1,"a', "(startline 1) EOF reached before encapsulated token finished"),
        (b'1,"a"b', "(line 1) invalid char between encapsulated token and delimiter"),
    ],
)
def test_refusals(data, cause):
    with pytest.raises(DecodeError) as e:
        codec(INTEGER, STRING).decode(data)
    assert e.value.message == f"Error deserializing delimited\n{cause}"


def test_null_records_and_null_fields():
    rows = codec(INTEGER, STRING)
    assert rows.encode(None) is None
    assert rows.decode(None) is None
    assert rows.encode({"A": None, "B": None}) == b","


@pytest.mark.parametrize(("name", "char"), [("TAB", "\t"), ("SPACE", " "), ("|", "|"), ("☺", "☺")])
def test_delimiters(name, char):
    rows = codec(INTEGER, STRING, delimiter=name)
    data = f"1{char}a,b".encode()
    assert rows.encode({"A": 1, "B": "a,b"}) == data
    assert rows.decode(data) == {"A": 1, "B": "a,b"}
    assert rows.encode({"A": 1, "B": f"a{char}b"}) == f'1{char}"a{char}b"'.encode()


def test_delimiters_that_are_none():
    columns = [Column("A", INTEGER)]
    with pytest.raises(StatementError, match="Delimiter must be a single character or TAB,SPACE"):
        DELIMITED.check(columns, "value", properties={"delimiter": "xx"})
    with pytest.raises(StatementError, match="delimiter cannot be empty"):
        DELIMITED.check(columns, "value", properties={"delimiter": " "})


def test_nested_types_are_refused():
    with pytest.raises(StatementError) as e:
        DELIMITED.check([Column("A", Array(STRING))], "value")
    assert "The 'DELIMITED' format does not support type 'ARRAY', column: `A`" in e.value.message
