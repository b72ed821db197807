"""Avro schemas as columns: those that ksqlDB registers, and any other."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, TypeGuard

from headrace.formats.base import RegistrySchema
from headrace.formats.connect import DEFAULT_PRECISION, Mismatch, Shape, bytes_decimal
from headrace.model.errors import StatementError
from headrace.model.types import Array, Decimal, Field, Map, SqlType, Struct, base_name
from headrace.schemas import avro

NAMESPACE = "io.confluent.ksql.avro_schemas"
DEFAULT_NAME = f"{NAMESPACE}.KsqlDataSourceSchema"

# ---------------------------------------------------------------- schemas that ksqlDB writes

_CONNECT = "org.apache.kafka.connect.data."
_PRIMITIVES: dict[str, str] = {
    "BOOLEAN": "boolean",
    "INTEGER": "int",
    "BIGINT": "long",
    "DOUBLE": "double",
    "STRING": "string",
    "BYTES": "bytes",
}
_LOGICAL: dict[str, tuple[str, str, str]] = {
    "DATE": ("int", "Date", "date"),
    "TIME": ("int", "Time", "time-millis"),
    "TIMESTAMP": ("long", "Timestamp", "timestamp-millis"),
}
_FIRST = re.compile(r"[A-Za-z_]", re.ASCII)
_NAME = re.compile(r"\w+", re.ASCII)


def field_name(name: str) -> str:
    """A column's name as ksqlDB gives it to Avro."""
    return name.replace(".", "_")


def check_names(fields: Sequence[Field]) -> None:
    """Refuses names that Avro does not take, in its words."""
    for f in fields:
        name = field_name(f.name)
        if not name:
            raise StatementError("Schema is not compatible with Avro: Empty name")
        if not _FIRST.match(name):
            raise StatementError(
                f"Schema is not compatible with Avro: Illegal initial character: {name}"
            )
        if not _NAME.fullmatch(name):
            raise StatementError(
                f"Schema is not compatible with Avro: Illegal character in: {name}"
            )
        _check_nested(f.type)


def _check_nested(type_: SqlType) -> None:
    match type_:
        case Array(element) | Map(_, element):
            _check_nested(element)
        case Struct(fields):
            check_names(fields)


def schema_text(type_: SqlType, full_name: str) -> str:
    """The schema of a row, or of a bare value, as its JSON text. At the root nothing is null."""
    return json.dumps(_render(type_, (full_name,), None, root=True), separators=(",", ":"))


def _render(
    type_: SqlType, path: tuple[str, ...], space: str | None, *, root: bool = False
) -> avro.Json:
    """`path` makes the names of nested records unique; `space` is the enclosing namespace."""
    match type_:
        case Array(element):
            return {"type": "array", "items": _nullable(element, path, space)}
        case Map(key, value):
            full = "_".join(path)
            names = _named(full, space)
            space = full.rpartition(".")[0]
            # Connect's maps with keys that may be null, as ksqlDB's are, are arrays of entries.
            entry: avro.Object = {
                "type": "record",
                **names,
                "fields": [
                    _field("key", key, (*path, "MapKey"), space),
                    _field("value", value, (*path, "MapValue"), space),
                ],
                "connect.internal.type": "MapEntry",
            }
            return {"type": "array", "items": entry, "connect.name": full}
        case Struct(fields):
            full = "_".join(path)
            names = _named(full, space)
            space = full.rpartition(".")[0]
            parts: list[avro.Json] = [
                _field(field_name(f.name), f.type, (*path, f.name), space) for f in fields
            ]
            return {"type": "record", **names, "fields": parts, "connect.name": full}
        case Decimal(precision, scale):
            version = {} if root else {"connect.version": 1}
            return {
                "type": "bytes",
                "scale": scale,
                "precision": precision,
                **version,
                "connect.parameters": {
                    "scale": str(scale),
                    "connect.decimal.precision": str(precision),
                },
                "connect.name": f"{_CONNECT}Decimal",
                "logicalType": "decimal",
            }
    if base_name(type_) in _LOGICAL:
        primitive, name, logical = _LOGICAL[base_name(type_)]
        version = {} if root else {"connect.version": 1}
        return {
            "type": primitive,
            **version,
            "connect.name": _CONNECT + name,
            "logicalType": logical,
        }
    return _PRIMITIVES[base_name(type_)]


def _named(full: str, space: str | None) -> dict[str, str]:
    """Name and namespace, the latter only where it is not the enclosing one."""
    own, _, name = full.rpartition(".")
    return {"name": name} if own == (space or "") else {"name": name, "namespace": own}


def _nullable(type_: SqlType, path: tuple[str, ...], space: str | None) -> list[avro.Json]:
    return ["null", _render(type_, path, space)]


def _field(name: str, type_: SqlType, path: tuple[str, ...], space: str) -> avro.Object:
    return {"name": name, "type": _nullable(type_, path, space), "default": None}


# ---------------------------------------------------------------- any schema


