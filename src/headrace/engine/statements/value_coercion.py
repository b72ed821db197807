"""Converts values from clients to a column's type: literals of INSERT, JSON values.

The rules are ksqlDB's strict ones: a number may widen, a text may be a time, a date or bytes; a
number never becomes a text, nor a text a number.
"""

from __future__ import annotations

import base64
import binascii
import decimal
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from headrace.model.errors import HeadraceError, StatementError
from headrace.model.types import Array, Decimal, Map, Primitive, SqlType, Struct, base_name
from headrace.plan.language.coercion import fitted
from headrace.plan.language.time_literals import parse_date, parse_time, parse_timestamp

Convert = Callable[[Any], object]


class CoercionError(Exception):
    """The value does not fit the type."""


_URL_ALPHABET = str.maketrans("-_", "+/")


def _bytes(text: str) -> bytes:
    """Base64 in either alphabet, padded or not: ksqlDB's client for Java sends it as in URLs."""
    padding = "" if text.endswith("=") else "=" * (-len(text) % 4)
    try:
        return base64.b64decode(text.translate(_URL_ALPHABET) + padding, validate=True)
    except binascii.Error:
        raise CoercionError from None


def _parsed(parse: Callable[[str], object]) -> Convert:
    def convert(text: str) -> object:
        try:
            return parse(text.strip())
        except StatementError:
            raise CoercionError from None

    return convert


_FROM_TEXT: dict[str, Convert] = {
    "STRING": lambda text: text,
    "TIMESTAMP": _parsed(parse_timestamp),
    "TIME": _parsed(parse_time),
    "DATE": _parsed(parse_date),
    "BYTES": _parsed(_bytes),
}


def _exact(number: int | decimal.Decimal, type_: Decimal) -> decimal.Decimal:
    try:
        return fitted(decimal.Decimal(number), type_)
    except ArithmeticError:
        raise CoercionError from None


# --------------------------------------------------------------------- typed values, as of SQL

_WIDENS: dict[str, frozenset[str]] = {
    "INTEGER": frozenset({"INTEGER", "BIGINT", "DECIMAL", "DOUBLE"}),
    "BIGINT": frozenset({"BIGINT", "DECIMAL", "DOUBLE"}),
    "DECIMAL": frozenset({"DECIMAL", "DOUBLE"}),
    "DOUBLE": frozenset({"DOUBLE"}),
}


def coerced(value: Any, source: SqlType, target: SqlType) -> object:
    """A value of one SQL type as a value of another; CoercionError if it cannot be."""
    if value is None or source == target:
        return value
    match source, target:
        case Array(), Array():
            return [coerced(v, source.element, target.element) for v in value]
        case Map(), Map():
            return {
                coerced(k, source.key, target.key): coerced(v, source.value, target.value)
                for k, v in value.items()
            }
        case Struct(), Struct():
            types = {f.name: f.type for f in source.fields}
            return {
                f.name: coerced(value.get(f.name), types[f.name], f.type)
                if f.name in types
                else None
                for f in target.fields
            }
    from_, to = base_name(source), base_name(target)
    if from_ == "STRING" and to in _FROM_TEXT:
        return _FROM_TEXT[to](value)
    if to not in _WIDENS.get(from_, ()):
        raise CoercionError
    if isinstance(target, Decimal):
        return _exact(value, target)
    return float(value) if to == "DOUBLE" else value


# ------------------------------------------------------------------------------ values of JSON


def _whole(bits: int) -> Convert:
    def convert(value: object) -> int:
        if type(value) is not int or not -(2**bits) <= value < 2**bits:
            raise CoercionError
        return value

    return convert


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise CoercionError
    return value


def _double(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        raise CoercionError
    return float(value)


def _decimal(target: Decimal) -> Convert:
    """Whole numbers have to fit; those with a fraction, and texts, are rounded."""
    unit = decimal.Decimal(1).scaleb(-target.scale)

    def convert(value: object) -> decimal.Decimal:
        if type(value) is int:
            return _exact(value, target)
        if isinstance(value, bool) or not isinstance(value, str | float | decimal.Decimal):
            raise CoercionError
        try:
            with decimal.localcontext() as context:
                context.prec = 100
                number = decimal.Decimal(value if isinstance(value, str) else str(value))
                return _exact(number.quantize(unit, decimal.ROUND_HALF_UP), target)
        except ArithmeticError:
            raise CoercionError from None

    return convert


def _text(name: str) -> Convert:
    parse = _FROM_TEXT[name]

    def convert(value: object) -> object:
        if type(value) is not str:
            raise CoercionError
        return parse(value)

    return convert


_FROM_JSON: dict[str, Convert] = {
    "BOOLEAN": _boolean,
    "INTEGER": _whole(31),
    "BIGINT": _whole(63),
    "DOUBLE": _double,
    **{name: _text(name) for name in _FROM_TEXT},
}


@cache
def from_json(type_: SqlType) -> Convert:
    """The conversion from a JSON value to the type; it raises CoercionError."""
    match type_:
        case Primitive(name):
            return _or_null(_FROM_JSON[name])
        case Decimal():
            return _or_null(_decimal(type_))
        case Array(element):
            return _or_null(_array(from_json(element)))
        case Map(key, value):
            return _or_null(_map(from_json(key), from_json(value)))
        case Struct(fields):
            return _or_null(_struct({f.name: from_json(f.type) for f in fields}))
    raise TypeError(f"{type_} is not the type of a value")


def _or_null(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _array(element: Convert) -> Convert:
    def convert(value: object) -> list[object]:
        if type(value) is not list:
            raise CoercionError
        return [element(v) for v in value]

    return convert


def _map(key: Convert, item: Convert) -> Convert:
    def convert(value: object) -> dict[object, object]:
        if type(value) is not dict:
            raise CoercionError
        return {key(k): item(v) for k, v in value.items()}

    return convert


def _struct(fields: Mapping[str, Convert]) -> Convert:
    def convert(value: object) -> dict[str, object]:
        if type(value) is not dict:
            raise CoercionError
        given = {field_name(k): v for k, v in value.items()}
        return {name: convert(given.get(name)) for name, convert in fields.items()}

    return convert


def field_name(text: str) -> str:
    """A name as a JSON member's spells it: in upper case unless it is quoted."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "`\"'":
        return text[1:-1].replace(text[0] * 2, text[0])
    return text.upper()


# ---------------------------------------------------------------------------------- in words

# Clients see the names of Java's classes where ksqlDB shows them.
_JAVA = {
    bool: "java.lang.Boolean",
    int: "java.lang.Integer",
    str: "java.lang.String",
    float: "java.lang.Double",
    decimal.Decimal: "java.lang.Double",
    list: "io.vertx.core.json.JsonArray",
    dict: "io.vertx.core.json.JsonObject",
}


def misfit(value: object, type_: SqlType) -> HeadraceError:
    name = _JAVA.get(type(value), type(value).__name__)
    if type(value) is int and not -(2**31) <= value < 2**31:
        name = "java.lang.Long" if -(2**63) <= value < 2**63 else "java.math.BigInteger"
    return HeadraceError(f"Can't coerce a field of type class {name} into type {type_}")
