"""Every kind of statement has someone who deals with it."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.engine.statements.changes import planned_kinds
from headrace.engine.statements.handling import handled_kinds
from headrace.engine.statements.request_session import Session
from headrace.sql import ast
from headrace.sql.parser import parse_statement


def _kinds(kind: type[ast.Statement]) -> Iterator[type[ast.Statement]]:
    below = kind.__subclasses__()
    if not below:
        yield kind
    for child in below:
        yield from _kinds(child)


def _session_kinds() -> frozenset[type[ast.Statement]]:
    return frozenset(k for k in _kinds(ast.Statement) if k.effect is ast.Effect.SESSION)


def test_every_statement_is_dealt_with_once() -> None:
    everything = frozenset(_kinds(ast.Statement))
    parts = (handled_kinds(), planned_kinds(), _session_kinds())

    assert everything - frozenset().union(*parts) == frozenset()
    assert sum(map(len, parts)) == len(everything)


def test_a_session_takes_the_statements_that_are_about_it() -> None:
    session = Session()
    statements = [
        parse_statement(text)
        for text in (
            "SET 'auto.offset.reset'='earliest';",
            "DEFINE a = '1';",
            "UNSET 'auto.offset.reset';",
            "UNDEFINE a;",
        )
    ]

    assert frozenset(map(type, statements)) == _session_kinds()
    assert all(map(session.takes, statements[:2]))
    assert session == Session({"auto.offset.reset": "earliest"}, {"a": "1"})
    assert all(map(session.takes, statements[2:]))
    assert session == Session()
    assert not session.takes(parse_statement("SHOW STREAMS;"))
