"""Checks column names: no duplicates, no names of pseudocolumns (KLIP-14) or window bounds.

A name is what it is after the parser: unquoted ones are in upper case, quoted ones as written. So
`` `rowtime` `` is a name like any other, and `rowtime` is ROWTIME.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.model.errors import StatementError
from headrace.model.schema import PSEUDOCOLUMNS, RESERVED_COLUMNS, Column, Namespace
from headrace.model.sources import Source
from headrace.model.types import quote
from headrace.plan.language.messages import text
from headrace.sql import ast


def check_declared(name: str) -> None:
    """A column that a source declares, or that ALTER or an inferred schema adds to it."""
    if name in RESERVED_COLUMNS:
        raise StatementError(
            f"'{name}' is a reserved column name. You cannot use it as a name for a column."
        )


def check_selected(expression: ast.Expression, name: str, persistent: bool) -> None:
    """A column of a result: only the pseudocolumn itself bears its name, and only as long as
    nobody has to declare it, that is in a transient query."""
    if name not in RESERVED_COLUMNS:
        return
    if not (isinstance(expression, ast.ColumnRef) and expression.name == name):
        raise StatementError(
            f"{quote(name)} is a reserved column name. You cannot use it as an alias for a column."
        )
    if persistent:
        raise StatementError(
            f"Reserved column name in select: {quote(name)}. Please remove or alias the column."
        )


def check_field(base: ast.Expression, name: str) -> None:
    """A column that `struct->*` makes of a field."""
    if name in RESERVED_COLUMNS:
        struct = text(base)
        raise StatementError(
            f"{quote(name)} is a reserved column name, and {struct}->* has a field of that name. "
            f"Select the fields one by one, and give this one an alias: {struct}->{name} AS …"
        )


def check_sources(sources: Iterable[Source]) -> None:
    """Sources that are older than a pseudocolumn may have a column of its name."""
    clashing = [quote(c.name) for s in sources for c in s.schema if c.name in PSEUDOCOLUMNS]
    if clashing:
        raise StatementError(
            "Your stream/table has columns with the same name as newly introduced pseudocolumns "
            "in ksqlDB, and cannot be queried as a result. The conflicting names are: "
            f"{', '.join(clashing)}.\n"
        )


def check_unique(columns: Iterable[Column]) -> None:
    seen: set[tuple[Namespace, str]] = set()
    for column in columns:
        if (column.namespace, column.name) in seen:
            kind = column.namespace.value.lower()
            raise StatementError(f"Duplicate {kind} columns found in schema: {column}")
        seen.add((column.namespace, column.name))
