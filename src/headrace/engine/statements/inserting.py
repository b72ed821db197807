"""INSERT INTO … VALUES."""

from __future__ import annotations

from headrace.engine.statements.handling import Asked, handles
from headrace.sql import ast


@handles(ast.InsertValues)
def _insert(statement: ast.InsertValues, asked: Asked) -> None:
    asked.engine.inserts.values(statement, asked.catalog, asked.settings)
