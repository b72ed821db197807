"""Java's arithmetic, order and equality on Python values.

ksqlDB's aggregates are Java: integers wrap around, strings order by UTF-16 code units, bytes are
signed, NaN equals itself. Where Python differs, these few functions make the difference up.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable
from typing import Any

from headrace.model.types import Array, Map, SqlType, Struct, base_name

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1


def wrap_int(value: int) -> int:
    """The value as a 32-bit integer, overflow wrapped around."""
    return ((value + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


def wrap_long(value: int) -> int:
    """The value as a 64-bit integer, overflow wrapped around."""
    return ((value + (1 << 63)) & 0xFFFFFFFFFFFFFFFF) - (1 << 63)


def divide(numerator: float, denominator: float) -> float:
    """Division of doubles: by zero it gives an infinity or NaN."""
    if denominator:
        return numerator / denominator
    if numerator == 0 or numerator != numerator:
        return math.nan
    return math.copysign(math.inf, numerator) * math.copysign(1.0, denominator)


def square_root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _greater_string(a: str, b: str) -> bool:
    # Code points and UTF-16 units order alike unless both strings leave ASCII.
    if a.isascii() or b.isascii():
        return a > b
    return a.encode("utf-16-be", "surrogatepass") > b.encode("utf-16-be", "surrogatepass")


def _greater_double(a: float, b: float) -> bool:
    if a > b:
        return True
    if a < b:
        return False
    if a == b:
        return a == 0 and math.copysign(1.0, a) > math.copysign(1.0, b)
    return a != a and b == b


_SIGNED = bytes(byte ^ 0x80 for byte in range(256))


def _greater_bytes(a: bytes, b: bytes) -> bool:
    return a.translate(_SIGNED) > b.translate(_SIGNED)


_GREATER: dict[str, Callable[[Any, Any], bool]] = {
    "STRING": _greater_string,
    "DOUBLE": _greater_double,
    "BYTES": _greater_bytes,
}


def greater(type_: SqlType) -> Callable[[object, object], bool]:
    """`compareTo(a, b) > 0` for values of the type."""
    return _GREATER.get(base_name(type_), operator.gt)


def identity(type_: SqlType) -> Callable[[object], Hashable] | None:
    """A function to something hashable that is equal where Java's `equals` says so.

    None where the value itself is that already.
    """
    if base_name(type_) == "DOUBLE" or isinstance(type_, Array | Map | Struct):
        return hashable
    return None


def hashable(value: object) -> Hashable:
    """The value as something hashable, equal where Java's `equals` says so."""
    match value:
        case float():
            # NaN is equal to itself and the two zeros differ.
            return value if value and value == value else repr(value)
        case list():
            return tuple(map(hashable, value))
        case dict():
            entries = [(key, hashable(item)) for key, item in value.items()]
            return tuple(sorted(entries, key=repr))
    same: Hashable = value
    return same
