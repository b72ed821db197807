"""Values of clients as values of columns."""

from __future__ import annotations

from decimal import Decimal as Number

import pytest

from headrace.engine.statements.value_coercion import (
    CoercionError,
    coerced,
    field_name,
    from_json,
    misfit,
)
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

POINT = Struct((Field("X", INTEGER), Field("Y", DOUBLE)))


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (1, INTEGER, BIGINT, 1),
        (1, INTEGER, DOUBLE, 1.0),
        (1, INTEGER, Decimal(3, 1), Number("1.0")),
        (Number("1.5"), Decimal(2, 1), DOUBLE, 1.5),
        (Number("1.50"), Decimal(3, 2), Decimal(5, 1), Number("1.5")),
        ("1970-01-02", STRING, DATE, 1),
        ("00:00:01", STRING, TIME, 1000),
        ("1970-01-01T00:00:01", STRING, TIMESTAMP, 1000),
        ("AQI=", STRING, BYTES, b"\x01\x02"),
        (None, INTEGER, STRING, None),
        ([1, None], Array(INTEGER), Array(BIGINT), [1, None]),
        ({"a": 1}, Map(STRING, INTEGER), Map(STRING, DOUBLE), {"a": 1.0}),
        ({"X": 1}, Struct((Field("X", INTEGER),)), POINT, {"X": 1, "Y": None}),
    ],
)
def test_typed_values_widen(value, source, target, result):
    assert coerced(value, source, target) == result


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        (1, INTEGER, STRING),
        ("1", STRING, INTEGER),
        (1, BIGINT, INTEGER),
        (1.5, DOUBLE, Decimal(3, 1)),
        (Number("1.55"), Decimal(3, 2), Decimal(3, 1)),
        (100, INTEGER, Decimal(3, 1)),
        (True, BOOLEAN, STRING),
        ("soon", STRING, TIMESTAMP),
        ("*", STRING, BYTES),
        ([1], Array(INTEGER), Array(STRING)),
        ([1], Array(INTEGER), INTEGER),
    ],
)
def test_typed_values_that_do_not_fit(value, source, target):
    with pytest.raises(CoercionError):
        coerced(value, source, target)


@pytest.mark.parametrize(
    ("value", "type_", "result"),
    [
        (None, INTEGER, None),
        (5, INTEGER, 5),
        (2**40, BIGINT, 2**40),
        (5, DOUBLE, 5.0),
        (Number("0.5"), DOUBLE, 0.5),
        (True, BOOLEAN, True),
        ("x", STRING, "x"),
        (7, Decimal(4, 2), Number("7.00")),
        (Number("1.005"), Decimal(4, 2), Number("1.01")),
        ("12.345", Decimal(4, 2), Number("12.35")),
        ("AQI=", BYTES, b"\x01\x02"),
        ("AQI", BYTES, b"\x01\x02"),
        ("+/8=", BYTES, b"\xfb\xff"),
        ("-_8", BYTES, b"\xfb\xff"),
        ("", BYTES, b""),
        ("1970-01-02", DATE, 1),
        ([1, None], Array(INTEGER), [1, None]),
        ({"a": 1}, Map(STRING, INTEGER), {"a": 1}),
        ({"x": 1, "`Y`": 2, "other": 3}, POINT, {"X": 1, "Y": 2.0}),
    ],
)
def test_json(value, type_, result):
    assert from_json(type_)(value) == result


@pytest.mark.parametrize(
    ("value", "type_", "class_"),
    [
        ("5", INTEGER, "java.lang.String"),
        (5, STRING, "java.lang.Integer"),
        (2**31, INTEGER, "java.lang.Long"),
        (2**63, BIGINT, "java.math.BigInteger"),
        (True, INTEGER, "java.lang.Boolean"),
        (1, BOOLEAN, "java.lang.Integer"),
        (Number("1.5"), BIGINT, "java.lang.Double"),
        (Number("100.5"), Decimal(3, 1), "java.lang.Double"),
        ("abc", Decimal(3, 1), "java.lang.String"),
        ([1], STRING, "io.vertx.core.json.JsonArray"),
        ({}, Array(INTEGER), "io.vertx.core.json.JsonObject"),
        (["x"], Array(INTEGER), "io.vertx.core.json.JsonArray"),
        ({"1": 1}, Map(INTEGER, INTEGER), "io.vertx.core.json.JsonObject"),
    ],
)
def test_json_that_does_not_fit(value, type_, class_):
    with pytest.raises(CoercionError):
        from_json(type_)(value)
    expected = f"Can't coerce a field of type class {class_} into type {type_}"
    assert misfit(value, type_).message == expected


def test_names_of_members():
    assert [field_name(n) for n in ("id", "`id`", '"a``b"', "`a``b`")] == [
        "ID",
        "id",
        "a``b",
        "a`b",
    ]
