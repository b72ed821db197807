"""Converts records between a test file's notation and bytes.

A test file writes a record's key and value as JSON. JSON and DELIMITED take it as it stands, so
that a file can hold broken records too; the other formats read it by the schema of the topic.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Context
from decimal import Decimal as Number

from headrace.formats.base import Format, Layout, RegistryFormat, RegistrySchema
from headrace.formats.json import text as jackson
from headrace.formats.wire_format import HEADER_SIZE, header
from headrace.model.errors import HeadraceError
from headrace.model.schema import Column, Namespace
from headrace.model.types import Array, Decimal, Map, SqlType, Struct, base_name
from headrace.testing.cases import Json, Window

_EXACT = Context(prec=100)


@dataclass(frozen=True)
class CaseCodec:
    """Converts one side of a topic's records from a file's notation to bytes, and back."""

    encode: Callable[[Json], bytes | None]
    decode: Callable[[bytes | None], Json]


def codec_of(format_: Format, layout: Layout) -> CaseCodec:
    special = _SPECIAL.get(format_.name)
    if not layout.columns:
        as_it_stands = layout.side == "value" and special in (_json, _delimited)
        encode = special(layout).encode if special and as_it_stands else lambda value: None
        return CaseCodec(encode, lambda data: None)
    return special(layout) if special is not None else _by_schema(format_, layout)


def written_layout(
    format_: RegistryFormat, layout: Layout, id_: int, found: RegistrySchema
) -> Layout:
    """The layout of records with a schema that existed before the source."""
    namespace = Namespace.KEY if layout.side == "key" else Namespace.VALUE
    fields = format_.columns_from_registry(
        found, layout.side, layout.wrapped, dict(layout.properties), keep_case=True
    )
    columns = tuple(Column(f.name, f.type, namespace) for f in fields)
    return replace(layout, columns=columns, schema_id=id_, physical=found)


# --------------------------------------------------------------------------- text as it stands


def _json(layout: Layout) -> CaseCodec:
    return CaseCodec(_dump, _parse)


def _registered_json(layout: Layout) -> CaseCodec:
    assert layout.schema_id is not None
    prefix = header(layout.schema_id)

    type_ = layout.type

    def encode(value: Json) -> bytes | None:
        text = _dump(_respelled(value, type_))
        return None if text is None else prefix + text

    return CaseCodec(encode, lambda data: _parse(None if data is None else data[HEADER_SIZE:]))


def _respelled(value: Json, type_: SqlType) -> Json:
    """The value with fields spelled as the schema spells them: a writer would do so."""
    match type_, value:
        case Array(element), list():
            return [_respelled(item, element) for item in value]
        case Map(_, element), dict():
            return {key: _respelled(item, element) for key, item in value.items()}
        case Struct(fields), dict():
            spelled = {f.name.upper(): f for f in fields} | {f.name: f for f in fields}
            respelled = {}
            for name, item in value.items():
                field = spelled.get(name) or spelled.get(name.upper())
                if field is None:
                    respelled[name] = item
                else:
                    respelled[field.name] = _respelled(item, field.type)
            return respelled
    return value


def _dump(value: Json) -> bytes | None:
    return None if value is None else jackson.dump(value).encode()


def _parse(data: bytes | None) -> Json:
    return None if data is None else json.loads(data, parse_float=Number)


def _delimited(layout: Layout) -> CaseCodec:
    return CaseCodec(
        lambda value: None if value is None else str(value).encode(),
        lambda data: None if data is None else data.decode(),
    )


# ------------------------------------------------------------------------------- by the schema


def _by_schema(format_: Format, layout: Layout) -> CaseCodec:
    codec = format_.python(layout)

    def encode(value: Json) -> bytes | None:
        if value is None:
            return None
        row = from_json(value, layout.type)
        return codec.encode(row if layout.wrapped else {layout.columns[0].name: row})  # type: ignore[arg-type]

    def decode(data: bytes | None) -> Json:
        row = codec.decode(data)
        if row is None:
            return None
        return to_json(row if layout.wrapped else row[layout.columns[0].name], layout.type)

    return CaseCodec(encode, decode)


_SPECIAL: Mapping[str, Callable[[Layout], CaseCodec]] = {
    "JSON": _json,
    "JSON_SR": _registered_json,
    "DELIMITED": _delimited,
}


def from_json(value: Json, type_: SqlType) -> object:
    """A value of a test file as a value of a type."""
    if value is None:
        return None
    try:
        match type_:
            case Array(element):
                return [from_json(v, element) for v in value]
            case Map(key, item):
                return {from_json(k, key): from_json(v, item) for k, v in value.items()}
            case Struct(fields):
                there = {k.upper(): v for k, v in value.items()}
                return {f.name: from_json(there.get(f.name.upper()), f.type) for f in fields}
            case Decimal(_, scale):
                return Number(str(value)).quantize(Number(1).scaleb(-scale), context=_EXACT)
        return _FROM_JSON[base_name(type_)](value)
    except (ValueError, TypeError, AttributeError, ArithmeticError) as e:
        raise HeadraceError(f"A record of the test does not fit {type_}: {value} ({e})") from None


_FROM_JSON: Mapping[str, Callable[[Json], object]] = {
    "BOOLEAN": bool,
    "INTEGER": int,
    "BIGINT": int,
    "DOUBLE": float,
    "STRING": str,
    "BYTES": base64.b64decode,
    "DATE": int,
    "TIME": int,
    "TIMESTAMP": int,
}


def to_json(value: object, type_: SqlType) -> Json:
    """A value of a type as a test file writes it."""
    match type_, value:
        case _, None:
            return None
        case Array(element), list():
            return [to_json(v, element) for v in value]
        case Map(_, item), dict():
            return {str(k): to_json(v, item) for k, v in value.items()}
        case Struct(fields), dict():
            return {f.name: to_json(value.get(f.name), f.type) for f in fields}
        case _, bytes():
            return base64.b64encode(value).decode()
    return value


# ------------------------------------------------------------------------------------- windows


def with_window(key: bytes | None, window: Window | None) -> bytes | None:
    """A key as it lies in the topic of a windowed source."""
    if window is None:
        return key
    bounds = [window.start]
    if window.session:
        bounds = [window.end or window.start, window.start]
    return (key or b"") + b"".join(b.to_bytes(8, "big", signed=True) for b in bounds)


def split_window(
    key: bytes | None, session: bool, size_ms: int | None
) -> tuple[bytes | None, Window | None]:
    """The key without its window, and the window; the reverse of `with_window`."""
    length = 16 if session else 8
    if key is None or len(key) < length:
        return key, None
    tail = key[-length:]
    bounds = [int.from_bytes(tail[i : i + 8], "big", signed=True) for i in range(0, length, 8)]
    start = bounds[-1]
    end = bounds[0] if session else (start + size_ms if size_ms is not None else None)
    return key[:-length], Window(start, end, session)
