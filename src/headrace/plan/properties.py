"""The WITH clause: which properties there are, their types, and what they say together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.model.errors import StatementError
from headrace.model.schema import Schema
from headrace.model.sources import TimestampColumn
from headrace.model.types import BIGINT, STRING, TIMESTAMP, quote
from headrace.sql import ast
from headrace.sql.parser import parse_column

# The properties of every statement that makes a source, and what values they take.
COMMON: dict[str, str] = {
    "KAFKA_TOPIC": "string",
    "PARTITIONS": "int",
    "REPLICAS": "short",
    "RETENTION_MS": "long",
    "CLEANUP_POLICY": "string",
    "TIMESTAMP": "string",
    "TIMESTAMP_FORMAT": "string",
    "VALUE_AVRO_SCHEMA_FULL_NAME": "string",
    "KEY_SCHEMA_FULL_NAME": "string",
    "VALUE_SCHEMA_FULL_NAME": "string",
    "VALUE_FORMAT": "string",
    "KEY_FORMAT": "string",
    "FORMAT": "string",
    "WRAP_SINGLE_VALUE": "boolean",
    "WRAP_SINGLE_VALUES": "boolean",
    "WRAP_SINGLE_KEYS": "boolean",
    "WRAP_SINGLE_FIELDS": "boolean",
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION": "string",
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION": "string",
    "VALUE_DELIMITER": "string",
    "KEY_DELIMITER": "string",
    "KEY_SCHEMA_ID": "int",
    "VALUE_SCHEMA_ID": "int",
}
# Those of statements that declare a source over a topic, besides.
DECLARED: dict[str, str] = {
    **COMMON,
    "WINDOW_TYPE": "string",
    "WINDOW_SIZE": "string",
    "SOURCE_CONNECTOR": "string",
    "SOURCED_BY_CONNECTOR": "string",
}

_EXPECTED = {
    "int": "a 32-bit integer",
    "short": "a 16-bit integer",
    "long": "a 64-bit integer",
    "string": "a string",
    "boolean": "true or false",
}
_BITS = {"short": 15, "int": 31, "long": 63}


@dataclass(frozen=True)
class WithClause:
    """The properties given, by their upper-case names, each of its type."""

    values: Mapping[str, object] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        value = self.values.get(name)
        return None if value is None else str(value)

    def number(self, name: str) -> int | None:
        value = self.values.get(name)
        return value if isinstance(value, int) else None

    def flag(self, name: str) -> bool | None:
        value = self.values.get(name)
        return value if isinstance(value, bool) else None

    @property
    def key_format(self) -> str | None:
        name = self.text("FORMAT") or self.text("KEY_FORMAT")
        return name and name.upper()

    @property
    def value_format(self) -> str | None:
        name = self.text("FORMAT") or self.text("VALUE_FORMAT")
        return name and name.upper()


def with_clause(properties: ast.Properties, known: Mapping[str, str]) -> WithClause:
    given = {name.upper(): literal.value for name, literal in properties}
    unknown = [name for name in given if name not in known]
    typed = {name: _typed(name, v, known[name]) for name, v in given.items() if name in known}
    if unknown:
        raise StatementError(f"Invalid config variable(s) in the WITH clause: {','.join(unknown)}")
    _check_formats(typed)
    return WithClause(typed)


def _typed(name: str, value: object, kind: str) -> object:
    match kind, value:
        case ("string", str()) | ("boolean", bool()) | (_, None):
            return value
        case ("boolean", str(text)) if text.strip().lower() in ("true", "false"):
            return text.strip().lower() == "true"
        case ("int" | "short" | "long", int() | str()) if not isinstance(value, bool):
            try:
                number = int(value)
            except ValueError:
                raise _not_a_number(name, value) from None
            if -(2 ** _BITS[kind]) <= number < 2 ** _BITS[kind]:
                return number
    java = {bool: "Boolean", int: "Integer", str: "String", float: "Double"}.get(type(value))
    raise StatementError(
        f"Invalid value {value} for property {name}: Expected value to be {_EXPECTED[kind]}, "
        f"but it was a java.lang.{java or 'Object'}"
    )


def _not_a_number(name: str, value: object) -> StatementError:
    return StatementError(f"Invalid value {value} for property {name}: Not a number of type INT")


def _check_formats(given: Mapping[str, object]) -> None:
    for side in ("KEY_FORMAT", "VALUE_FORMAT"):
        if "FORMAT" in given and side in given:
            raise StatementError(
                f"Cannot supply both '{side}' and 'FORMAT' properties, as 'FORMAT' sets both key "
                "and value formats. Either use just 'FORMAT', or use 'KEY_FORMAT' and "
                "'VALUE_FORMAT'."
            )
    if "VALUE_AVRO_SCHEMA_FULL_NAME" in given and "VALUE_SCHEMA_FULL_NAME" in given:
        raise StatementError(
            "Cannot supply both 'VALUE_AVRO_SCHEMA_FULL_NAME' and 'VALUE_SCHEMA_FULL_NAME' "
            "properties. Please only set 'VALUE_SCHEMA_FULL_NAME'."
        )


# ---------------------------------------------------------------------------------- timestamp


def timestamp_column(clause: WithClause, schema: Schema) -> TimestampColumn | None:
    """The column that gives records their time; it has to be one that can."""
    written, pattern = clause.text("TIMESTAMP"), clause.text("TIMESTAMP_FORMAT")
    if written is None:
        return None
    name = parse_column(written)
    column = schema.find(name)
    if column is None:
        raise StatementError(
            f"The TIMESTAMP column set in the WITH clause does not exist in the schema: '{name}'"
        )
    if column.type == STRING:
        if pattern is None:
            raise StatementError(
                "A String timestamp field has been specified without also specifying the "
                "timestamp_format"
            )
    elif pattern is not None:
        raise StatementError(
            "'TIMESTAMP_FORMAT' set in the WITH clause can only be used when the timestamp column "
            "is of type STRING."
        )
    elif column.type not in (BIGINT, TIMESTAMP):
        raise StatementError(
            f"Timestamp column, {quote(name)}, should be LONG(INT64), TIMESTAMP, or a String with "
            "a timestamp_format specified."
        )
    return TimestampColumn(name, pattern)
