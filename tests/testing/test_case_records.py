"""How records of test files become bytes, and when two of them are the same."""

from decimal import Decimal as Number

import pytest

from headrace.formats import FORMATS
from headrace.formats.base import Layout
from headrace.model.errors import HeadraceError
from headrace.model.schema import Column
from headrace.model.types import BIGINT, BYTES, INTEGER, STRING, Array, Decimal, Field, Map, Struct
from headrace.testing.cases import Window
from headrace.testing.comparing import same, same_time
from headrace.testing.record_codecs import codec_of, from_json, split_window, to_json, with_window


@pytest.mark.parametrize(
    ("expected", "actual", "result"),
    [
        (1, Number("1.0"), True),
        (Number("1.10"), Number("1.1"), True),
        (1, True, False),
        (True, 1, False),
        (1, "1", False),
        (None, None, True),
        (9223372036854775807, 9223372036854775806, False),
        ({"A": 1}, {"A": 1, "B": None}, True),
        ({"A": 1}, {"a": 1}, False),
        ("1.5", Number("1.50"), True),
        ("x", Number("1.50"), False),
        ([1, [2]], [1, [2]], True),
        ([1, 2], [2, 1], False),
    ],
)
def test_same(expected, actual, result):
    assert same(expected, actual) is result


def test_time_zero_is_written_as_the_earliest_that_kafka_takes():
    assert same_time(0, 0) and same_time(0, 1) and same_time(5, 5)
    assert not same_time(1, 0) and not same_time(0, 2) and not same_time(5, 6)


def test_fields_may_be_spelled_in_any_case():
    assert same({"a": 1}, {"A": 1}, any_case=True)
    assert not same({"a": 1}, {"A": 2}, any_case=True)


def wire(name, *types, wrapped=True):
    columns = tuple(Column(f"C{i}", t) for i, t in enumerate(types))
    return codec_of(FORMATS[name], Layout(columns, wrapped=wrapped))


def test_json_is_written_as_it_stands():
    broken = wire("JSON", INTEGER)
    assert broken.encode({"C0": "no number", "more": Number("1.50")}) == (
        b'{"C0":"no number","more":1.50}'
    )
    assert broken.encode(None) is None
    assert broken.decode(b'{"C0":1.50}') == {"C0": Number("1.50")}


def test_delimited_is_text():
    assert wire("DELIMITED", STRING, INTEGER).encode("a,1") == b"a,1"
    assert wire("DELIMITED", STRING, INTEGER).decode(b"a,1") == "a,1"


def test_kafka_goes_by_its_type():
    number = wire("KAFKA", INTEGER, wrapped=False)
    assert number.encode(1) == b"\0\0\0\1"
    assert number.decode(b"\0\0\0\1") == 1


def test_values_by_type_and_back():
    type_ = Struct((Field("A", Array(BYTES)), Field("M", Map(STRING, BIGINT))))
    given = {"a": ["AAE="], "M": {"k": 5}}
    value = from_json(given, type_)
    assert value == {"A": [b"\0\1"], "M": {"k": 5}}
    assert to_json(value, type_) == {"A": ["AAE="], "M": {"k": 5}}
    assert from_json("1.5", Decimal(4, 2)) == Number("1.50")


def test_a_record_that_does_not_fit_is_told():
    with pytest.raises(HeadraceError, match="does not fit BIGINT: many"):
        from_json("many", BIGINT)


@pytest.mark.parametrize(
    ("window", "size"), [(Window(60, 120, False), 60), (Window(5, 9, True), None)]
)
def test_windows_of_keys(window, size):
    key = with_window(b"k", window)
    assert split_window(key, window.session, size) == (b"k", window)
