from __future__ import annotations

import decimal

import pytest

from headrace.model.errors import StatementError
from headrace.model.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, Array, Decimal
from headrace.plan.language.binder import Binder
from headrace.plan.language.describe import describe
from headrace.plan.language.expressions import Cast, Literal
from headrace.sql.parser import parse_expression, parse_type

COLUMNS = {
    "I": "INT",
    "L": "BIGINT",
    "D": "DOUBLE",
    "N": "DECIMAL(4, 2)",
    "S": "STRING",
    "B": "BOOLEAN",
    "TS": "TIMESTAMP",
    "A": "ARRAY<BIGINT>",
    "M": "MAP<STRING, INT>",
    "R": "STRUCT<X INT, Y STRING>",
}
BINDER = Binder({name: parse_type(text) for name, text in COLUMNS.items()})


def bind(text):
    return BINDER.bind(parse_expression(text))


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("I + I", INTEGER),
        ("I + L", BIGINT),
        ("L * D", DOUBLE),
        ("N + I", Decimal(13, 2)),
        ("N * N", Decimal(9, 4)),
        ("N / N", Decimal(11, 7)),
        ("N % I", Decimal(4, 2)),
        ("N + D", DOUBLE),
        ("S + S", STRING),
        ("1.50", Decimal(3, 2)),
        ("0.05", Decimal(3, 2)),
        ("-I", INTEGER),
        ("A[1]", BIGINT),
        ("M['x']", INTEGER),
        ("R->Y", STRING),
        ("I IN (1, 2)", BOOLEAN),
        ("ARRAY[1, L]", Array(BIGINT)),
        ("ARRAY[1, '2.5']", Array(Decimal(11, 1))),
        ("CASE WHEN B THEN 1 ELSE NULL END", INTEGER),
        ("CAST(S AS BIGINT)", BIGINT),
    ],
)
def test_the_type_of(text, type_):
    assert bind(text).type == type_


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X", "Unknown column X."),
        (
            "B + 1.5",
            "Error processing expression: (B + 1.5). Unsupported arithmetic types. BOOLEAN",
        ),
        ("1 + NULL", "Arithmetic on types INTEGER and null are not supported."),
        ("I > 'x'", "Cannot compare I (INTEGER) to 'x' (STRING) with GREATER_THAN."),
        ("A < A", "Cannot compare A (ARRAY<BIGINT>) to A (ARRAY<BIGINT>) with LESS_THAN."),
        ("S = NULL", "Comparison with NULL not supported: STRING = NULL"),
        ("CAST(S AS MAP<STRING, INT>)", "Cast of STRING to MAP<STRING, INTEGER> is not supported"),
        ("R->Z", "Could not find field 'Z' in 'R'."),
        ("R['X']", "Use the dereference operator for STRUCTS: R->'X'"),
        ("ARRAY[1, 'x']", 'invalid input syntax for type INTEGER: "x".'),
        ("ARRAY[NULL]", "Cannot construct an array with all NULL elements"),
        ("I IN (1, TRUE)", "operator does not exist: INTEGER = BOOLEAN (true)"),
        ("CASE WHEN I THEN 1 END", "WHEN operand type should be boolean."),
        ("CASE WHEN B THEN 1 ELSE 'x' END", "Type for the default clause should be the same"),
        ("NOT_THERE(1)", "Can't find any functions with the name 'NOT_THERE'"),
        ("ABS(S)", "does not accept parameters (STRING)"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(StatementError) as refused:
        bind(text)
    assert message in str(refused.value)


def test_literals_take_the_type_they_are_compared_with():
    bound = bind("N IN (1, '2.5', L)")
    assert describe(bound) == (
        "(CAST(N AS DECIMAL(21, 2)) IN (1.00, 2.50, CAST(L AS DECIMAL(21, 2))))"
    )
    assert bound.items[0] == Literal(Decimal(21, 2), decimal.Decimal("1.00"))


def test_arguments_are_cast_to_the_parameters():
    assert describe(bind("GEO_DISTANCE(I, D, D, D)")).startswith("GEO_DISTANCE(CAST(I AS DOUBLE)")


def test_a_cast_to_its_own_type_is_no_cast():
    assert not isinstance(bind("CAST(L AS BIGINT)"), Cast)
