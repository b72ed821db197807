"""Texts that error messages share: expressions, positions and lists, as ksqlDB words them."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.model.errors import Position
from headrace.sql.printer import display_expression as text

__all__ = ["at", "joined", "text"]


def at(position: Position | None) -> str:
    """Where something stands, as the start of a message."""
    return "" if position is None else f"Line: {position.line}, Col: {position.column}: "


def joined(parts: Iterable[str], last: str) -> str:
    """`a, b and c`: all but the last two separated by commas."""
    listed = list(parts)
    if len(listed) < 2:
        return "".join(listed)
    return f"{', '.join(listed[:-1])}{last}{listed[-1]}"
