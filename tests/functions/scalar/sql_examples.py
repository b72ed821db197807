"""Examples as SQL: what the documentation prints and `DESCRIBE FUNCTION` may show."""

from __future__ import annotations

import decimal
from collections.abc import Callable

from headrace.functions.declare.declaration import Example, LambdaArgument, Typed
from headrace.functions.declare.signatures import INTERVAL_UNIT, parse_type
from headrace.functions.registry import Argument, LambdaShape
from headrace.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INTEGER,
    NULL,
    STRING,
    Array,
    Decimal,
    Map,
    SqlType,
    Struct,
    base_name,
)

_UNITS = {
    1: "MILLISECONDS",
    1_000: "SECONDS",
    60_000: "MINUTES",
    3_600_000: "HOURS",
    86_400_000: "DAYS",
}


def argument_of(value: object) -> Argument:
    """The type of an example's argument, as the registry wants it."""
    if isinstance(value, LambdaArgument):
        return LambdaShape(value.text.split("=>")[0].count(",") + 1)
    return type_of(value)


def type_of(value: object) -> SqlType:
    match value:
        case Typed(_, type_):
            return parse_type(type_)
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int():
            return INTEGER if -(2**31) <= value < 2**31 else BIGINT
        case float():
            return DOUBLE
        case str():
            return STRING
        case bytes():
            return BYTES
        case decimal.Decimal():
            digits = value.as_tuple()
            scale = -int(digits.exponent)
            return Decimal(max(len(digits.digits), scale), scale)
        case list():
            return Array(_common(type_of(v) for v in value))
        case dict():
            return Map(_common(map(type_of, value)), _common(type_of(v) for v in value.values()))
    raise TypeError(f"not an example's value: {value!r}")


def _common(types: object) -> SqlType:
    return next((t for t in types if t != NULL), STRING)  # type: ignore[attr-defined]


def plain(value: object) -> object:
    """The value in the plain representation."""
    return value.value if isinstance(value, Typed) else value


def sql(name: str, example: Example) -> str:
    """The call as a user would write it."""
    return f"{name}({', '.join(map(literal, example.args))})"


def literal(value: object) -> str:
    if isinstance(value, LambdaArgument):
        return value.text
    return _literal(plain(value), type_of(value))


def _literal(value: object, type_: SqlType) -> str:
    if value is None:
        return "NULL" if type_ == NULL else f"CAST(NULL AS {type_})"
    if type_ == INTERVAL_UNIT:
        return _UNITS[value]  # type: ignore[index]
    match type_:
        case Array(element):
            return f"ARRAY[{', '.join(_literal(v, element) for v in value)}]"  # type: ignore[attr-defined]
        case Map(key, item):
            pairs = value.items()  # type: ignore[attr-defined]
            return (
                f"MAP({', '.join(f'{_literal(k, key)} := {_literal(v, item)}' for k, v in pairs)})"
            )
        case Struct(fields):
            inner = (f"{f.name} := {_literal(value[f.name], f.type)}" for f in fields)  # type: ignore[index]
            return f"STRUCT({', '.join(inner)})"
    return _WRITTEN.get(base_name(type_), str)(value)


def _text(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


_WRITTEN: dict[str, Callable[[object], str]] = {
    "DECIMAL": lambda v: f"{v:f}",
    "BOOLEAN": lambda v: str(v).upper(),
    "STRING": _text,
    "BYTES": lambda v: f"TO_BYTES('{v.hex()}', 'hex')",  # type: ignore[attr-defined]
    "DOUBLE": lambda v: f"CAST('{v}' AS DOUBLE)" if v != v or abs(v) == float("inf") else f"{v:E}",  # type: ignore[arg-type]
    "DATE": lambda v: f"FROM_DAYS({v})",
    "TIME": lambda v: f"TIMEADD(MILLISECONDS, {v}, CAST('00:00' AS TIME))",
    "TIMESTAMP": lambda v: f"FROM_UNIXTIME({v})",
}
