"""A statement has a class, which prints itself and says what it does, a parser, and a handler."""

from __future__ import annotations

import gc
from dataclasses import dataclass

import pytest

from headrace.engine.statements import handling
from headrace.model.entities import TypeList
from headrace.sql import ast
from headrace.sql.outline import outlines
from headrace.sql.parser import parse_statement
from headrace.sql.printer import format_statement
from headrace.sql.statement_parser import STATEMENTS, Form
from naming import concrete, modules_that_name
from partial_engine import ask

PARSER = "sql/statement_parser.py"
# Whose meaning lies outside of statements: queries, what a session keeps, and files of statements.
SPREAD = {
    ast.Query,
    ast.InsertInto,
    ast.PrintTopic,
    *concrete(ast.SessionStatement),
}
ASKED = {
    ast.TerminateQuery: {"engine/statements/runner.py"},
    ast.InsertValues: {"engine/statements/handling.py"},
}


@pytest.mark.parametrize("kind", sorted(concrete(ast.Statement) - SPREAD, key=lambda k: k.__name__))
def test_a_statement_is_named_by_its_parser_and_its_handler(kind: type[ast.Statement]) -> None:
    named = modules_that_name("headrace.sql.ast")[kind.__name__] - ASKED.get(kind, set())
    handlers = named - {PARSER, "server/headless.py"}
    assert PARSER in named and len(handlers) == 1
    assert all(handler.startswith("engine/statements/") for handler in handlers)


def test_every_part_of_the_tree_prints_itself() -> None:
    assert {kind for kind in concrete(ast.Node) if kind.sql is ast.Node.sql} == set()


def test_a_new_statement_needs_a_class_a_row_of_the_parser_and_a_handler(monkeypatch) -> None:
    _use_a_new_statement(monkeypatch)
    monkeypatch.undo()
    gc.collect()  # other tests look at every class there is


def _use_a_new_statement(monkeypatch) -> None:
    @dataclass(frozen=True)
    class ListSchemas(ast.ExtendableStatement):
        title = "SHOW SCHEMA"

    def read(parser, position):
        return ListSchemas(parser.accept("EXTENDED"), position=position)

    monkeypatch.setitem(STATEMENTS, ("SHOW", "SCHEMA"), Form(ListSchemas, read))
    statement = parse_statement("list schema extended;")
    assert statement == ListSchemas(extended=True)
    assert format_statement(statement) == "SHOW SCHEMA EXTENDED;"
    (outline,) = outlines("SHOW SCHEMA;")
    assert (outline.effect, outline.query) == (ast.Effect.READS, None)

    monkeypatch.setattr(handling, "_HANDLERS", dict(handling._HANDLERS))

    @handling.handles(ListSchemas)
    def answer(statement, context):
        return TypeList(context.text, {})

    assert ask("SHOW SCHEMA;") == {
        "@type": "type_list",
        "statementText": "SHOW SCHEMA;",
        "types": {},
        "warnings": [],
    }
