"""Evaluates simple expressions in Python: columns, constants, and comparisons of one type.

What is here is what cannot be understood in two ways: a comparison with null is false, as in
ksqlDB. Everything else, casts and functions above all, is left to Spark, so that an expression
means the same in a pull query as in a pipeline.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from headrace.model.types import Decimal, SqlType, base_name
from headrace.plan.language import expressions as e

Row = Mapping[str, object]
Evaluate = Callable[[Row], object]
Compare = Callable[[Any, Any], bool]

# Doubles are left out: NaN has an order in Spark, and none in Python.
_ORDERED = frozenset(
    {"BOOLEAN", "INTEGER", "BIGINT", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP", "DECIMAL"}
)
_INTEGERS = frozenset({"INTEGER", "BIGINT"})
_COMPARE: dict[str, Compare] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def evaluator(expression: e.Expression) -> Evaluate | None:
    """The expression as a Python function of a row, or None if Spark has to do it."""
    match expression:
        case e.Literal(_, value):
            return lambda row: value
        case e.ColumnValue(_, name):
            return operator.itemgetter(name)
        case e.FieldValue(_, base, field):
            return _field(evaluator(base), field)
        case e.IsNull(_, operand):
            return _applied(lambda value: value is None, evaluator(operand))
        case e.Not(_, operand):
            return _applied(lambda value: None if value is None else not value, evaluator(operand))
        case e.Logical(_, op, left, right):
            return _logical(op, evaluator(left), evaluator(right))
        case e.Comparison(_, op, left, right) if op in _COMPARE and _alike(left.type, right.type):
            return _compared(_COMPARE[op], evaluator(left), evaluator(right))
        case e.Between(_, value, low, high) if _alike(value.type, low.type) and _alike(
            value.type, high.type
        ):
            above = _compared(operator.ge, evaluator(value), evaluator(low))
            below = _compared(operator.le, evaluator(value), evaluator(high))
            return _logical("AND", above, below)
        case e.In(_, value, items):
            return _among(value, items)
    return None


def _alike(left: SqlType, right: SqlType) -> bool:
    first, second = base_name(left), base_name(right)
    if {first, second} <= _INTEGERS or {type(left), type(right)} == {Decimal}:
        return True
    return left == right and first in _ORDERED


def _field(base: Evaluate | None, name: str) -> Evaluate | None:
    return _applied(lambda value: None if value is None else value.get(name), base)


def _applied(function: Callable[[Any], object], inner: Evaluate | None) -> Evaluate | None:
    if inner is None:
        return None
    return lambda row: function(inner(row))


def _compared(compare: Compare, left: Evaluate | None, right: Evaluate | None) -> Evaluate | None:
    if left is None or right is None:
        return None

    def evaluate(row: Row) -> bool:
        a, b = left(row), right(row)
        return a is not None and b is not None and compare(a, b)

    return evaluate


def _logical(op: str, left: Evaluate | None, right: Evaluate | None) -> Evaluate | None:
    """AND and OR of true, false and unknown: one of them decides, whatever the other is."""
    if left is None or right is None:
        return None
    deciding = op == "OR"

    def evaluate(row: Row) -> bool | None:
        a = left(row)
        if a is deciding:
            return deciding
        b = right(row)
        if b is deciding:
            return deciding
        return None if a is None or b is None else not deciding

    return evaluate


def _among(value: e.Expression, items: tuple[e.Expression, ...]) -> Evaluate | None:
    inner = evaluator(value)
    constants = [i.value for i in items if isinstance(i, e.Literal) and _alike(i.type, value.type)]
    if inner is None or len(constants) != len(items) or None in constants:
        return None
    known = frozenset(constants)
    return _applied(lambda value: value in known, inner)
