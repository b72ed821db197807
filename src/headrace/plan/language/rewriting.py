"""Rewrites expressions top-down, where `ast.rewrite` works bottom-up."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from headrace.sql import ast

Change = Callable[[ast.Expression], ast.Expression]


def map_children(expression: ast.Expression, change: Change) -> ast.Expression:
    """The expression with each of its direct parts changed."""
    updates = {}
    for field in dataclasses.fields(expression):
        old = getattr(expression, field.name)
        new = _changed(old, change)
        if new is not old:
            updates[field.name] = new
    return dataclasses.replace(expression, **updates) if updates else expression


def _changed(value: Any, change: Change) -> Any:
    match value:
        case ast.Expression():
            return change(value)
        case ast.When(condition, result):
            return dataclasses.replace(value, condition=change(condition), result=change(result))
        case tuple():
            items = tuple(_changed(item, change) for item in value)
            return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return value
