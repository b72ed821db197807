"""The casts that exist, and the result types of arithmetic."""

from __future__ import annotations

import decimal

from headrace.model.errors import StatementError
from headrace.model.types import (
    EXACT_DECIMALS,
    NULL,
    NUMERIC_RANK,
    STRING,
    Array,
    Decimal,
    Map,
    SqlType,
    Struct,
    base_name,
    is_numeric,
    wider_decimal,
)

# From each family of types: the families it can be cast to, besides its very own type.
_CASTS: dict[str, frozenset[str]] = {
    source: frozenset(targets.split())
    for source, targets in {
        "BOOLEAN": "STRING",
        "INTEGER": "BIGINT DECIMAL DOUBLE STRING",
        "BIGINT": "INTEGER DECIMAL DOUBLE STRING",
        "DECIMAL": "INTEGER BIGINT DECIMAL DOUBLE STRING",
        "DOUBLE": "INTEGER BIGINT DECIMAL STRING",
        "STRING": "BOOLEAN INTEGER BIGINT DECIMAL DOUBLE TIMESTAMP TIME DATE BYTES",
        "ARRAY": "ARRAY STRING",
        "MAP": "MAP STRING",
        "STRUCT": "STRUCT STRING",
        "TIMESTAMP": "STRING TIME DATE",
        "DATE": "TIMESTAMP STRING",
        "TIME": "STRING",
    }.items()
}


def check_cast(source: SqlType, target: SqlType) -> None:
    if not _castable(source, target):
        raise StatementError(f"Cast of {source} to {target} is not supported")


def _castable(source: SqlType, target: SqlType) -> bool:
    if source in (target, NULL):
        return True
    if base_name(target) not in _CASTS.get(base_name(source), ()):
        return False
    match source, target:
        case Array(), Array():
            return _castable(source.element, target.element)
        case Map(), Map():
            return _castable(source.key, target.key) and _castable(source.value, target.value)
        case Struct(), Struct():
            shared = ((f.type, target.field(f.name)) for f in source.fields)
            return all(to is None or _castable(type_, to.type) for type_, to in shared)
    return True


def can_cast_implicitly(source: SqlType, target: SqlType) -> bool:
    """Whether values of `source` may be written where `target` is declared."""
    match source, target:
        case Decimal(), Decimal():
            whole = source.precision - source.scale <= target.precision - target.scale
            return whole and source.scale <= target.scale
        case _ if is_numeric(source) and is_numeric(target):
            return NUMERIC_RANK[base_name(source)] <= NUMERIC_RANK[base_name(target)]
    return source == target


# ---------------------------------------------------------------------------------- arithmetic


def as_decimal(type_: SqlType) -> Decimal:
    if isinstance(type_, Decimal):
        return type_
    if type_ in EXACT_DECIMALS:
        return EXACT_DECIMALS[type_]
    raise StatementError(f"Cannot convert {base_name(type_)} to DECIMAL.")


def widest_decimal(a: SqlType, b: SqlType) -> Decimal:
    """The smallest decimal type that holds all values of both."""
    return wider_decimal(as_decimal(a), as_decimal(b))


def decimal_of(value: decimal.Decimal) -> Decimal:
    """The type of a literal: its digits; a leading zero counts as one."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    if abs(value) < 1:
        return Decimal(scale + 1, scale)
    return Decimal(len(digits) + max(exponent, 0), scale)


def arithmetic_type(op: str, left: SqlType, right: SqlType) -> SqlType:
    """The type of `left op right`."""
    if NULL in (left, right):
        a, b = ("null" if t == NULL else str(t) for t in (left, right))
        raise StatementError(f"Arithmetic on types {a} and {b} are not supported.")
    if op == "+" and left == right == STRING:
        return STRING
    if not (is_numeric(left) and is_numeric(right)):
        raise StatementError(f"Unsupported arithmetic types. {base_name(left)} {base_name(right)}")
    wider = max(left, right, key=lambda t: NUMERIC_RANK[base_name(t)])
    if not isinstance(wider, Decimal):
        return wider
    return _DECIMAL_RESULTS[op](as_decimal(left), as_decimal(right))


def _sum(a: Decimal, b: Decimal) -> Decimal:
    scale = max(a.scale, b.scale)
    return Decimal(scale + max(a.precision - a.scale, b.precision - b.scale) + 1, scale)


def _quotient(a: Decimal, b: Decimal) -> Decimal:
    scale = max(6, a.scale + b.precision + 1)
    return Decimal(a.precision - a.scale + b.scale + scale, scale)


def _remainder(a: Decimal, b: Decimal) -> Decimal:
    scale = max(a.scale, b.scale)
    return Decimal(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)


_DECIMAL_RESULTS = {
    "+": _sum,
    "-": _sum,
    "*": lambda a, b: Decimal(a.precision + b.precision + 1, a.scale + b.scale),
    "/": _quotient,
    "%": _remainder,
}
