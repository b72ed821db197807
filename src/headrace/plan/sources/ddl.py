"""Plans CREATE STREAM and CREATE TABLE over a topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from headrace.model.errors import StatementError
from headrace.model.schema import (
    Column,
    Namespace,
    Schema,
    header_type_problem,
)
from headrace.model.settings import is_on
from headrace.model.sources import Source, SourceKind
from headrace.model.types import quote
from headrace.plan.language.binder import TypeResolver, resolve_type
from headrace.plan.language.catalog_view import CatalogView
from headrace.plan.language.column_names import check_declared, check_unique
from headrace.plan.language.messages import at
from headrace.plan.sources.properties import (
    DECLARED,
    WithClause,
    check_retention,
    timestamp_column,
    with_clause,
)
from headrace.plan.sources.serdes import check_schema, declared_format
from headrace.plan.sources.wrapping import serde_of
from headrace.sql import ast


def plan_create_source(
    statement: ast.CreateSource, view: CatalogView, settings: Mapping[str, str]
) -> Source:
    """The source that a statement declares, whose columns are all written out."""
    kind = statement.source_kind
    clause = with_clause(statement.properties, DECLARED)
    topic, window = clause.topic, clause.window
    key = declared_format(statement, clause, "key", settings)
    value = declared_format(statement, clause, "value", settings)
    check_retention(clause, kind, windowed=False)
    schema = declared_schema(statement, kind, view.type)
    existing = view.source(statement.name)
    replaced = existing if statement.or_replace else None
    _check_headers_enabled(schema, kind, replaced, settings)
    if kind is SourceKind.TABLE and not schema.key:
        raise _no_primary_key(statement.name, clause)
    _check_replaceable(statement, kind, existing)
    timestamp = timestamp_column(clause, schema)
    key_serde = serde_of(key, clause, "key", len(schema.key), settings, replaced=replaced)
    value_serde = serde_of(value, clause, "value", len(schema.value), settings, replaced=replaced)
    check_schema(schema, key_serde, value_serde)
    if window is not None and not schema.key:
        raise StatementError("Windowed sources require a key column.")
    return Source(
        name=statement.name,
        kind=kind,
        schema=schema,
        topic=topic,
        key=key_serde,
        value=value_serde,
        timestamp=timestamp,
        window=window,
        read_only=statement.is_source,
    )


def _no_primary_key(name: str, clause: WithClause) -> StatementError:
    message = "Tables require a PRIMARY KEY. Please define the PRIMARY KEY."
    if clause.number("VALUE_SCHEMA_ID") is not None:
        message += (
            "\nUse a partial schema to define the primary key and still load the value columns "
            f"from the Schema Registry, for example:\n\tCREATE TABLE {name} (ID INT PRIMARY KEY) "
            "WITH (...);"
        )
    return StatementError(message)


def _check_replaceable(
    statement: ast.CreateSource, kind: SourceKind, existing: Source | None
) -> None:
    read_only = statement.is_source or (existing is not None and existing.read_only)
    if statement.or_replace and read_only:
        word = kind.value.lower()
        raise StatementError(
            f"Cannot add {word} '{statement.name}': CREATE OR REPLACE is not supported on source "
            f"{word}s."
        )


def plan_alter_source(statement: ast.AlterSource, view: CatalogView) -> Source:
    """The source with the columns that ALTER STREAM|TABLE adds to its value."""
    kind = statement.source_kind
    source = view.source(statement.name)
    if source is None:
        raise StatementError(f"Source {statement.name} does not exist.")
    if source.kind is not kind:
        raise StatementError(
            f"Incompatible data source type is {source.kind.value}, but statement was ALTER "
            f"{kind.value}"
        )
    if source.read_only:
        word = kind.value.lower()
        raise StatementError(
            f"Cannot alter {word} '{source.name}': ALTER operations are not supported on source "
            f"{word}s."
        )
    if source.is_sink:
        raise StatementError("ALTER command is not supported for CREATE ... AS statements.")
    columns = list(source.schema)
    for option in statement.options:
        if any(c.name == option.name for c in columns):
            raise StatementError(
                f"Cannot add column {quote(option.name)} to schema. A column with the same name "
                "already exists."
            )
        columns.append(_column(ast.TableElement(option.name, option.type), kind, view.type))
    schema = Schema.of(columns)
    check_schema(schema, source.key, source.value)
    return replace(source, schema=schema)


# ------------------------------------------------------------------------------------- columns


def declared_schema(statement: ast.CreateSource, kind: SourceKind, types: TypeResolver) -> Schema:
    if not statement.elements:
        raise StatementError("No columns supplied.")
    columns = [_column(e, kind, types) for e in statement.elements]
    check_unique(columns)
    _check_headers(c for c in columns if c.namespace is Namespace.HEADERS)
    return Schema.of(columns)


def _column(element: ast.TableElement, kind: SourceKind, types: TypeResolver) -> Column:
    check_declared(element.name)
    type_ = resolve_type(element.type, types)
    match element.constraint:
        case None:
            return Column(element.name, type_)
        case ast.Constraint(ast.ConstraintKind.HEADERS | ast.ConstraintKind.HEADER, key):
            problem = header_type_problem(type_, key)
            if problem is not None:
                raise StatementError(problem)
            return Column(element.name, type_, Namespace.HEADERS, key)
        case ast.Constraint(written):
            primary = written is ast.ConstraintKind.PRIMARY_KEY
            if primary != (kind is SourceKind.TABLE):
                wanted = "KEY" if primary else "PRIMARY KEY"
                raise StatementError(
                    f"{at(element.position)}Column {quote(element.name)} is a '{written.value}' "
                    f"column: please use '{wanted}' for {kind.value.lower()}s."
                )
            return Column(element.name, type_, Namespace.KEY)


# ------------------------------------------------------------------------------------- headers


def _check_headers_enabled(
    schema: Schema, kind: SourceKind, replaced: Source | None, settings: Mapping[str, str]
) -> None:
    """A server may be told to take no new header columns; sources that have them go on, and may
    be replaced by ones that have no others."""
    if is_on(settings, "ksql.headers.enabled"):
        return
    known = () if replaced is None else replaced.schema.headers
    if any(column not in known for column in schema.headers):
        raise StatementError(
            f"Cannot create {kind.value} because schema with headers columns is disabled."
        )


def _check_headers(columns: Iterable[Column]) -> None:
    """Either all headers in one column, or single ones by different keys (KLIP-57)."""
    seen: set[str | None] = set()
    for column in columns:
        key = column.header_key
        if None in seen:
            raise StatementError("Schema already contains a HEADERS column.")
        if key in seen or (key is None and seen):
            taken = key if key is not None else next(iter(seen))
            raise StatementError(f"Schema already contains a HEADER('{taken}') column.")
        seen.add(key)
