"""A writer's schema in Kafka Connect's types, which all registry formats share.

ksqlDB reads AVRO, JSON_SR and PROTOBUF through Kafka Connect's data model: each schema becomes a
tree of a dozen types, and one set of rules says which of them may be read as which SQL type. A
format needs only say what its schemas and values are in that model; the rules are here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal as Number
from typing import Any

from headrace.formats import java_numbers as java
from headrace.model.errors import StatementError
from headrace.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
    base_name,
)

# What Connect takes a decimal's precision to be when its schema does not say.
DEFAULT_PRECISION = 64


@dataclass(frozen=True)
class Shape:
    """One node of a schema. `kind` is Connect's name of the type, `logical` what it stands for,
    `form` how it is written where a format has several ways."""

    kind: str
    logical: str = ""
    optional: bool = False
    precision: int = DEFAULT_PRECISION
    scale: int = 0
    key: Shape | None = None
    value: Shape | None = None  # of arrays and maps
    fields: tuple[tuple[str, Shape], ...] = ()
    default: object = None
    form: str = ""


class Mismatch(ValueError):
    """A schema that does not fit the declared columns."""


# Values in Connect's model: bool, int, float, str, bytes, Number for decimals, list, and dicts
# for maps and structs, those by the writer's field names.
Reader = Callable[[Any], Any]

_INT32 = ("int8", "int16", "int32")
_INT64 = (*_INT32, "int64")
_READABLE: dict[str, tuple[str, ...]] = {
    "BOOLEAN": ("boolean",),
    "INTEGER": _INT32,
    "DATE": _INT32,
    "TIME": _INT32,
    "BIGINT": _INT64,
    "TIMESTAMP": _INT64,
    "DOUBLE": ("float32", "float64"),
    "STRING": (*_INT64, "float32", "float64", "boolean", "string"),
    "BYTES": ("bytes",),
    "DECIMAL": ("bytes",),
    "ARRAY": ("array",),
    "MAP": ("map",),
    "STRUCT": ("struct",),
}
_KINDS: dict[str, str] = {
    "BOOLEAN": "boolean",
    "INTEGER": "int32",
    "DATE": "int32",
    "TIME": "int32",
    "BIGINT": "int64",
    "TIMESTAMP": "int64",
    "DOUBLE": "float64",
    "STRING": "string",
    "BYTES": "bytes",
    "DECIMAL": "bytes",
    "ARRAY": "array",
    "MAP": "map",
    "STRUCT": "struct",
}


def check_readable(type_: SqlType, shape: Shape, path: str = "") -> None:
    """Raises Mismatch, in ksqlDB's words, where a value of the shape is not read as the type."""
    if shape.kind not in _READABLE[base_name(type_)]:
        raise Mismatch(
            f"Cannot deserialize type {shape.kind} as type {_KINDS[base_name(type_)]} "
            f"for path: {path}"
        )


def reader(type_: SqlType, shape: Shape, path: str = "") -> Reader:
    """How values of a shape become values of a SQL type; Mismatch where they cannot."""
    check_readable(type_, shape, path)
    read = _reader(type_, shape, path)
    return lambda value: None if value is None else read(value)


def is_same(type_: SqlType, shape: Shape) -> bool:
    """Whether a value of the shape is, as it stands, one of the type."""
    match type_:
        case Array(element):
            return shape.value is not None and is_same(element, shape.value)
        case Map() | Struct() | Decimal():
            return False
    return base_name(type_) != "STRING" or shape.kind == "string"


