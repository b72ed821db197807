"""Prepared pull queries: those that differ in their key only are not parsed and planned again.

A query's text with its literals taken out is its shape. The first query of a shape is parsed and
planned as usual; if all it does is to look up a row by its whole key and to show plain columns,
the next one of that shape needs nothing but its literals.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.catalog.catalog import Catalog
from headrace.engine.tables.follower import TableTails, Tail
from headrace.engine.tables.pull import PullAnswer, direct_projection
from headrace.engine.tables.row_expressions import Evaluate
from headrace.engine.tables.rows import RowReader, tail_name
from headrace.model.requests import Request, ResultRow
from headrace.model.schema import Schema
from headrace.model.settings import Settings
from headrace.model.types import BIGINT, DOUBLE, INTEGER, STRING, SqlType
from headrace.plan.pull import PullPlan, Range
from headrace.sql import ast
from headrace.sql.cursor import unquote
from headrace.sql.tokens import tokenize

Wait = Callable[[Tail, float], None]
Convert = Callable[[Any], object]
MOST_SHAPES = 1000
_MAX_INTEGER = 2**31 - 1
_NUMBERS: Mapping[SqlType, Convert] = {INTEGER: int, BIGINT: int, DOUBLE: float}

# A longer text is no plain lookup; it is not worth to read it on the event loop.
_LONGEST = 4096

# A shape, and the request's properties.
_Key = tuple[str, tuple[tuple[str, object], ...]]


@dataclass(frozen=True)
class _PreparedQuery:
    """A prepared query. `key`: for each key column, the literal it is compared with, and its
    conversion."""

    reader: RowReader
    name: str  # of the tail
    schema: Schema
    columns: Sequence[Evaluate]
    key: Sequence[tuple[int, Convert]]
    staleness: float


class PreparedPullQueries:
    """The prepared queries of one catalog; all are dropped when the catalog changes."""

    def __init__(self, tails: TableTails) -> None:
        self._tails = tails
        self._catalog: Catalog | None = None
        self._known: dict[_Key, _PreparedQuery] = {}

    def answer(
        self, request: Request, catalog: Catalog, wait: Wait | None = None
    ) -> PullAnswer | None:
        """The answer, if such a query is prepared and its rows are in the store.

        Without `wait` it is had at once or not at all; `wait` makes a tail as fresh as is asked.
        """
        if catalog is not self._catalog or request.after_command is not None:
            return None
        taken = _taken_apart(request)
        prepared = self._known.get(taken[0]) if taken is not None else None
        if taken is None or prepared is None:
            return None
        key = _key_values(taken[1], prepared)
        tail = self._tails.get(prepared.name)
        if key is None or tail is None:
            return None
        if wait is not None:
            wait(tail, prepared.staleness)
        elif not tail.is_fresh(prepared.staleness):
            return None
        found = prepared.reader.key_bytes(key)
        try:
            record = None if found is None else tail.store.get(found)
        except sqlite3.Error:
            return None  # the table is being dropped
        row = None if record is None else prepared.reader.row(record)
        if row is None:
            return PullAnswer(prepared.schema, ())
        return PullAnswer(
            prepared.schema, ((ResultRow([column(row) for column in prepared.columns]),),)
        )

    def learn(
        self,
        request: Request,
        query: ast.Query,
        plan: PullPlan,
        catalog: Catalog,
        settings: Settings,
        reader: RowReader,
    ) -> None:
        """Prepares a query that was answered, if similar ones can be answered at once."""
        taken = _taken_apart(request)
        columns = direct_projection(plan)
        if taken is None or columns is None or reader.may_wait or not _is_whole_key(plan):
            return
        compared = _compared(query.where)
        if compared is None or [value for _, value in compared] != list(taken[1]):
            return
        names = [name for name, _ in compared]
        keys = plan.source.schema.key
        if sorted(names) != sorted(c.name for c in keys):
            return
        places = [names.index(c.name) for c in keys]
        converted = [
            (i, found)
            for i, c in zip(places, keys, strict=True)
            if (found := _conversion(taken[1][i], c.type)) is not None
        ]
        if len(converted) != len(keys):
            return
        if catalog is not self._catalog or len(self._known) >= MOST_SHAPES:
            self._known = {}
            self._catalog = catalog
        self._known[taken[0]] = _PreparedQuery(
            reader,
            tail_name(plan.source),
            plan.schema,
            columns,
            converted,
            settings.number("ksql.query.pull.max.staleness.ms") / 1000,
        )


def _taken_apart(request: Request) -> tuple[_Key, tuple[object, ...]] | None:
    """A request's shape, and the values of its literals: its strings and whole numbers."""
    if len(request.text) > _LONGEST:
        return None
    source = tokenize(request.text)
    literals: list[object] = []
    parts: list[str] = []
    for token in source.tokens:
        kind = token.kind
        # What a literal is, a string or a number, is part of the shape.
        if kind == "string":
            literals.append(unquote(token.text))
            parts.append("'")
        elif kind == "integer":
            literals.append(int(token.text))
            parts.append("0")
        elif kind == "variable":
            return None
        else:
            parts.append(token.text)
    shape = "\0".join(parts)
    key = (shape, tuple(sorted(request.properties.items())) if request.properties else ())
    try:
        hash(key)
    except TypeError:  # a property that is no plain value
        return None
    return key, tuple(literals)


def _is_whole_key(plan: PullPlan) -> bool:
    """One row at most, found by its key alone."""
    if plan.source.window is not None or plan.limit is not None or plan.constraints is None:
        return False
    if len(plan.constraints) != 1:
        return False
    only = plan.constraints[0]
    return only.key is not None and only.window_start == only.window_end == Range()


def _compared(where: ast.Expression | None) -> list[tuple[str, object]] | None:
    """A conjunction of `column = literal`, in its order; None if it is anything else."""
    match where:
        case ast.Logical("AND", left, right):
            first, second = _compared(left), _compared(right)
            return None if first is None or second is None else first + second
        case ast.Comparison("=", ast.ColumnRef(_, name), ast.StringLiteral(value=text)):
            return [(name, text)]
        case ast.Comparison("=", ast.ColumnRef(_, name), ast.IntegerLiteral(value=number)):
            return [(name, number)]
    return None


def _conversion(literal: object, type_: SqlType) -> Convert | None:
    """How a literal becomes a value of the type, if that is trivial."""
    if isinstance(literal, str):
        return str if type_ == STRING else None
    return _NUMBERS.get(type_)


def _key_values(literals: Sequence[object], prepared: _PreparedQuery) -> tuple[object, ...] | None:
    """The literals as the key columns' values; None for a number that is no INTEGER."""
    for literal in literals:
        if type(literal) is int and literal > _MAX_INTEGER:
            return None
    return tuple([convert(literals[i]) for i, convert in prepared.key])
