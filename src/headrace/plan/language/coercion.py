"""The common type of a list of expressions: of an array, a map's keys or values, or IN.

Expressions are taken in order; each may widen the type found so far. Literals are more flexible
than other expressions: a number may become a string, a string a number, a boolean or a time.
"""

from __future__ import annotations

import base64
import binascii
import decimal
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.model.errors import StatementError
from headrace.model.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    NULL,
    NUMERIC_RANK,
    STRING,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
    base_name,
    is_numeric,
)
from headrace.plan.language.casts import decimal_of, widest_decimal
from headrace.plan.language.expressions import Cast, Expression, Literal
from headrace.plan.language.messages import text
from headrace.plan.language.time_literals import parse_date, parse_time, parse_timestamp
from headrace.sql import ast

Bind = Callable[[ast.Expression], Expression]

# From each family: those it turns into by itself, and those its literals turn into besides.
_STRICT: dict[str, frozenset[str]] = {
    "INTEGER": frozenset({"BIGINT", "DECIMAL", "DOUBLE"}),
    "BIGINT": frozenset({"DECIMAL", "DOUBLE"}),
    "DECIMAL": frozenset({"DECIMAL", "DOUBLE"}),
    "STRING": frozenset({"TIMESTAMP", "TIME", "DATE", "BYTES"}),
}
_LITERAL: dict[str, frozenset[str]] = {
    "STRING": frozenset({"BOOLEAN", "INTEGER", "BIGINT", "DECIMAL", "DOUBLE"}),
    **dict.fromkeys(
        ("BOOLEAN", "INTEGER", "BIGINT", "DECIMAL", "DOUBLE", "TIMESTAMP", "TIME", "DATE"),
        frozenset({"STRING"}),
    ),
}


@dataclass(frozen=True)
class Coerced:
    """Expressions of one type; `type` is None if all are null."""

    type: SqlType | None
    items: tuple[Expression, ...]


class Mismatch(StatementError):
    """Two expressions of a list that have no type in common."""


def coerce(items: Sequence[ast.Expression], bind: Bind) -> Coerced:
    bound = [bind(item) for item in items]
    common: SqlType | None = None
    for item, typed in zip(items, bound, strict=True):
        common = _common(item, typed.type, common, bind)
    if common is None:
        return Coerced(None, tuple(bound))
    return Coerced(common, tuple(convert(e, common) for e in bound))


def convert(expression: Expression, target: SqlType) -> Expression:
    """The expression as a value of `target`: a literal at once, anything else by a cast."""
    if expression.type == target:
        return expression
    if isinstance(expression, Literal):
        return Literal(target, literal_value(expression.value, expression.type, target))
    return Cast(target, expression)


# -------------------------------------------------------------------------- finding the type


def _common(
    item: ast.Expression, type_: SqlType, target: SqlType | None, bind: Bind
) -> SqlType | None:
    if target is None:
        return None if type_ == NULL else type_
    if type_ == NULL:
        return target
    match item:
        case ast.CreateArray(items):
            with_elements = _structured(item, type_, target, Array)
            return Array(with_elements(target, lambda t: _widened(t.element, items, bind)))
        case ast.CreateMap(entries):
            checked = _structured(item, type_, target, Map)
            keys = checked(target, lambda t: _widened(t.key, [k for k, _ in entries], bind))
            values = checked(target, lambda t: _widened(t.value, [v for _, v in entries], bind))
            return Map(keys, values)
        case ast.CreateStruct():
            checked = _structured(item, type_, target, Struct)
            result: SqlType = checked(target, lambda t: _common_struct(item, t, bind))
            return result
        case ast.StringLiteral(value=value) if is_numeric(target):
            return _numeric_common(value, target)
        case ast.StringLiteral(value=value) if target == BOOLEAN:
            literal_value(value, STRING, BOOLEAN)
            return target
    lax = isinstance(item, ast.Literal)
    common = coercible(type_, target, lax) or coercible(target, type_, lax)
    if common is None:
        raise _mismatch(item, type_, target)
    return common


def _structured(
    item: ast.Expression, type_: SqlType, target: SqlType, family: type[SqlType]
) -> Callable[..., SqlType]:
    """Runs a step of a nested constructor; what fails inside is reported for the whole of it."""

    def run(wanted: SqlType, step: Callable[..., SqlType]) -> SqlType:
        if not isinstance(wanted, family):
            raise _mismatch(item, type_, target)
        try:
            return step(wanted)
        except Mismatch:
            raise _mismatch(item, type_, target) from None

    return run


def _widened(target: SqlType, items: Sequence[ast.Expression], bind: Bind) -> SqlType:
    common: SqlType | None = target
    for item in items:
        common = _common(item, bind(item).type, common, bind)
    return common or target


def _common_struct(item: ast.CreateStruct, target: Struct, bind: Bind) -> Struct:
    values = dict(item.fields)
    names = dict.fromkeys((*values, *(f.name for f in target.fields)))
    fields = []
    for name in names:
        wanted, value = target.field(name), values.get(name)
        if value is None:
            assert wanted is not None
            type_: SqlType | None = wanted.type
        else:
            type_ = _common(value, bind(value).type, wanted.type if wanted else None, bind)
        fields.append(Field(name, type_ or NULL))
    return Struct(tuple(fields))


