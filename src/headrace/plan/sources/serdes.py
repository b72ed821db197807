"""The formats of a statement: declared, defaulted or inherited, and checked against columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace.formats import format_named
from headrace.formats.base import WITH_PROPERTIES, Feature, Format, Side
from headrace.model.errors import StatementError
from headrace.model.schema import Column, Schema
from headrace.model.settings import SETTINGS
from headrace.model.sources import Serde
from headrace.model.types import Map, quote, walk
from headrace.plan.sources.properties import WithClause
from headrace.sql import ast

SIDES: tuple[Side, Side] = ("key", "value")
# The settings that name the format of a side where the statement does not.
_DEFAULTS: dict[Side, str] = {
    "key": "ksql.persistence.default.format.key",
    "value": "ksql.persistence.default.format.value",
}


@dataclass(frozen=True)
class NamedFormat:
    """A format with the properties, by its own names, that a statement gives it."""

    format: Format
    properties: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.format.name


def default_format(side: Side, settings: Mapping[str, str]) -> str:
    setting = _DEFAULTS[side]
    name = settings.get(setting) or SETTINGS[setting].default
    if name is None:
        raise StatementError(
            f"Statement is missing the '{side.upper()}_FORMAT' property from the WITH clause. "
            f"Either provide one or set a default via the '{setting}' config."
        )
    return str(name)


def declared_format(
    statement: ast.CreateSource, clause: WithClause, side: Side, settings: Mapping[str, str]
) -> NamedFormat:
    """The format of a side of a source over a topic."""
    given = clause.key_format if side == "key" else clause.value_format
    return named_format(given or default_format(side, settings), clause, side, statement.name)


def named_format(
    name: str,
    clause: WithClause,
    side: Side,
    source: str,
    inherited: Mapping[str, str] | None = None,
) -> NamedFormat:
    """The format of that name with what the WITH clause says of it, if it takes that.

    `source` is what the statement makes: the name of an Avro key's schema is made from it.
    """
    format_ = format_named(name)
    properties = {**(inherited or {}), **_properties(clause, side, format_)}
    for own, value in format_.default_properties(side, source).items():
        properties.setdefault(own, value)
    if "schemaId" in properties and not format_.supports(Feature.INFERENCE):
        raise StatementError(
            f"{side.upper()}_FORMAT should support schema inference when {side.upper()}_SCHEMA_ID "
            f"is provided. Current format is {format_.name}."
        )
    format_.check_properties(properties)
    return NamedFormat(format_, properties)


def inherited_properties(source: Serde, format_: str) -> dict[str, str]:
    """What a sink of the same format takes over from the left source."""
    if source.format != format_:
        return {}
    inheritable = format_named(format_).inheritable
    return {name: value for name, value in source.properties if name in inheritable}


def _properties(clause: WithClause, side: Side, format_: Format) -> dict[str, str]:
    given: dict[str, str] = {}
    for suffix, own in WITH_PROPERTIES.items():
        name = f"{side.upper()}_{suffix}"
        text = clause.text(name)
        if text is None:
            continue
        if own == "nullableRepresentation":
            if own not in format_.properties:
                raise StatementError(f"Property {name} can only be enabled with protobuf format")
            text = text.lower()
        given.setdefault(own, text)
    return given


# ------------------------------------------------------------------------------------- columns


def check_schema(schema: Schema, key: Serde, value: Serde) -> None:
    """Refuses columns that the formats cannot hold."""
    check_key_columns(schema.key)
    # A key format that could do either is told which; others are not asked.
    choice = format_named(key.format).wraps_or_not
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
