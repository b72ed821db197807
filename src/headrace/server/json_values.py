"""Rows as JSON text, in the form of ksqlDB's REST API.

One writer per SQL type, put together once per query. Text rather than Python objects, because a
DECIMAL is a JSON number with exactly its digits, which `json` cannot write.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache, lru_cache
from json.encoder import encode_basestring
from typing import Any

from headrace.model.schema import Schema
from headrace.model.types import (
    EPOCH_DAY,
    MILLIS_PER_DAY,
    Array,
    Decimal,
    Map,
    Primitive,
    SqlType,
    Struct,
)

Writer = Callable[[Any], str]

# The calendar repeats every 400 years, so that any day has a twin that `datetime` can name.
_CYCLE_DAYS, _CYCLE_YEARS = 146_097, 400


def write_double(value: float) -> str:
    if math.isfinite(value):
        return repr(float(value))
    return '"NaN"' if math.isnan(value) else ('"Infinity"' if value > 0 else '"-Infinity"')


def _civil(days: int) -> tuple[int, int, int]:
    cycles, rest = divmod(days, _CYCLE_DAYS)
    day = date.fromordinal(EPOCH_DAY + rest)
    return day.year + cycles * _CYCLE_YEARS, day.month, day.day


def date_text(days: int) -> str:
    """ISO 8601; years past 9999 carry a sign, as Java prints them."""
    year, month, day = _civil(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def time_text(ms: int) -> str:
    """Hours and minutes, and seconds unless they are zero; ksqlDB drops the milliseconds."""
    seconds = ms // 1000
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    return f"{text}:{seconds % 60:02d}" if seconds % 60 else text


def timestamp_text(ms: int) -> str:
    days, rest = divmod(ms, MILLIS_PER_DAY)
    year, month, day = _civil(days)
    seconds, millis = divmod(rest, 1000)
    return (
        f"{year:04d}-{month:02d}-{day:02d}"
        f"T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{millis:03d}"
    )


def _quoted(text: Writer) -> Writer:
    return lambda value: f'"{text(value)}"'


_PRIMITIVES: dict[str, Writer] = {
    "BOOLEAN": lambda value: "true" if value else "false",
    "INTEGER": str,
    "BIGINT": str,
    "DOUBLE": write_double,
    "STRING": encode_basestring,
    "BYTES": lambda value: f'"{b64encode(value).decode()}"',
    "DATE": _quoted(date_text),
    "TIME": _quoted(time_text),
    "TIMESTAMP": _quoted(timestamp_text),
    "NULL": lambda _: "null",
}


def _nullable(write: Writer) -> Writer:
    return lambda value: "null" if value is None else write(value)


@cache
def writer(type_: SqlType) -> Writer:
    """Writes a value of this type, or null."""
    match type_:
        case Primitive(name):
            return _nullable(_PRIMITIVES[name])
        case Decimal():
            return _nullable(lambda value: format(value, "f"))
        case Array(element):
            item = writer(element)
            return _nullable(lambda values: f"[{','.join(map(item, values))}]")
        case Map(key, value):
            return _nullable(_map_writer(writer(key), writer(value)))
        case Struct(fields):
            members = [(f.name, encode_basestring(f.name), writer(f.type)) for f in fields]
            return _nullable(
                lambda row: (
                    "{"
                    + ",".join(f"{label}:{write(row.get(name))}" for name, label, write in members)
                    + "}"
                )
            )
    raise TypeError(f"{type_} is not the type of a value")


def _map_writer(key: Writer, value: Writer) -> Writer:
    def label(k: object) -> str:
        text = key(k)
        return text if text.startswith('"') else f'"{text}"'

    return lambda entries: (
        "{" + ",".join(f"{label(k)}:{value(v)}" for k, v in entries.items()) + "}"
    )


@lru_cache(maxsize=1000)
def row_writer(schema: Schema) -> Callable[[Sequence[object]], str]:
    """Writes the values of one row as a JSON array."""
    writers = tuple(writer(column.type) for column in schema)
    return lambda values: f"[{','.join([w(v) for w, v in zip(writers, values, strict=True)])}]"
