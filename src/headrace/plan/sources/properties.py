"""The WITH clause: its properties, their types, and the rules between them."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headrace.formats.delimited import parse_delimiter
from headrace.model.errors import StatementError
from headrace.model.schema import Schema
from headrace.model.sources import SourceKind, TimestampColumn, WindowedKey, WindowType
from headrace.model.types import BIGINT, STRING, TIMESTAMP, quote
from headrace.plan.sources.durations import parse_duration
from headrace.plan.sources.start_from import parse_start_from
from headrace.plan.sources.time_patterns import check_pattern
from headrace.sql import ast
from headrace.sql.parser import parse_column


@dataclass(frozen=True)
class WithProperty:
    """A property of WITH: the kind of its value, and what it is for."""

    kind: str
    doc: str


def _wrap_doc(side: str) -> str:
    return (
        f"Whether a {side} of one column is a record with one field (true) or the bare value "
        "(false). CREATE STREAM|TABLE: how the topic is read, and how queries that read the source "
        f"write their single {side}s; default: `ksql.persistence.wrap.single.{side}s`. AS SELECT: "
        "how the result is written, and what queries that read it inherit; default: what the "
        "source has, in a join the left one. Such a query overrides it by "
        f"WRAP_SINGLE_{side.upper()}S or WRAP_SINGLE_FIELDS of its own. Several columns are always "
        "a record. Without effect, with a warning, on formats that leave no choice: DELIMITED, "
        "KAFKA, NONE, PROTOBUF."
    )


# The properties of every statement that makes a source, and what values they take.
COMMON: Mapping[str, WithProperty] = {
    "KAFKA_TOPIC": WithProperty(
        "string",
        "The topic of the source; that of a query's result is called like it by default.",
    ),
    "PARTITIONS": WithProperty("int", "Partitions of the topic, if it is made."),
    "REPLICAS": WithProperty("short", "Replicas of the topic, if it is made."),
    "RETENTION_MS": WithProperty("long", "How long the topic keeps records, if it is made."),
    "CLEANUP_POLICY": WithProperty("string", "`delete` or `compact`, if the topic is made."),
    "TIMESTAMP": WithProperty(
        "string",
        "The column that is the record's time (ROWTIME) instead of Kafka's timestamp.",
    ),
    "TIMESTAMP_FORMAT": WithProperty(
        "string",
        "How that column is written, if it is a string: Java's pattern letters.",
    ),
    "VALUE_AVRO_SCHEMA_FULL_NAME": WithProperty(
        "string",
        "An older name of VALUE_SCHEMA_FULL_NAME.",
    ),
    "KEY_SCHEMA_FULL_NAME": WithProperty(
        "string",
        "The full name of the key's schema in the registry, or the message to choose.",
    ),
    "VALUE_SCHEMA_FULL_NAME": WithProperty(
        "string",
        "The full name of the value's schema in the registry, or the message to choose.",
    ),
    "VALUE_FORMAT": WithProperty("string", "How values are written."),
    "KEY_FORMAT": WithProperty("string", "How keys are written."),
    "FORMAT": WithProperty("string", "Both formats at once."),
    "WRAP_SINGLE_VALUE": WithProperty(
        "boolean",
        "As WRAP_SINGLE_VALUES, but with the limits of released ksqlDB: only for a value of one "
        "column, not inherited by queries that read the source, and an error for a format that "
        "cannot do it.",
    ),
    "WRAP_SINGLE_VALUES": WithProperty("boolean", _wrap_doc("value")),
    "WRAP_SINGLE_KEYS": WithProperty("boolean", _wrap_doc("key")),
    "WRAP_SINGLE_FIELDS": WithProperty(
        "boolean",
        "Short for WRAP_SINGLE_KEYS and WRAP_SINGLE_VALUES with the same value; together with "
        "one of them it is an error.",
    ),
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION": WithProperty(
        "string",
        "How PROTOBUF keys tell null from a default: OPTIONAL or WRAPPER.",
    ),
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION": WithProperty(
        "string",
        "How PROTOBUF values tell null from a default: OPTIONAL or WRAPPER.",
    ),
    "VALUE_DELIMITER": WithProperty(
        "string",
        "What separates DELIMITED values: a character, TAB or SPACE.",
    ),
    "KEY_DELIMITER": WithProperty(
        "string",
        "What separates DELIMITED keys: a character, TAB or SPACE.",
    ),
    "KEY_SCHEMA_ID": WithProperty("int", "The id of the key's schema in the registry."),
    "VALUE_SCHEMA_ID": WithProperty("int", "The id of the value's schema in the registry."),
}
# Those of statements that declare a source over a topic, besides.
DECLARED: Mapping[str, WithProperty] = {
    **COMMON,
    "WINDOW_TYPE": WithProperty(
        "string",
        "The window that keys carry: TUMBLING, HOPPING or SESSION.",
    ),
    "WINDOW_SIZE": WithProperty("string", "Its size, as in '10 SECONDS'; not for SESSION."),
    "SOURCE_CONNECTOR": WithProperty(
        "string",
        "The connector that fills the topic; a note for people.",
    ),
    "SOURCED_BY_CONNECTOR": WithProperty("string", "The same."),
}
# Those of statements that start a query.
STARTING: Mapping[str, WithProperty] = {
    "START_FROM": WithProperty(
        "string",
        "Where the query begins to read, instead of where `auto.offset.reset` says: `earliest`, "
        "`latest`, a time as in `2026-11-17T08:00:00Z`, or offsets by partition as in "
        '`{"0": 10, "1": 0}`. Topic by topic: `{"orders": {"0": 10}, "users": "earliest"}`. '
        "Partitions and topics that it does not name begin as `auto.offset.reset` says. It is "
        "resolved when the statement is made; a restart goes on where the query was.",
    ),
}
# Those of CREATE … AS SELECT.
AS_SELECT: Mapping[str, WithProperty] = {**COMMON, **STARTING}
# Those of INSERT INTO … SELECT.
INSERTED: Mapping[str, WithProperty] = {
    "QUERY_ID": WithProperty("string", "What the query is called."),
    **STARTING,
}


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

    @property
    def topic(self) -> str:
        """The topic that a declared source must name."""
        name = self.text("KAFKA_TOPIC")
        if name is None:
            raise _refusal('Missing required property "KAFKA_TOPIC" which has no default value.')
        return name

    @property
    def window(self) -> WindowedKey | None:
        """The window that a declared source's keys carry."""
        written, size = self.text("WINDOW_TYPE"), self.text("WINDOW_SIZE")
        type_ = None if written is None else WindowType(written.upper())
        sized = type_ is not None and type_ is not WindowType.SESSION
        if type_ is not None and sized and size is None:
            raise _refusal(
                f"{type_.value} windows require 'WINDOW_SIZE' to be provided in the WITH clause. "
                "For example: 'WINDOW_SIZE'='10 SECONDS'"
            )
        if not sized and size is not None:
            raise _refusal("'WINDOW_SIZE' should not be set for SESSION windows.")
        if type_ is None:
            return None
        return WindowedKey(type_, None if size is None else parse_duration(size))


