"""Prints syntax trees as ksqlDB does.

`format_statement` gives text that parses to the same tree again. `display_expression` gives the
text that ksqlDB shows in messages and uses for names: the same, but with no name in quotes.
"""

from __future__ import annotations

from headrace.sql.tree import Expression, Statement, bare, quoted


def format_statement(statement: Statement) -> str:
    """The statement as SQL, ending with a semicolon."""
    return statement.sql(quoted).rstrip("\n") + ";"


def display_expression(expression: Expression) -> str:
    return expression.sql(bare)
