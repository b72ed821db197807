"""Which push queries are scalable in ksqlDB's sense: they share one reader of a query's results."""

from __future__ import annotations

from headrace.catalog.catalog import Catalog
from headrace.model.schema import ROWOFFSET, ROWPARTITION
from headrace.model.settings import Settings
from headrace.plan.language.scope import column_refs
from headrace.sql import ast

_OF_THE_RECORD = frozenset({ROWPARTITION, ROWOFFSET})


def is_scalable(query: ast.Query, catalog: Catalog, settings: Settings) -> bool:
    """Whether it asks for the new rows of what exactly one persistent query writes, and chooses
    and rewrites them one by one."""
    source = query.source
    clauses = (query.window, query.group_by, query.partition_by, query.having)
    read = (*query.select, *([query.where] if query.where is not None else []))
    return (
        settings.flag("ksql.query.push.v2.enabled")
        and settings.text("auto.offset.reset") == "latest"
        and query.emit is ast.Emit.CHANGES
        and isinstance(source, ast.AliasedRelation)
        and len(catalog.writers(source.name)) == 1
        and all(clause is None for clause in clauses)
        and not any(c.name in _OF_THE_RECORD for part in read for c in column_refs(part))
    )