def _numeric_common(value: str, target: SqlType) -> SqlType:
    source = _number_type(value, target)
    if DOUBLE in (source, target):
        return DOUBLE
    if isinstance(source, Decimal) or isinstance(target, Decimal):
        return widest_decimal(source, target)
    return max(target, source, key=lambda t: NUMERIC_RANK[base_name(t)])


def _number_type(value: str, target: SqlType) -> SqlType:
    try:
        number = decimal.Decimal(value.strip())
    except decimal.InvalidOperation:
        raise _invalid(value, target) from None
    if not number.is_finite():
        raise _invalid(value, target)
    if not set(value) & set(".eE"):
        for type_, bits in ((INTEGER, 31), (BIGINT, 63)):
            if -(2**bits) <= number < 2**bits:
                return type_
    return decimal_of(number)


def coercible(source: SqlType, target: SqlType, lax: bool) -> SqlType | None:
    """The type that a `source` has when it stands where a `target` is wanted, if it may."""
    match source, target:
        case Array(), Array():
            element = coercible(source.element, target.element, lax)
            return element and Array(element)
        case Map(), Map():
            key = coercible(source.key, target.key, lax)
            value = coercible(source.value, target.value, lax)
            return Map(key, value) if key and value else None
        case Struct(), Struct():
            return _coercible_struct(source, target, lax)
    if source == target:
        return target
    from_, to = base_name(source), base_name(target)
    if to in _STRICT.get(from_, ()):
        return widest_decimal(source, target) if to == "DECIMAL" else target
    return target if lax and to in _LITERAL.get(from_, ()) else None


def _coercible_struct(source: Struct, target: Struct, lax: bool) -> Struct | None:
    names = dict.fromkeys(f.name for f in (*source.fields, *target.fields))
    fields = []
    for name in names:
        given, wanted = source.field(name), target.field(name)
        if given is None or wanted is None:
            type_: SqlType | None = (given or wanted).type  # type: ignore[union-attr]
        else:
            type_ = coercible(given.type, wanted.type, lax)
        if type_ is None:
            return None
        fields.append(Field(name, type_))
    return Struct(tuple(fields))


def _mismatch(item: ast.Expression, source: SqlType, target: SqlType) -> Mismatch:
    return Mismatch(
        f"operator does not exist: {target} = {source} ({text(item)})\n"
        "Hint: You might need to add explicit type casts."
    )


def _invalid(value: object, target: SqlType) -> StatementError:
    return StatementError(f'invalid input syntax for type {base_name(target)}: "{value}".')


# ------------------------------------------------------------------------- literals as others


def literal_value(value: object, source: SqlType, target: SqlType) -> object:
    """A literal's value in the representation of another type."""
    if value is None or source == target:
        return value
    if base_name(target) == "STRING":
        return string_value(value)
    try:
        if isinstance(value, str):
            return _PARSERS[base_name(target)](value.strip(), target)
        if isinstance(target, Decimal):
            return fitted(decimal.Decimal(str(value)), target)
        return _NUMBERS[base_name(target)](value)
    except (ValueError, KeyError, ArithmeticError, binascii.Error):
        raise _invalid(value, target) from None


def string_value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case decimal.Decimal():
            return format(value, "f")
    return str(value)


def fitted(number: decimal.Decimal, target: Decimal) -> decimal.Decimal:
    """The number with the target's scale; ArithmeticError if digits would be lost."""
    with decimal.localcontext() as context:
        context.prec = max(target.precision, len(number.as_tuple().digits)) + 1
        context.traps[decimal.Inexact] = True
        result = number.quantize(decimal.Decimal(1).scaleb(-target.scale))
    if abs(result) >= decimal.Decimal(10) ** (target.precision - target.scale):
        raise ArithmeticError(f"{number} does not fit {target}")
    return result


def parse_boolean(value: str) -> bool:
    """`true`, `yes`, `false`, `no`, or the start of one of them."""
    lowered = value.lower()
    for words, meaning in ((("true", "yes"), True), (("false", "no"), False)):
        if lowered and any(word.startswith(lowered) for word in words):
            return meaning
    raise ValueError(value)


def _integer(bits: int) -> Callable[[str, SqlType], int]:
    def parse(value: str, target: SqlType) -> int:
        number = int(value)
        if not -(2**bits) <= number < 2**bits or not value.lstrip("+-").isascii():
            raise ValueError(value)
        return number

    return parse


def _decimal(value: str, target: SqlType) -> decimal.Decimal:
    assert isinstance(target, Decimal)
    return fitted(decimal.Decimal(value), target)


_PARSERS: dict[str, Callable[[str, SqlType], object]] = {
    "BOOLEAN": lambda value, target: parse_boolean(value),
    "INTEGER": _integer(31),
    "BIGINT": _integer(63),
    "DECIMAL": _decimal,
    "DOUBLE": lambda value, target: float(value),
    "TIMESTAMP": lambda value, target: parse_timestamp(value),
    "TIME": lambda value, target: parse_time(value),
    "DATE": lambda value, target: parse_date(value),
    "BYTES": lambda value, target: base64.b64decode(value, validate=True),
}
_NUMBERS: dict[str, Callable[..., object]] = {"BIGINT": int, "INTEGER": int, "DOUBLE": float}