def _reader(type_: SqlType, shape: Shape, path: str) -> Reader:
    match type_:
        case Array(element):
            assert shape.value is not None
            item = reader(element, shape.value, f"{path}->ARRAY")
            return lambda items: [item(x) for x in items]
        case Map(key, value):
            assert shape.key is not None and shape.value is not None
            read_key = reader(key, shape.key, f"{path}->MAP_KEY")
            read_value = reader(value, shape.value, f"{path}->MAP_VAL")
            return lambda entries: {_key(read_key(k)): read_value(v) for k, v in entries.items()}
        case Struct(fields):
            return _struct_reader(fields, shape, path)
        case Decimal(precision, scale):
            if shape.logical != "decimal":
                raise Mismatch(f"Cannot deserialize type bytes as type decimal for path: {path}")
            return lambda number: java.fit(number, precision, scale)
    if base_name(type_) == "BYTES" and shape.logical == "decimal":
        raise Mismatch(f"Cannot deserialize type decimal as type bytes for path: {path}")
    if base_name(type_) == "STRING":
        return _TEXTS.get(shape.kind, str)
    return float if base_name(type_) == "DOUBLE" else lambda value: value


def _key(value: object) -> object:
    if value is None:
        raise ValueError("Map keys must not be null")
    return value


_TEXTS: dict[str, Reader] = {
    "boolean": lambda value: "true" if value else "false",
    "float32": lambda value: float_text(value),
    "float64": java.double_text,
}


def float_text(value: float) -> str:
    """Float.toString: the fewest digits that are still this number in 32 bits."""
    if value != value or value in (float("inf"), float("-inf")):
        return java.double_text(value)
    for digits in range(1, 10):
        short = float(f"{value:.{digits}g}")
        if struct.pack(">f", short) == struct.pack(">f", value):
            return java.double_text(short)
    return java.double_text(value)


def matched_fields(fields: tuple[Field, ...], shape: Shape) -> dict[str, tuple[str, Shape]]:
    """Which of the writer's fields is which column: by name, else by its name in capitals."""
    names = {f.name for f in fields}
    matched: dict[str, tuple[str, Shape]] = {}
    for name, field_shape in shape.fields:
        target = name if name in names else name.upper()
        if target in names:
            matched[target] = (name, field_shape)
    return matched


def _struct_reader(fields: tuple[Field, ...], shape: Shape, path: str) -> Reader:
    matched = matched_fields(fields, shape)
    parts: list[tuple[str, str | None, Reader | None]] = []
    for f in fields:
        if f.name in matched:
            name, field_shape = matched[f.name]
            parts.append((f.name, name, reader(f.type, field_shape, f"{path}->{f.name}")))
        else:
            parts.append((f.name, None, None))
    return lambda row: {
        target: None if read is None else read(row.get(source)) for target, source, read in parts
    }


# ---------------------------------------------------------------- inference

_LOGICAL: dict[str, SqlType] = {"date": DATE, "time": TIME, "timestamp": TIMESTAMP}
_INFERRED: dict[str, SqlType] = {
    "int8": INTEGER,
    "int16": INTEGER,
    "int32": INTEGER,
    "int64": BIGINT,
    "float32": DOUBLE,
    "float64": DOUBLE,
    "boolean": BOOLEAN,
    "string": STRING,
    "bytes": BYTES,
}
_MAP_KEYS = frozenset({"int8", "int16", "int32", "int64", "boolean", "string"})


class _Unsupported(ValueError):
    """A type that no column can have; a field of it is left out."""


def infer_columns(shape: Shape, bare: str | None, *, keep_case: bool) -> list[Field]:
    """The columns that ksqlDB takes from a registered schema; `bare` names that of a bare value."""
    if bare is not None:
        shape = Shape("struct", fields=((bare, shape),))
    if shape.kind != "struct":
        raise StatementError(
            "Schema returned from schema registry is anonymous type. "
            "To use this schema with ksqlDB, set 'WRAP_SINGLE_VALUE=false' in the WITH clause "
            "properties."
        )
    row = infer_type(shape, keep_case=keep_case)
    assert isinstance(row, Struct)
    if not row.fields:
        raise StatementError(
            "Schema does not include any columns with types that ksqlDB supports.\n"
            f"schema: {', '.join(name for name, _ in shape.fields)}"
        )
    return list(row.fields)


