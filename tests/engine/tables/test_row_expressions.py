"""Expressions in Python: as SQL has it, or left to Spark."""

from __future__ import annotations

import pytest

from headrace.engine.tables.row_expressions import evaluator
from headrace.model.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, Decimal, Field, Struct
from headrace.plan.language import expressions as e

S = e.ColumnValue(STRING, "S")
N = e.ColumnValue(BIGINT, "N")
D = e.ColumnValue(DOUBLE, "D")
P = e.ColumnValue(Struct((Field("X", INTEGER),)), "P")
ROW = {"S": "m", "N": 5, "D": 1.5, "P": {"X": 3}, "NOTHING": None}
NOTHING = e.ColumnValue(BIGINT, "NOTHING")


def lit(value, type_=None):
    return e.Literal(type_ or {str: STRING, int: INTEGER}[type(value)], value)


def compare(op, left, right):
    return e.Comparison(BOOLEAN, op, left, right)


TRUE = compare("=", lit(1), lit(1))
FALSE = compare("=", lit(1), lit(2))
UNKNOWN = e.ColumnValue(BOOLEAN, "NOTHING")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (S, "m"),
        (lit(3), 3),
        (e.FieldValue(INTEGER, P, "X"), 3),
        (e.FieldValue(INTEGER, e.ColumnValue(P.type, "NOTHING"), "X"), None),
        (compare("=", S, lit("m")), True),
        (compare("<>", S, lit("m")), False),
        (compare(">=", N, lit(5)), True),
        (compare("<", N, lit(5)), False),
        (compare("=", NOTHING, lit(5)), False),
        (compare("<>", NOTHING, lit(5)), False),
        (e.Not(BOOLEAN, compare("=", NOTHING, lit(5))), True),
        (e.IsNull(BOOLEAN, NOTHING), True),
        (e.IsNull(BOOLEAN, N), False),
        (e.Not(BOOLEAN, TRUE), False),
        (e.Not(BOOLEAN, UNKNOWN), None),
        (e.Logical(BOOLEAN, "AND", TRUE, UNKNOWN), None),
        (e.Logical(BOOLEAN, "AND", UNKNOWN, FALSE), False),
        (e.Logical(BOOLEAN, "OR", UNKNOWN, TRUE), True),
        (e.Logical(BOOLEAN, "OR", UNKNOWN, FALSE), None),
        (e.Between(BOOLEAN, N, lit(5), lit(9)), True),
        (e.Between(BOOLEAN, NOTHING, lit(5), lit(9)), False),
        (e.In(BOOLEAN, S, (lit("k"), lit("m"))), True),
        (e.In(BOOLEAN, NOTHING, (lit(1), lit(2))), False),
    ],
)
def test_values(expression, value):
    assert evaluator(expression)(ROW) is value or evaluator(expression)(ROW) == value


@pytest.mark.parametrize(
    "expression",
    [
        e.Call(STRING, "UCASE", "UCASE(STRING)", (S,)),
        e.Cast(STRING, N),
        e.Arithmetic(BIGINT, "+", N, lit(1)),
        compare("=", D, lit(1)),
        compare("=", D, D),
        compare("=", S, lit(1)),
        compare("IS DISTINCT FROM", S, S),
        e.In(BOOLEAN, S, (lit("k"), e.Literal(STRING, None))),
        e.In(BOOLEAN, e.ColumnValue(Decimal(2, 1), "N"), (N,)),
        e.Not(BOOLEAN, e.Call(BOOLEAN, "F", "F()", ())),
        e.Logical(BOOLEAN, "AND", TRUE, e.Call(BOOLEAN, "F", "F()", ())),
    ],
)
def test_the_rest_is_spark_s(expression):
    assert evaluator(expression) is None
