"""Generated names: of expressions, joined columns and synthetic keys."""

from __future__ import annotations

import re
from collections.abc import Iterable

from headrace.sql import ast

_NUMBERED = re.compile(r"(?P<name>.*?)(?:_(?P<number>\d+))?", re.DOTALL)
_GENERATED = "KSQL_COL"
_SYNTHETIC_KEY = "ROWKEY"


def join_column(alias: str, name: str) -> str:
    """What a source's column is called among the columns of a join."""
    return f"{alias}_{name}"


def aggregate_column(index: int) -> str:
    return f"KSQL_AGG_VARIABLE_{index}"


def exploded_column(index: int) -> str:
    """What the rows of a table function are called until they are projected."""
    return f"KSQL_SYNTH_{index}"


def may_be_join_key(name: str) -> bool:
    return name.startswith(_SYNTHETIC_KEY)


class Aliases:
    """Hands out names for expressions, none of which is a column's or was handed out before."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._used: dict[str, set[int]] = {}
        for name in taken:
            base, number = _split(name)
            self._used.setdefault(base, set()).add(number)
        self._next: dict[str, int] = {}

    def alias(self, expression: ast.Expression) -> str:
        """A struct's field is called as the field; anything else `KSQL_COL_n`."""
        if isinstance(expression, ast.Dereference):
            return self.numbered(_split(expression.field)[0])
        return self.numbered(_GENERATED)

    def join_key(self) -> str:
        return self.numbered(_SYNTHETIC_KEY)

    def numbered(self, base: str) -> str:
        number = self._next.get(base, 0)
        while number in self._used.get(base, ()):
            number += 1
        self._next[base] = number + 1
        return base if number == 0 and base != _GENERATED else f"{base}_{number}"


def _split(name: str) -> tuple[str, int]:
    match = _NUMBERED.fullmatch(name)
    assert match is not None
    return match["name"], int(match["number"] or 0)
