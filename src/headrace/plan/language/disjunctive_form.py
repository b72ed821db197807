"""The disjunctive normal form of a condition."""

from __future__ import annotations

import dataclasses

from headrace.sql import ast

# Beyond so many alternatives it is cheaper to read everything.
_MOST = 10_000

_OPPOSITES = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

Alternatives = list[list[ast.Expression]]


class _TooMany(Exception):
    pass


def alternatives(condition: ast.Expression) -> Alternatives | None:
    """The disjunctive normal form; None when it would be too long to be of use."""
    try:
        return _normal(condition, False)
    except _TooMany:
        return None


def _normal(e: ast.Expression, negated: bool) -> Alternatives:
    match e:
        case ast.Not(operand):
            return _normal(operand, not negated)
        case ast.Logical(op, left, right):
            a, b = _normal(left, negated), _normal(right, negated)
            return a + b if (op == "OR") is not negated else _product(a, b)
        case ast.InList(value, items):
            terms: list[ast.Expression] = [
                ast.Comparison("<>" if negated else "=", value, item) for item in items
            ]
            return [terms] if negated else [[term] for term in terms]
        case ast.Between(value, lower, upper):
            within = ast.Logical(
                "AND", ast.Comparison(">=", value, lower), ast.Comparison("<=", value, upper)
            )
            return _normal(within, negated)
        case ast.Comparison(op) if negated and op in _OPPOSITES:
            return [[dataclasses.replace(e, op=_OPPOSITES[op])]]
    return [[ast.Not(e) if negated else e]]


def _product(a: Alternatives, b: Alternatives) -> Alternatives:
    if len(a) * len(b) > _MOST:
        raise _TooMany
    return [left + right for left in a for right in b]
