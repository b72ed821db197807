"""A statement has two places: its class, with words, grammar, printed form and effect, and its
handler."""

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
from headrace.sql.statements.statement_parser import STATEMENTS, begins
from naming import concrete, modules_that_name
from partial_engine import ask

# Whose meaning lies outside of statements: queries, what a session keeps, and files of statements.
SPREAD = {
    ast.Query,
    ast.InsertInto,
    ast.PrintTopic,
    *concrete(ast.SessionStatement),
}
ASKED = {
    ast.TerminateQuery: {"engine/statements/runner.py"},
    # Parts of statements of test files.
    ast.InsertValues: {"engine/statements/handling.py", "sql/statements/testing.py"},
    ast.CreateStream: {"sql/statements/testing.py"},
    ast.CreateTable: {"sql/statements/testing.py"},
    # DESCRIBE FUNCTION of a source with this name.
    ast.DescribeSource: {"sql/statements/functions.py"},
}


@pytest.mark.parametrize("kind", sorted(concrete(ast.Statement) - SPREAD, key=lambda k: k.__name__))
def test_a_statement_is_named_by_its_handler_alone(kind: type[ast.Statement]) -> None:
    assert kind.__module__.startswith("headrace.sql.statements.")
    homes = ("headrace.sql.ast", "headrace.sql.statements", kind.__module__)
    named = {module for home in homes for module in modules_that_name(home)[kind.__name__]}
    # An import knows what each statement of a ksqlDB has done to its state.
    handlers = {m for m in named if not m.startswith("importing/")}
    handlers -= ASKED.get(kind, set()) | {"server/headless.py"}
    assert len(handlers) == 1
    assert all(handler.startswith("engine/statements/") for handler in handlers)


def test_every_part_of_the_tree_prints_itself() -> None:
    assert {kind for kind in concrete(ast.Node) if kind.sql is ast.Node.sql} == set()


def test_no_two_statements_begin_with_the_same_words() -> None:
    with pytest.raises(ValueError, match="Two statements begin with SHOW TYPES"):
        begins("SHOW TYPES")(ast.ListStreams)


def test_a_new_statement_needs_a_class_and_a_handler(monkeypatch) -> None:
    _use_a_new_statement(monkeypatch)
    monkeypatch.undo()
    gc.collect()  # other tests look at every class there is


def _use_a_new_statement(monkeypatch) -> None:
    words = ("SHOW", "SCHEMA")
    monkeypatch.setitem(STATEMENTS, words, ast.Statement)  # so that it is taken away again
    del STATEMENTS[words]

    @begins("SHOW SCHEMA")
    @dataclass(frozen=True)
    class ListSchemas(ast.ExtendableStatement):
        pass

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
