"""Formats as the planner sees them: which there are, what they inherit, what they can hold."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.formats import format_named
from headrace.formats.base import Feature, Side
from headrace.model.errors import StatementError
from headrace.model.schema import Column, Schema
from headrace.model.sources import Serde
from headrace.model.types import Map, quote, walk
from headrace.plan.properties import WithClause

# Where the WITH clause says what a format calls by its own name.
_PROPERTIES = {
    "key": {
        "KEY_SCHEMA_FULL_NAME": "fullSchemaName",
        "KEY_DELIMITER": "delimiter",
        "KEY_SCHEMA_ID": "schemaId",
        "KEY_PROTOBUF_NULLABLE_REPRESENTATION": "nullableRepresentation",
    },
    "value": {
        "VALUE_SCHEMA_FULL_NAME": "fullSchemaName",
        "VALUE_AVRO_SCHEMA_FULL_NAME": "fullSchemaName",
        "VALUE_DELIMITER": "delimiter",
        "VALUE_SCHEMA_ID": "schemaId",
        "VALUE_PROTOBUF_NULLABLE_REPRESENTATION": "nullableRepresentation",
    },
}


def check_format(name: str) -> None:
    format_named(name)


def inherited_properties(source: Serde, format_: str) -> dict[str, str]:
    """What a sink of the same format takes over from the left source."""
    if source.format != format_:
        return {}
    inheritable = format_named(format_).inheritable
    return {name: value for name, value in source.properties if name in inheritable}


def format_properties(
    clause: WithClause, side: str, format_: str, source: str | None
) -> dict[str, str]:
    """The format's own properties; the name of an Avro key's schema is made from `source`."""
    given = {
        own: text
        for name, own in _PROPERTIES[side].items()
        if (text := clause.text(name)) is not None
    }
    if side == "key" and format_ == "AVRO" and "fullSchemaName" not in given and source:
        given["fullSchemaName"] = f"io.confluent.ksql.avro_schemas.{_avro_name(source)}Key"
    return given


def _avro_name(source: str) -> str:
    """The name in a form that Avro takes."""
    clean = "".join(c if c.isascii() and c.isalnum() else "_" for c in source)
    return "".join(part.capitalize() for part in clean.split("_"))


def check_wrap(clause: WithClause, format_: str, single: bool) -> None:
    """The released WRAP_SINGLE_VALUE is for single fields only; all need a format that can."""
    for name in ("WRAP_SINGLE_VALUE", "WRAP_SINGLE_VALUES"):
        flag = clause.flag(name)
        if flag is None or (name == "WRAP_SINGLE_VALUES" and not single):
            continue
        wanted = Feature.WRAP if flag else Feature.UNWRAP
        if not format_named(format_).supports(wanted):
            raise StatementError(
                f"Format '{format_}' does not support '{name}' set to '{str(flag).lower()}'."
            )
        if not single:
            raise StatementError(f"'{name}' is only valid for single-field value schemas")


def check_schema(schema: Schema, key: Serde, value: Serde) -> None:
    """Refuses columns that the formats cannot hold."""
    check_key_columns(schema.key)
    # A key format that could do either is told which; others are not asked.
    choice = {Feature.WRAP, Feature.UNWRAP} <= format_named(key.format).features
    sides: list[tuple[Side, Serde, tuple[Column, ...], bool | None]] = [
        ("key", key, schema.key, key.wrap if choice else None),
        ("value", value, schema.value, value.wrap),
    ]
    for side, serde, columns, wrap in sides:
        format_named(serde.format).check(columns, side, wrap, dict(serde.properties))


def check_key_columns(columns: Iterable[Column]) -> None:
    for column in columns:
        if any(isinstance(t, Map) for t in walk(column.type)):
            raise StatementError(
                "Map keys, including types that contain maps, are not supported as they may lead "
                "to unexpected behavior due to inconsistent serialization. Key column name: "
                f"{quote(column.name)}. Column type: {column.type}. "
                "See https://github.com/confluentinc/ksql/issues/6621 for more."
            )
