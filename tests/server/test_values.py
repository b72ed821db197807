"""Values as ksqlDB's REST API writes them."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model import types as t
from headrace.server.json_values import date_text, timestamp_text, writer

STRUCT = t.Struct((t.Field("A", t.BYTES), t.Field("b", t.Array(t.TIMESTAMP))))

CASES = [
    (t.BOOLEAN, True, "true"),
    (t.INTEGER, -1, "-1"),
    (t.BIGINT, 2**63 - 1, "9223372036854775807"),
    (t.DOUBLE, 1.0, "1.0"),
    (t.DOUBLE, float("-inf"), '"-Infinity"'),
    (t.STRING, 'ä"\n', '"ä\\"\\n"'),
    (t.BYTES, b"\x01\x02", '"AQI="'),
    (t.Decimal(6, 2), Decimal("1E+3"), "1000"),
    (t.Decimal(6, 2), Decimal("1.50"), "1.50"),
    (t.DATE, 18262, '"2020-01-01"'),
    (t.TIME, 36_930_999, '"10:15:30"'),
    (t.TIME, 36_900_000, '"10:15"'),
    (t.TIMESTAMP, 1_577_836_800_000, '"2020-01-01T00:00:00.000"'),
    (t.TIMESTAMP, -1, '"1969-12-31T23:59:59.999"'),
    (t.Array(t.INTEGER), [1, None], "[1,null]"),
    (t.Map(t.BIGINT, t.Decimal(3, 1)), {5: Decimal("0.5")}, '{"5":0.5}'),
    (t.Map(t.STRING, t.BOOLEAN), {"x": False}, '{"x":false}'),
    (STRUCT, {"A": b"a", "b": [0]}, '{"A":"YQ==","b":["1970-01-01T00:00:00.000"]}'),
    (STRUCT, {}, '{"A":null,"b":null}'),
    (STRUCT, None, "null"),
]


@pytest.mark.parametrize(("type_", "value", "text"), CASES, ids=str)
def test_values(type_, value, text):
    assert writer(type_)(value) == text


@given(st.text())
def test_every_string_is_json(value):
    assert json.loads(writer(t.STRING)(value)) == value


@given(st.integers(-(2**53), 2**53))
def test_every_time_has_a_text(ms):
    assert timestamp_text(ms)
    assert date_text(ms // 86_400_000)


def test_years_of_any_length():
    assert date_text(5_000_000) == "+15659-07-15"
    assert date_text(-1_000_000) == "-0768-02-04"
