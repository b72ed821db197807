"""Reads sources with all their columns and pseudocolumns; `prune` removes those not needed."""

from __future__ import annotations

from headrace.model.schema import (
    PSEUDOCOLUMNS,
    WINDOW_BOUNDS,
    Column,
    Namespace,
    Schema,
)
from headrace.model.sources import Source
from headrace.plan.clauses.stage import Projection, Stage, missing_key
from headrace.plan.language.names import join_column
from headrace.plan.language.scope import Aliased
from headrace.plan.nodes import ReadSource
from headrace.sql import ast


def read(aliased: Aliased, in_join: bool) -> ReadSource:
    source = aliased.source
    schema = source.schema
    bounds = WINDOW_BOUNDS if source.window is not None else {}
    columns = [
        *schema.key,
        *schema.value,
        *(Column(c.name, c.type) for c in schema.headers),
        *(Column(name, type_) for name, type_ in (*PSEUDOCOLUMNS.items(), *bounds.items())),
    ]
    named = [
        Column(join_column(aliased.alias, c.name) if in_join else c.name, c.type, c.namespace)
        for c in columns
    ]
    return ReadSource(
        schema=Schema.of(named),
        kind=source.kind,
        source=source.name,
        alias=aliased.alias,
        topic=source.topic,
        columns=source.schema,
        key=source.key,
        value=source.value,
        timestamp=source.timestamp,
        window=source.window,
        outputs=tuple((new.name, old.name) for new, old in zip(named, columns, strict=True)),
    )


def star(source: Source) -> tuple[str, ...]:
    """The columns that `*` means, in their order."""
    schema = source.schema
    bounds = tuple(WINDOW_BOUNDS) if source.window is not None else ()
    rest = (*schema.value, *schema.headers)
    return (*(c.name for c in schema.key), *bounds, *(c.name for c in rest))


def read_stage(aliased: Aliased) -> Stage:
    keys = tuple(ast.ColumnRef(None, c.name) for c in aliased.source.schema.key)

    def check_key(projection: Projection, sink: str) -> None:
        for key in keys:
            qualified = ast.ColumnRef(aliased.alias, key.name)
            if not projection.contains(key) and not projection.contains(qualified):
                raise missing_key(sink, "key column", keys)

    columns = star(aliased.source)
    return Stage(
        read(aliased, False),
        {None: columns, aliased.alias: columns},
        check_key,
        source_keys=frozenset(key.name for key in keys),
    )


def as_value(column: Column) -> Column:
    return Column(column.name, column.type, Namespace.VALUE)