def parse(schema: RegistrySchema) -> avro.AvroType:
    """The parsed schema with its references; ValueError if it is not one."""
    known: dict[str, avro.Named] = {}
    try:
        for _, text in schema.references:
            known = avro.parse(text, known, check_defaults=False)[1]
        return avro.parse(schema.text, known, check_defaults=False)[0]
    except avro.AvroSchemaError as e:
        raise ValueError(f"Invalid Avro schema: {e}") from e


def is_map_entry(type_: avro.AvroType) -> TypeGuard[avro.Record]:
    """Whether arrays of the type are maps in Connect."""
    return isinstance(type_, avro.Record) and (
        type_.fullname == "io.confluent.connect.avro.MapEntry"
        or type_.text("connect.internal.type") == "MapEntry"
    )


_KINDS: dict[str, str] = {
    "boolean": "boolean",
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "string": "string",
    "enum": "string",
    "bytes": "bytes",
    "fixed": "bytes",
}
_LOGICAL_SHAPES: dict[tuple[str, str], str] = {
    ("int", "date"): "date",
    ("int", "time-millis"): "time",
    ("long", "timestamp-millis"): "timestamp",
}


def shape(type_: avro.AvroType) -> Shape:
    """The type in Connect's terms; Mismatch for what Connect does not read."""
    return _shape(type_, False, None, ())


def _shape(
    type_: avro.AvroType, optional: bool, written: avro.Json, outer: tuple[avro.AvroType, ...]
) -> Shape:
    """`written` is the default in the schema's JSON; null is as good as none."""
    default = _default(type_, written)
    match type_:
        case avro.Union():
            nullable = optional or any(b.kind == "null" for b in type_.branches)
            if (branch := type_.not_null) is not None:
                return _shape(branch, nullable, written, outer)
            members = tuple(
                (member_name(b), _shape(b, True, None, outer))
                for b in type_.branches
                if b.kind != "null"
            )
            return Shape("struct", optional=nullable, fields=members, default=default)
        case avro.Array(items=items) if is_map_entry(items):
            outer = _inside(items, outer)
            entry = {f.name: f for f in items.fields}
            if set(entry) != {"key", "value"}:
                raise Mismatch(
                    "Found map encoded as array of key-value pairs, but array "
                    "elements do not match the expected format."
                )
            key, value = (_field_shape(entry[k], outer) for k in ("key", "value"))
            return Shape("map", optional=optional, key=key, value=value, default=default)
        case avro.Array(items=items):
            value = _shape(items, False, None, outer)
            return Shape("array", optional=optional, value=value, default=default)
        case avro.Map(values=values):
            value = _shape(values, False, None, outer)
            key = Shape("string")
            return Shape("map", optional=optional, key=key, value=value, default=default)
        case avro.Record():
            outer = _inside(type_, outer)
            fields = tuple((f.name, _field_shape(f, outer)) for f in type_.fields)
            return Shape("struct", optional=optional, fields=fields, default=default)
        case avro.Primitive(name="null"):
            raise Mismatch("Standalone null schemas are not supported by this converter")
    if type_.is_decimal:
        precision = type_.number("precision", DEFAULT_PRECISION)
        scale = type_.number("scale")
        return Shape("bytes", "decimal", optional, precision, scale, default=default)
    kind = _KINDS[type_.kind]
    if type_.kind == "int" and not type_.logical:
        kind = type_.text("connect.type") or kind
    logical = _LOGICAL_SHAPES.get((type_.kind, type_.logical), "")
    return Shape(kind, logical, optional, default=default)


def _inside(record: avro.Record, outer: tuple[avro.AvroType, ...]) -> tuple[avro.AvroType, ...]:
    if any(record is o for o in outer):
        raise Mismatch(f"Cyclic schemas are not supported: {record.fullname}")
    return (*outer, record)


def _field_shape(field: avro.AvroField, outer: tuple[avro.AvroType, ...]) -> Shape:
    return _shape(field.type, False, field.default, outer)


def _default(type_: avro.AvroType, written: avro.Json) -> object:
    """What a default in a schema's JSON stands for, in Connect's terms; None if there is none, or
    none of the type: such a schema can be read by all the same."""
    try:
        return _default_value(type_, written)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _default_value(type_: avro.AvroType, written: Any) -> Any:
    if written is None:
        return None
    match type_:
        case avro.Union():
            # A default is one of the union's first branch; some write it for another.
            if type_.not_null is not None:
                return _default_value(type_.not_null, written)
            first = type_.branches[0]
            return {member_name(first): _default_value(first, written)}
        case avro.Record():
            return {
                f.name: _default_value(f.type, written.get(f.name, f.default)) for f in type_.fields
            }
        case avro.Array(items=items):
            values = [_default_value(items, item) for item in written]
            return {e["key"]: e["value"] for e in values} if is_map_entry(items) else values
        case avro.Map(values=inner):
            return {key: _default_value(inner, item) for key, item in written.items()}
        case avro.Primitive(name="float" | "double"):
            return float(written)
    if type_.kind in ("bytes", "fixed"):
        data = written.encode("latin-1")  # each character is a byte
        return bytes_decimal(data, type_.number("scale")) if type_.is_decimal else data
    return written


def member_name(branch: avro.AvroType) -> str:
    """What Connect calls the field of a union's branch."""
    return branch.name if isinstance(branch, avro.Named) else branch.kind