def infer_type(shape: Shape, *, keep_case: bool = False) -> SqlType:
    match shape.kind:
        case "array":
            assert shape.value is not None
            return Array(infer_type(shape.value, keep_case=keep_case))
        case "map":
            assert shape.key is not None and shape.value is not None
            if shape.key.kind not in _MAP_KEYS:
                raise _Unsupported(f"Unsupported type for map key: {shape.key.kind}")
            return Map(STRING, infer_type(shape.value, keep_case=keep_case))
        case "struct":
            return Struct(tuple(_infer_fields(shape, keep_case)))
    if shape.logical == "decimal":
        return Decimal(shape.precision, shape.scale)
    if shape.kind not in _INFERRED:
        raise _Unsupported(f"Unsupported type: {shape.kind}")
    return _LOGICAL.get(shape.logical, _INFERRED[shape.kind])


def _infer_fields(shape: Shape, keep_case: bool) -> list[Field]:
    fields = []
    for name, field_shape in shape.fields:
        try:
            type_ = infer_type(field_shape, keep_case=keep_case)
        except _Unsupported:
            continue
        fields.append(Field(name if keep_case else name.upper(), type_))
    return fields


# ---------------------------------------------------------------- writing by a given schema


def writable(type_: SqlType, shape: Shape, strict: str | None = None) -> Reader:
    """How a value of a SQL type becomes one of a registered schema that a statement names.

    Fields are matched by name; the schema's other fields get their default. Where one that has
    none may not be null, and the schema's language (as messages name it) is `strict` about that,
    it is a ValueError.
    """

    def write(value: object) -> object:
        if value is None:
            value = shape.default
            if value is None and strict is not None and not shape.optional:
                raise ValueError("Invalid value: null used for required field")
            return value
        return inner(value)

    inner = _writable(type_, shape, strict)
    return write


def _writable(type_: SqlType, shape: Shape, strict: str | None) -> Reader:
    match type_:
        case Array(element) if shape.value is not None:
            item = writable(element, shape.value, strict)
            return lambda items: [item(x) for x in items]
        case Map(_, value) if shape.value is not None:
            write_value = writable(value, shape.value, strict)
            return lambda entries: {k: write_value(v) for k, v in entries.items()}
        case Struct(fields) if shape.kind == "struct":
            return _writable_struct({f.name: f.type for f in fields}, shape, strict)
        case Decimal() if shape.logical == "decimal":
            return lambda number: java.fit(number, shape.precision, shape.scale)
    if shape.kind in ("float32", "float64"):
        return float
    return lambda value: value


def _writable_struct(types: Mapping[str, SqlType], shape: Shape, strict: str | None) -> Reader:
    known = {name for name, _ in shape.fields}
    for name in types:
        if name not in known:
            raise Mismatch(f"Schema from Schema Registry misses field with name: {name}")
    parts: list[tuple[str, Reader | None, Shape]] = [
        (name, writable(types[name], s, strict) if name in types else None, s)
        for name, s in shape.fields
    ]

    def write(row: dict[str, object]) -> dict[str, object]:
        result = {}
        for name, write_field, field_shape in parts:
            if write_field is not None:
                result[name] = write_field(row.get(name))
            elif field_shape.default is not None or field_shape.optional or strict is None:
                result[name] = field_shape.default
            else:
                raise ValueError(
                    f"Missing default value for required {strict} field: [{name}]. "
                    f"This field appears in {strict} schema in Schema Registry"
                )
        return result

    return write


def decimal_bytes(value: Number) -> bytes:
    """The unscaled number in as few bytes as hold it, big-endian, as Java's BigInteger gives."""
    sign, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits)))
    unscaled = -unscaled if sign else unscaled
    size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return unscaled.to_bytes(size, "big", signed=True)


def bytes_decimal(data: bytes, scale: int) -> Number:
    unscaled = int.from_bytes(data, "big", signed=True)
    return Number((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
