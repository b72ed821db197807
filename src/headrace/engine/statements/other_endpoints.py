"""Statements that belong to other endpoints (queries and PRINT) or to test files."""

from __future__ import annotations

from headrace.engine.statements.handling import StatementContext, handles
from headrace.model.errors import StatementError
from headrace.sql import ast


class WrongEndpointError(StatementError):
    """A statement whose answer is a stream was sent to `/ksql`."""

    error_code = 40002


@handles(ast.Query, ast.PrintTopic)
def _streamed(statement: ast.Statement, context: StatementContext) -> None:
    raise WrongEndpointError(
        "The following statement types should be issued to the websocket endpoint '/query':"
        "\n\t* PRINT\n\t* SELECT",
        context.text,
    )


@handles(ast.AssertValues, ast.AssertTombstone, ast.AssertStream, ast.AssertTable, ast.RunScript)
def _in_files_only(statement: ast.Statement, context: StatementContext) -> None:
    raise StatementError(f"Do not know how to execute: {type(statement).__name__}", context.text)