def with_clause(properties: ast.Properties, known: Mapping[str, WithProperty]) -> WithClause:
    given = {name.upper(): literal.value for name, literal in properties}
    typed = {name: _typed(name, v, known[name].kind) for name, v in given.items() if name in known}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise _refusal(f"Invalid config variable(s) in the WITH clause: {','.join(unknown)}")
    for name, value in typed.items():
        check = _CHECKS.get(name)
        if check is not None and value is not None:
            check(name, value)
    _check_together({name for name, value in typed.items() if value is not None})
    return WithClause(typed)


def _refusal(message: str) -> StatementError:
    return StatementError(f"Failed to prepare statement: {message}")


def _invalid(name: str, value: object, reason: str) -> StatementError:
    shown = str(value).lower() if isinstance(value, bool) else value
    return _refusal(f"Invalid value {shown} for property {name}: {reason}")


# -------------------------------------------------------------------------------------- types

_EXPECTED = {
    "int": "a 32-bit integer",
    "short": "a 16-bit integer",
    "long": "a 64-bit integer (i.e. long)",
    "string": "a string",
}
_BITS = {"short": 15, "int": 31, "long": 63}
_JAVA: dict[type, str] = {
    bool: "java.lang.Boolean",
    int: "java.lang.Integer",
    str: "java.lang.String",
    float: "java.lang.Double",
    decimal.Decimal: "java.math.BigDecimal",
}


def _typed(name: str, value: object, kind: str) -> object:
    match kind, value:
        case "string", str(text):
            return text.strip()
        case ("boolean", bool()) | (_, None):
            return value
        case ("boolean", str(text)) if text.strip().lower() in ("true", "false"):
            return text.strip().lower() == "true"
        case "boolean", _:
            raise _invalid(name, value, "Expected value to be either true or false")
        case ("int" | "short" | "long", int() | str()) if not isinstance(value, bool):
            return _number(name, value, kind)
    java = _JAVA.get(type(value), "java.lang.Object")
    raise _invalid(name, value, f"Expected value to be {_EXPECTED[kind]}, but it was a {java}")


