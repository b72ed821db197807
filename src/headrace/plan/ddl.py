"""CREATE STREAM and CREATE TABLE over a topic: from their statement to a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.model.errors import StatementError
from headrace.model.schema import HEADERS_TYPE, RESERVED_COLUMNS, Column, Namespace, Schema
from headrace.model.sources import Serde, Source, SourceKind, WindowedKey, WindowType
from headrace.model.types import BYTES, SqlType, quote
from headrace.plan.binder import TypeLookup, resolve_type
from headrace.plan.projecting import check_unique
from headrace.plan.properties import DECLARED, WithClause, timestamp_column, with_clause
from headrace.plan.serdes import check_format, check_schema, check_wrap, format_properties
from headrace.plan.sink import default_wrap, wrap_property
from headrace.plan.view import CatalogView
from headrace.plan.wording import at
from headrace.sql import ast

_KEY_FORMAT = "ksql.persistence.default.format.key"
_VALUE_FORMAT = "ksql.persistence.default.format.value"


def plan_create_source(
    statement: ast.CreateSource, view: CatalogView, settings: Mapping[str, str]
) -> Source:
    kind = SourceKind.TABLE if isinstance(statement, ast.CreateTable) else SourceKind.STREAM
    clause = with_clause(statement.properties, DECLARED)
    schema = declared_schema(statement, kind, view.type)
    key_format = clause.key_format or settings.get(_KEY_FORMAT, "KAFKA")
    if not schema.key and clause.key_format is None:
        key_format = "NONE"
    value_format = clause.value_format or settings.get(_VALUE_FORMAT)
    if value_format is None:
        raise StatementError(
            "Statement is missing the 'VALUE_FORMAT' property from the WITH clause. Either "
            "provide one or set a default via the 'ksql.persistence.default.format.value' config."
        )
    for name in (key_format, value_format):
        check_format(name)
    check_wrap(clause, value_format, len(schema.value) == 1)
    key = _serde(clause, "key", key_format, statement.name, settings)
    value = _serde(clause, "value", value_format, None, settings)
    check_schema(schema, key, value)
    return Source(
        name=statement.name,
        kind=kind,
        schema=schema,
        topic=clause.text("KAFKA_TOPIC") or statement.name,
        key=key,
        value=value,
        timestamp=timestamp_column(clause, schema),
        window=_window(clause),
        read_only=statement.is_source,
    )


def _serde(
    clause: WithClause,
    side: str,
    format_: str,
    source: str | None,
    settings: Mapping[str, str],
) -> Serde:
    explicit = wrap_property(clause, side)
    properties = format_properties(clause, side, format_, source)
    return Serde(
        format_,
        default_wrap(settings, side) if explicit is None else explicit,
        tuple(sorted(properties.items())),
        wrap_inherited=side == "key" or clause.flag("WRAP_SINGLE_VALUE") is None,
    )


def declared_schema(statement: ast.CreateSource, kind: SourceKind, types: TypeLookup) -> Schema:
    if not statement.elements:
        raise StatementError("The statement does not define any columns.")
    columns = [_column(e, kind, types) for e in statement.elements]
    check_unique(columns)
    _check_headers(columns)
    if kind is SourceKind.TABLE and not any(c.namespace is Namespace.KEY for c in columns):
        raise StatementError("Tables require a PRIMARY KEY. Please define the PRIMARY KEY.")
    return Schema.of(columns)


def _column(element: ast.TableElement, kind: SourceKind, types: TypeLookup) -> Column:
    if element.name in RESERVED_COLUMNS:
        raise StatementError(
            f"'{element.name}' is a reserved column name. You cannot use it as a name for a column."
        )
    type_ = resolve_type(element.type, types)
    match element.constraint:
        case None:
            return Column(element.name, type_)
        case ast.Constraint(ast.ConstraintKind.HEADERS | ast.ConstraintKind.HEADER, key):
            _check_header(type_, key)
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


def _check_headers(columns: Sequence[Column]) -> None:
    """All headers in one column, or some of them in a column each."""
    seen: set[str | None] = set()
    for column in columns:
        if column.namespace is not Namespace.HEADERS:
            continue
        if None in seen:
            raise StatementError("Schema already contains a HEADERS column.")
        if column.header_key in seen:
            raise StatementError(f"Schema already contains a HEADER('{column.header_key}') column.")
        if column.header_key is None and seen:
            raise StatementError("Schema already contains a HEADER column.")
        seen.add(column.header_key)


def _check_header(type_: SqlType, key: str | None) -> None:
    expected: SqlType = HEADERS_TYPE if key is None else BYTES
    if type_ != expected:
        what = "HEADERS" if key is None else f"HEADER('{key}')"
        raise StatementError(f"Invalid type for {what} column: expected {expected}, got {type_}")


_UNITS = {unit.name: unit.value for unit in ast.TimeUnit}


def _window(clause: WithClause) -> WindowedKey | None:
    written, size = clause.text("WINDOW_TYPE"), clause.text("WINDOW_SIZE")
    if written is None:
        return None
    if written.upper() not in WindowType.__members__:
        raise StatementError(
            f"Invalid value {written} for property WINDOW_TYPE: String must be one of: "
            "SESSION, HOPPING, TUMBLING, null"
        )
    type_ = WindowType(written.upper())
    if type_ is WindowType.SESSION and size is not None:
        raise StatementError("'WINDOW_SIZE' should not be set for SESSION windows.")
    return WindowedKey(type_, None if size is None else _duration(size))


def _duration(text: str) -> int:
    """The milliseconds of a text such as `30 SECONDS`."""
    count, _, unit = text.strip().partition(" ")
    name = unit.strip().upper()
    known = name if name.endswith("S") else f"{name}S"
    problem = f"Configuration WINDOW_SIZE is invalid: Invalid duration: '{text}'."
    if known not in _UNITS:
        raise StatementError(f"{problem} Unknown time unit: '{name}'")
    if not count.isdecimal():
        raise StatementError(f"{problem} Not numeric: '{count}'")
    return int(count) * _UNITS[known]
