"""WHERE and HAVING: predicates, in which times may be written as text."""

from __future__ import annotations

import dataclasses

from headrace.model.errors import StatementError
from headrace.model.schema import ROWTIME, WINDOW_BOUNDS
from headrace.model.types import BOOLEAN
from headrace.plan.language.binder import Binder, EvaluationError
from headrace.plan.language.expressions import Expression
from headrace.plan.language.messages import text
from headrace.plan.language.time_literals import parse_timestamp
from headrace.sql import ast

# Columns of milliseconds that may be compared with times written as strings.
_TIMES = frozenset({ROWTIME, *WINDOW_BOUNDS})


def predicate(
    binder: Binder, expression: ast.Expression, clause: str, role: str = "Predicate"
) -> Expression:
    """The condition of a clause, which has to be boolean; `role` is its name in messages."""
    timed, written = with_times(expression), text(expression)
    try:
        bound = binder.bind(timed)
    except EvaluationError as e:
        raise StatementError(f"Invalid {role}: {e}. expression: {written}", written) from None
    except StatementError as e:
        raise StatementError(f"Error in {clause} expression: {e}", written) from None
    if bound.type != BOOLEAN:
        raise StatementError(
            f"Type error in {clause} expression: Should evaluate to boolean but is "
            f"{written} ({bound.type}) instead.",
            written,
        )
    return bound


def with_times(expression: ast.Expression) -> ast.Expression:
    """`ROWTIME >= '2020-05-26'` as a comparison of milliseconds; so for the window's bounds."""
    return ast.rewrite(expression, _timed)


def _timed(e: ast.Expression) -> ast.Expression:
    match e:
        case ast.Comparison(_, left, right):
            if _is_time(left):
                return dataclasses.replace(e, right=_milliseconds(right))
            if _is_time(right):
                return dataclasses.replace(e, left=_milliseconds(left))
        case ast.Between(value, lower, upper) if _is_time(value):
            return dataclasses.replace(e, lower=_milliseconds(lower), upper=_milliseconds(upper))
    return e


def _is_time(e: ast.Expression) -> bool:
    return isinstance(e, ast.ColumnRef) and e.name in _TIMES


def _milliseconds(e: ast.Expression) -> ast.Expression:
    return ast.LongLiteral(parse_timestamp(e.value)) if isinstance(e, ast.StringLiteral) else e
