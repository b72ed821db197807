"""Constant folding of integer arithmetic."""

from __future__ import annotations

import operator
from collections.abc import Callable

from headrace.model.types import BIGINT, INTEGER, SqlType
from headrace.plan.language.expressions import (
    Arithmetic,
    Cast,
    Expression,
    Literal,
    Negate,
)

_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_LIMITS: dict[SqlType, int] = {INTEGER: 2**31, BIGINT: 2**63}


def folded(expression: Expression) -> Literal | None:
    """The expression's value, or None if it takes a row or more than this to know it."""
    limit = _LIMITS.get(expression.type)
    match expression:
        case Literal():
            return expression
        case Arithmetic(_, op, left, right) if op in _OPERATIONS:
            a, b = _whole(left), _whole(right)
            value = None if a is None or b is None else _OPERATIONS[op](a, b)
        case Negate(_, operand):
            number = _whole(operand)
            value = None if number is None else -number
        case Cast(_, operand):
            value = _whole(operand)
        case _:
            return None
    if value is None or limit is None or not -limit <= value < limit:
        return None
    return Literal(expression.type, value)


def _whole(expression: Expression) -> int | None:
    constant = folded(expression)
    if constant is None or constant.type not in _LIMITS or not isinstance(constant.value, int):
        return None
    return constant.value
