"""INSERT INTO … VALUES."""

from __future__ import annotations

from headrace.engine.inserts import insert_values
from headrace.engine.statements.handling import Asked, handles
from headrace.sql import ast


@handles(ast.InsertValues)
def _insert(statement: ast.InsertValues, asked: Asked) -> None:
    enabled = asked.settings.flag("ksql.insert.into.values.enabled")
    insert_values(statement, asked.world, asked.catalog, enabled)
