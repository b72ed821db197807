"""A statement of ksqlDB as a statement of ours that means the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from headrace.formats import format_named
from headrace.model.schema import Namespace
from headrace.model.sources import Source
from headrace.plan.clauses.sink import default_topic
from headrace.sql import ast

# What ksqlDB writes into every statement that it records; it says nothing that is not known.
_AUTOMATIC = "CLEANUP_POLICY"
_RETENTION = "RETENTION_MS"
TOPIC = "KAFKA_TOPIC"
START_FROM = "START_FROM"
WRAP = "WRAP_SINGLE_VALUE"
_WRAPS = frozenset({WRAP, "WRAP_SINGLE_VALUES", "WRAP_SINGLE_FIELDS"})
# How a format's own properties are written in WITH, after the side.
_FORMAT_PROPERTIES = {
    "delimiter": "DELIMITER",
    "fullSchemaName": "SCHEMA_FULL_NAME",
    "nullableRepresentation": "PROTOBUF_NULLABLE_REPRESENTATION",
}

Statement = ast.CreateSource | ast.CreateAsSelect | ast.InsertInto


def translated(statement: ast.Statement) -> ast.Statement:
    """As it is made here for the first time, without what ksqlDB writes in by itself."""
    match statement:
        case ast.CreateSource():
            kept = without(statement.properties, {_AUTOMATIC})
            if isinstance(statement, ast.CreateTable):
                kept = without(kept, {_RETENTION})
            made = replace(statement, properties=kept, or_replace=False, if_not_exists=False)
            return replace(made, elements=tuple(_written(made)))
        case ast.CreateAsSelect():
            kept = without(statement.properties, {_AUTOMATIC})
            if isinstance(statement, ast.CreateTableAsSelect) and statement.query.window is None:
                kept = without(kept, {_RETENTION})
            return replace(statement, properties=kept, or_replace=False, if_not_exists=False)
        case ast.CreateType():
            return replace(statement, if_not_exists=False)
    return statement


def _written(statement: ast.CreateSource) -> Iterable[ast.TableElement]:
    """The columns, except those of a side whose schema is named by its id: ksqlDB records both."""
    named = {name.upper() for name, _ in statement.properties}
    for element in statement.elements:
        kind = element.constraint.kind if element.constraint else None
        side = "KEY" if kind in ast.KEY_KINDS else "VALUE"
        if kind in ast.HEADER_KINDS or f"{side}_SCHEMA_ID" not in named:
            yield element


def without(properties: ast.Properties, names: Iterable[str]) -> ast.Properties:
    return tuple((name, value) for name, value in properties if name.upper() not in set(names))


def with_property(statement: Statement, name: str, value: ast.Literal) -> Statement:
    return replace(statement, properties=(*without(statement.properties, {name}), (name, value)))


def property_of(statement: Statement, name: str) -> object:
    return next((v.value for n, v in statement.properties if n.upper() == name), None)


def says_wrapping(statement: Statement) -> bool:
    return any(name.upper() in _WRAPS for name, _ in statement.properties)


def with_topics(statement: ast.Statement, topic_of: Callable[[str], str]) -> ast.Statement:
    """The statement over other topics; one that names none writes to that of its prefix and
    name, which the caller has put into it."""
    if not isinstance(statement, ast.CreateSource | ast.CreateAsSelect):
        return statement
    topic = property_of(statement, TOPIC)
    if topic is None or topic_of(str(topic)) == topic:
        return statement
    return with_property(statement, TOPIC, ast.StringLiteral(topic_of(str(topic))))


def sink_topic(statement: ast.CreateAsSelect, settings: Mapping[str, str]) -> str:
    named = property_of(statement, TOPIC)
    return str(named) if named is not None else default_topic(statement.name, settings)


def comparable(statement: ast.Statement) -> ast.Statement:
    """What two statements have alike that make the same, wherever their queries began."""
    match statement:
        case ast.CreateSource() | ast.CreateAsSelect():
            kept = without(statement.properties, {START_FROM})
            named = tuple(sorted(((n.upper(), v) for n, v in kept), key=lambda pair: pair[0]))
            return replace(statement, properties=named, or_replace=False, if_not_exists=False)
        case ast.InsertInto():
            return replace(statement, properties=without(statement.properties, {START_FROM}))
    return statement


def declaration(source: Source, partitions: int | None) -> ast.CreateSource:
    """A source as a statement that declares it over its topic, without the query that made it."""
    create = ast.CreateTable if source.is_table else ast.CreateStream
    key = ast.ConstraintKind.PRIMARY_KEY if source.is_table else ast.ConstraintKind.KEY
    elements = tuple(
        ast.TableElement(
            c.name, c.type, ast.Constraint(key) if c.namespace is Namespace.KEY else None
        )
        for c in source.schema
    )
    return create(source.name, elements, tuple(_described(source, partitions)))


def _described(source: Source, partitions: int | None) -> Iterable[tuple[str, ast.Literal]]:
    yield TOPIC, ast.StringLiteral(source.topic)
    if partitions is not None:
        yield "PARTITIONS", ast.IntegerLiteral(partitions)
    for side in ("KEY", "VALUE"):
        serde = source.key if side == "KEY" else source.value
        yield f"{side}_FORMAT", ast.StringLiteral(serde.format)
        for name, value in serde.properties:
            if name in _FORMAT_PROPERTIES:
                yield f"{side}_{_FORMAT_PROPERTIES[name]}", ast.StringLiteral(value)
    if len(source.schema.value) == 1 and format_named(source.value.format).wraps_or_not:
        yield WRAP, ast.BooleanLiteral(bool(source.value.wrap))
    if source.timestamp is not None:
        yield "TIMESTAMP", ast.StringLiteral(f"`{source.timestamp.name}`")
        if source.timestamp.format is not None:
            yield "TIMESTAMP_FORMAT", ast.StringLiteral(source.timestamp.format)
    if source.window is not None:
        yield "WINDOW_TYPE", ast.StringLiteral(source.window.type.value)
        if source.window.size_ms is not None:
            yield "WINDOW_SIZE", ast.StringLiteral(f"{source.window.size_ms} MILLISECONDS")
