"""Every kind of statement has someone who deals with it."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.engine.changes import planned_kinds
from headrace.engine.session import SESSION_STATEMENTS
from headrace.engine.statements import handled_kinds
from headrace.sql import ast


def _kinds(kind: type[ast.Statement]) -> Iterator[type[ast.Statement]]:
    below = kind.__subclasses__()
    if not below:
        yield kind
    for child in below:
        yield from _kinds(child)


def test_every_statement_is_dealt_with_once() -> None:
    parts = (handled_kinds(), planned_kinds(), frozenset(SESSION_STATEMENTS))
    everything = frozenset(_kinds(ast.Statement))

    assert everything - frozenset().union(*parts) == frozenset()
    assert sum(map(len, parts)) == len(everything)
