"""KAFKA and NONE for single rows: exact bytes, and what they refuse."""

import struct

import pytest

from headrace.formats import FORMATS, format_named
from headrace.formats.base import DecodeError, Layout
from headrace.model.errors import StatementError
from headrace.model.schema import Column, Namespace
from headrace.model.types import BIGINT, BOOLEAN, BYTES, DOUBLE, INTEGER, STRING

KAFKA, NONE = FORMATS["KAFKA"], FORMATS["NONE"]


@pytest.mark.parametrize(
    ("type_", "value", "data"),
    [
        (INTEGER, -2, b"\xff\xff\xff\xfe"),
        (BIGINT, 258, b"\0\0\0\0\0\0\1\2"),
        (DOUBLE, 1.5, struct.pack(">d", 1.5)),
        (STRING, "é", "é".encode()),
        (STRING, "", b""),
        (BYTES, b"\0\1", b"\0\1"),
    ],
)
def test_primitives(type_, value, data):
    rows = KAFKA.python(Layout((Column("K", type_),), wrapped=False))
    assert rows.encode({"K": value}) == data
    assert rows.decode(data) == {"K": value}
    assert rows.encode({"K": None}) is None
    assert rows.encode(None) is None
    assert rows.decode(None) is None


@pytest.mark.parametrize(
    ("type_", "cause"),
    [
        (INTEGER, "Size of data received by IntegerDeserializer is not 4"),
        (BIGINT, "Size of data received by LongDeserializer is not 8"),
        (DOUBLE, "Size of data received by Deserializer is not 8"),
    ],
)
def test_wrong_sizes(type_, cause):
    with pytest.raises(DecodeError) as e:
        KAFKA.python(Layout((Column("K", type_),), wrapped=False, topic="t")).decode(b"123")
    assert e.value.message == f"Error deserializing KAFKA message from topic: t\n{cause}"


def test_kafka_takes_one_column_of_few_types():
    key = [Column("K", INTEGER, Namespace.KEY), Column("L", INTEGER, Namespace.KEY)]
    with pytest.raises(StatementError) as e:
        KAFKA.check(key, "key")
    assert e.value.message == (
        "Key format does not support schema.\n"
        "format: KAFKA\n"
        "schema: Persistence{columns=[`K` INTEGER KEY, `L` INTEGER KEY], features=[]}\n"
        "reason: The 'KAFKA' format only supports a single field. "
        "Got: [`K` INTEGER KEY, `L` INTEGER KEY]"
    )
    with pytest.raises(StatementError, match="The 'KAFKA' format does not support type 'BOOLEAN'"):
        KAFKA.check([Column("K", BOOLEAN)], "value")


def test_none_takes_no_columns_and_looks_at_nothing():
    with pytest.raises(StatementError) as e:
        NONE.check([Column("K", STRING, Namespace.KEY)], "key")
    assert e.value.message.endswith(
        "The 'NONE' format can only be used when no columns are defined. Got: [`K` STRING KEY]"
    )
    for format_ in (NONE, KAFKA):
        rows = format_.python(Layout(()))
        assert rows.decode(b"anything") is None
        assert rows.encode({}) is None


def test_names_and_properties():
    assert format_named("json").name == "JSON"
    with pytest.raises(StatementError, match="Unknown format: FOO"):
        format_named("foo")
    with pytest.raises(
        StatementError, match=r"JSON does not support the following configs: \[fullSchemaName\]"
    ):
        FORMATS["JSON"].check_properties({"fullSchemaName": "x"})
