"""Converts values between rows and user-defined functions.

They are the same but for dates and times: rows hold them as integers, functions see `date`, `time`
and `datetime` (of UTC, without a zone). Results are checked: a function that does not give what it
declared fails for that row, and not somewhere later.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from numbers import Integral, Real
from typing import Any

from headrace.model.types import EPOCH_DAY, Array, Decimal, Map, Primitive, SqlType, Struct, walk

Convert = Callable[[Any], Any]

_EPOCH = datetime(1970, 1, 1)
_BITS = {"INTEGER": 31, "BIGINT": 63}
_EXACT = decimal.Context(prec=76, rounding=decimal.ROUND_HALF_UP)


def shown(type_: SqlType) -> Convert | None:
    """The conversion of a row's value for a user's function; None where none is needed."""
    if not any(isinstance(t, Primitive) and t.name in _SHOWN for t in walk(type_)):
        return None
    return _Shown(type_)


class _Shown:
    def __init__(self, type_: SqlType) -> None:
        self.type = type_

    def __call__(self, value: object) -> object:
        return _show(self.type, value)


def _show(type_: SqlType, value: Any) -> Any:
    if value is None:
        return None
    match type_:
        case Primitive(name) if name in _SHOWN:
            return _SHOWN[name](value)
        case Array(element):
            return [_show(element, item) for item in value]
        case Map(key, item_type):
            return {_show(key, k): _show(item_type, v) for k, v in value.items()}
        case Struct(fields):
            return {f.name: _show(f.type, value[f.name]) for f in fields}
    return value


def _show_date(days: int) -> date:
    return date.fromordinal(EPOCH_DAY + days)


def _show_time(milliseconds: int) -> time:
    return (_EPOCH + timedelta(milliseconds=milliseconds)).time()


def _show_timestamp(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


_SHOWN: dict[str, Convert] = {
    "DATE": _show_date,
    "TIME": _show_time,
    "TIMESTAMP": _show_timestamp,
}


def held(type_: SqlType, value: Any) -> Any:
    """Converts a function's result for a row; it raises TypeError or ValueError if it cannot."""
    if value is None:
        return None
    match type_:
        case Primitive(name):
            return _HELD[name](value)
        case Decimal(precision, scale):
            return _held_decimal(value, precision, scale)
        case Array(element):
            if isinstance(value, str | bytes | Mapping):
                raise _unexpected("an array", value)
            return [held(element, item) for item in value]
        case Map(key, item_type):
            return {held(key, k): held(item_type, v) for k, v in dict(value).items()}
        case Struct(fields):
            return _held_struct(value, fields)
    raise TypeError(f"{type_} is not the type of a value")


def _held_struct(value: Any, fields: tuple[Any, ...]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _unexpected("a dict by field name", value)
    unknown = value.keys() - {f.name for f in fields}
    if unknown:
        raise ValueError(f"the struct has no field {', '.join(sorted(map(str, unknown)))}")
    return {f.name: held(f.type, value.get(f.name)) for f in fields}


def _held_decimal(value: object, precision: int, scale: int) -> decimal.Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        raise _unexpected("a Decimal", value)
    exact = decimal.Decimal(repr(value)) if isinstance(value, float) else decimal.Decimal(value)
    if not exact.is_finite():
        raise ValueError(f"{value} is not a DECIMAL({precision}, {scale})")
    rounded = _EXACT.quantize(exact, decimal.Decimal((0, (1,), -scale)))
    if rounded.copy_abs() >= decimal.Decimal(10) ** (precision - scale):
        raise ValueError(f"{value} does not fit into DECIMAL({precision}, {scale})")
    return rounded


def _held_integer(name: str) -> Convert:
    limit = 1 << _BITS[name]

    def hold(value: object) -> int:
        if type(value) is not int and (isinstance(value, bool) or not isinstance(value, Integral)):
            raise _unexpected("an int", value)
        whole = int(value)
        if not -limit <= whole < limit:
            raise ValueError(f"{value} does not fit into {name}")
        return whole

    return hold


def _held_double(value: object) -> float:
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, Real | decimal.Decimal):
        raise _unexpected("a float", value)
    return float(value)


def _held_date(value: object) -> int:
    if not isinstance(value, date):
        raise _unexpected("a date", value)
    return value.toordinal() - EPOCH_DAY


def _held_time(value: object) -> int:
    if not isinstance(value, time):
        raise _unexpected("a time", value)
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1000 + value.microsecond // 1000


def _held_timestamp(value: object) -> int:
    if not isinstance(value, datetime):
        raise _unexpected("a datetime", value)
    moment: datetime = value
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _of_class(kind: type | tuple[type, ...], words: str) -> Convert:
    def hold(value: object) -> object:
        if not isinstance(value, kind):
            raise _unexpected(words, value)
        return value

    return hold


def _held_bytes(value: object) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _unexpected("bytes", value)
    return bytes(value)


def _unexpected(words: str, value: object) -> TypeError:
    return TypeError(f"expected {words}, got {type(value).__name__} {value!r}")


_HELD: dict[str, Convert] = {
    "BOOLEAN": _of_class(bool, "a bool"),
    "INTEGER": _held_integer("INTEGER"),
    "BIGINT": _held_integer("BIGINT"),
    "DOUBLE": _held_double,
    "STRING": _of_class(str, "a str"),
    "BYTES": _held_bytes,
    "DATE": _held_date,
    "TIME": _held_time,
    "TIMESTAMP": _held_timestamp,
}
