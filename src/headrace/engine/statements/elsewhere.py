"""Statements that belong to another door: queries and PRINT, and what only test files hold."""

from __future__ import annotations

from headrace.engine.statements.handling import Asked, handles
from headrace.model.errors import StatementError
from headrace.sql import ast


class WrongDoor(StatementError):
    """A statement whose answer is a stream, where statements are answered whole."""

    error_code = 40002


@handles(ast.Query, ast.PrintTopic)
def _streamed(statement: ast.Statement, asked: Asked) -> None:
    raise WrongDoor(
        "The following statement types should be issued to the websocket endpoint '/query':"
        "\n\t* PRINT\n\t* SELECT",
        asked.text,
    )


@handles(ast.AssertValues, ast.AssertTombstone, ast.AssertStream, ast.AssertTable, ast.RunScript)
def _in_files_only(statement: ast.Statement, asked: Asked) -> None:
    raise StatementError(f"Do not know how to execute: {type(statement).__name__}", asked.text)
