"""Table functions in a projection, which turn one row into several."""

from __future__ import annotations

import dataclasses

from headrace.model.errors import StatementError
from headrace.model.schema import Column, Schema
from headrace.plan.clauses.stage import Planning, Stage
from headrace.plan.language.binder import Binder, EvaluationError
from headrace.plan.language.messages import text
from headrace.plan.language.names import exploded_column
from headrace.plan.language.rewriting import map_children
from headrace.plan.nodes import FlatMap, TableFunctionCall
from headrace.sql import ast


def explode_stage(planning: Planning, stage: Stage) -> Stage:
    calls = tuple(dict.fromkeys(map(planning.flatten, planning.analysis.table_functions)))
    binder = planning.binder(stage.node)
    made = tuple(_call(binder, c, i) for i, c in enumerate(calls) if isinstance(c, ast.Call))
    columns = {
        call: ast.ColumnRef(None, m.column.name, stands_for=text(call))
        for call, m in zip(calls, made, strict=True)
    }
    schema = Schema.of((*stage.node.schema, *(m.column for m in made)))

    def resolve(e: ast.Expression) -> ast.Expression:
        below = stage.resolve(e)
        if below != e:
            return below
        return columns[e] if e in columns else map_children(e, replaced)

    def replaced(e: ast.Expression) -> ast.Expression:
        return columns[e] if e in columns else map_children(e, replaced)

    node = FlatMap(schema, stage.node.kind, stage.node, made)
    return dataclasses.replace(stage, node=node, resolve=resolve)


def _call(binder: Binder, call: ast.Call, index: int) -> TableFunctionCall:
    try:
        chosen = binder.arguments(call)
    except EvaluationError as e:
        raise StatementError(f"Invalid Table function: {e}. expression: {text(call)}") from None
    column = Column(exploded_column(index), chosen.type)
    return TableFunctionCall(column, call.name, chosen.signature, chosen.args)
