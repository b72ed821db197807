"""PARTITION BY: gives a stream's rows another key."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from headrace.model.errors import StatementError
from headrace.model.schema import WINDOW_BOUNDS, Column, Namespace, Schema
from headrace.model.sources import SourceKind
from headrace.plan.clauses.read import as_value
from headrace.plan.clauses.stage import (
    Planning,
    Projection,
    Stage,
    evaluated,
    missing_key,
)
from headrace.plan.language.messages import text
from headrace.plan.language.names import Aliases
from headrace.plan.nodes import Node, Rekey, Selected
from headrace.sql import ast


def rekey_stage(planning: Planning, stage: Stage) -> Stage:
    analysis = planning.analysis
    written = analysis.partition_by or ()
    by = () if analysis.partitions_by_null else tuple(map(planning.flatten, written))
    binder = planning.binder(stage.node)
    aliases = Aliases(c.name for c in stage.node.schema)
    names = [e.name if isinstance(e, ast.ColumnRef) else aliases.alias(e) for e in by]
    bound = [evaluated(binder, e, "SelectKey") for e in by]
    keys = tuple(
        Selected(Column(name, e.type, Namespace.KEY), e)
        for name, e in zip(names, bound, strict=True)
    )
    rest = (as_value(c) for c in stage.node.schema if c.name not in names)
    node = Rekey(Schema.of((*(k.column for k in keys), *rest)), stage.node.kind, stage.node, keys)
    resolved = dict(zip(by, names, strict=True))

    def resolve(e: ast.Expression) -> ast.Expression:
        return ast.ColumnRef(None, resolved[e]) if e in resolved else stage.resolve(e)

    def check_key(projection: Projection, sink: str) -> None:
        pairs = zip(by, written, strict=False)
        if not all(projection.contains(f) or projection.contains(w) for f, w in pairs):
            raise missing_key(sink, "partitioning expression", written)

    def check_source() -> None:
        _check_source(stage.node, by, analysis.left.source.window is not None)

    return dataclasses.replace(
        stage,
        node=node,
        stars={source: _star(stage, source, names) for source in stage.stars},
        check_key=check_key,
        resolve=resolve,
        checks=(*stage.checks, check_source),
    )


def _star(stage: Stage, source: str | None, names: Sequence[str]) -> tuple[str, ...]:
    """The new key first, then each source's columns, those of its old key last."""
    if source is None and len(stage.stars) > 2:
        parts = (_star(stage, alias, names)[len(names) :] for alias in stage.stars if alias)
        return (*names, *(n for part in parts for n in part))
    columns = [n for n in stage.stars[source] if n not in names]
    old = stage.source_keys
    bounds = [n for n in columns if n in WINDOW_BOUNDS]
    values = [n for n in columns if n not in WINDOW_BOUNDS]
    return (
        *names,
        *bounds,
        *(n for n in values if n not in old),
        *(n for n in values if n in old),
    )


def _check_source(node: Node, by: Sequence[ast.Expression], windowed: bool) -> None:
    key = [c.name for c in node.schema.key]
    if len(key) == 1 and list(by) == [ast.ColumnRef(None, key[0])]:
        return
    if node.kind is SourceKind.TABLE:
        if len(key) > 1:
            raise StatementError(
                "Cannot repartition a TABLE source. If this is a join, joins on tables with "
                "multiple columns is not yet supported."
            )
        raise StatementError(
            "Cannot repartition a TABLE source. If this is a join, make sure that the criteria "
            f"uses the TABLE's key column {key[0]} instead of [{', '.join(map(text, by))}]"
        )
    if windowed:
        raise StatementError(
            "Implicit repartitioning of windowed sources is not supported. "
            "See https://github.com/confluentinc/ksql/issues/4385."
        )