def _number(name: str, value: int | str, kind: str) -> int:
    try:
        number = int(value)
    except ValueError:
        number = 2 ** _BITS["long"]
    if -(2 ** _BITS[kind]) <= number < 2 ** _BITS[kind]:
        return number
    if isinstance(value, str):
        raise _invalid(name, value, f"Not a number of type {kind.upper()}")
    raise _invalid(
        name, value, f"Expected value to be {_EXPECTED[kind]}, but it was a java.lang.Long"
    )


# ------------------------------------------------------------------------------------- values


def _one_of(*choices: str) -> Callable[[str, object], None]:
    def check(name: str, value: object) -> None:
        if str(value).upper() not in choices:
            raise _invalid(name, value, f"String must be one of: {', '.join(choices)}, null")

    return check


def _parses(parse: Callable[[str], object]) -> Callable[[str, object], None]:
    def check(name: str, value: object) -> None:
        try:
            parse(str(value))
        except (StatementError, ValueError) as e:
            raise _refusal(f"Configuration {name} is invalid: {e}") from None

    return check


def _at_least_one(what: str) -> Callable[[str, object], None]:
    def check(name: str, value: object) -> None:
        if isinstance(value, int) and value < 1:
            raise _invalid(name, value, f"{what} must be larger than 0")

    return check


def _not_empty(name: str, value: object) -> None:
    if not value:
        raise _invalid(name, value, "String must be non-empty")


def _date_pattern(name: str, value: object) -> None:
    try:
        check_pattern(str(value))
    except ValueError as e:
        raise _refusal(f"Invalid datetime format for config:{name}, reason:{e}") from None


def _automatic(name: str, value: object) -> None:
    raise StatementError(
        f"Invalid config variable in the WITH clause: {name}.\n"
        f"The {name} config is automatically inferred based on the type of source (STREAM or "
        f"TABLE).\nUsers can't set the {name} config manually."
    )


_CHECKS: dict[str, Callable[[str, object], None]] = {
    "KAFKA_TOPIC": _not_empty,
    "PARTITIONS": _at_least_one("Number of partitions"),
    "CLEANUP_POLICY": _automatic,
    "TIMESTAMP_FORMAT": _date_pattern,
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION": _one_of("OPTIONAL", "WRAPPER"),
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION": _one_of("OPTIONAL", "WRAPPER"),
    "KEY_DELIMITER": _parses(parse_delimiter),
    "VALUE_DELIMITER": _parses(parse_delimiter),
    "WINDOW_TYPE": _one_of("SESSION", "HOPPING", "TUMBLING"),
    "WINDOW_SIZE": _parses(parse_duration),
    "START_FROM": _parses(parse_start_from),
}

# ----------------------------------------------------------------------------------- together

# Properties that say how single fields of one side lie: a statement may give one of them.
WRAPPING: dict[str, tuple[str, ...]] = {
    "key": ("WRAP_SINGLE_KEYS", "WRAP_SINGLE_FIELDS"),
    "value": ("WRAP_SINGLE_VALUE", "WRAP_SINGLE_VALUES", "WRAP_SINGLE_FIELDS"),
}


def _check_together(given: set[str]) -> None:
    for side in ("KEY_FORMAT", "VALUE_FORMAT"):
        if {"FORMAT", side} <= given:
            raise _refusal(
                f"Cannot supply both '{side}' and 'FORMAT' properties, as 'FORMAT' sets both key "
                "and value formats. Either use just 'FORMAT', or use 'KEY_FORMAT' and "
                "'VALUE_FORMAT'."
            )
    if {"VALUE_AVRO_SCHEMA_FULL_NAME", "VALUE_SCHEMA_FULL_NAME"} <= given:
        raise _refusal(
            "Cannot supply both 'VALUE_AVRO_SCHEMA_FULL_NAME' and 'VALUE_SCHEMA_FULL_NAME' "
            "properties. Please only set 'VALUE_SCHEMA_FULL_NAME'."
        )
    for names in WRAPPING.values():
        twice = [name for name in names if name in given]
        if len(twice) > 1:
            raise _refusal(
                f"Duplicate setting: '{twice[0]}' and '{twice[1]}' cannot both be set, as both say "
                "how single fields are written."
            )


def check_retention(clause: WithClause, kind: SourceKind, *, windowed: bool) -> None:
    """A table's topic is compacted; only windows pass."""
    if kind is SourceKind.TABLE and not windowed and clause.number("RETENTION_MS") is not None:
        raise StatementError(
            "Invalid config variable in the WITH clause: RETENTION_MS. Non-windowed tables do not "
            "support retention."
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
