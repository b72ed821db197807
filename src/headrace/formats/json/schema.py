"""JSON Schema: the one that ksqlDB registers for given columns, and any that others did."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headrace.formats.connect import DEFAULT_PRECISION, Mismatch, Shape
from headrace.model.types import Array, Decimal, Field, Map, SqlType, Struct, base_name
from headrace.schemas import json_schema

# ---------------------------------------------------------------- schemas that ksqlDB writes

_CONNECT = "org.apache.kafka.connect.data."
_PRIMITIVES: dict[str, dict[str, str]] = {
    "BOOLEAN": {"type": "boolean"},
    "INTEGER": {"type": "integer", "connect.type": "int32"},
    "BIGINT": {"type": "integer", "connect.type": "int64"},
    "DOUBLE": {"type": "number", "connect.type": "float64"},
    "STRING": {"type": "string"},
    "BYTES": {"type": "string", "connect.type": "bytes"},
}
_LOGICAL: dict[str, tuple[str, str]] = {
    "DATE": ("Date", "int32"),
    "TIME": ("Time", "int32"),
    "TIMESTAMP": ("Timestamp", "int64"),
}


def schema_text(type_: SqlType, *, wrapped: bool) -> str:
    """The schema of a row, which is never null, or of a bare value, which may be."""
    schema = _render(type_) if wrapped else _nullable(type_)
    return json.dumps(schema, separators=(",", ":"))


def _nullable(type_: SqlType) -> dict[str, object]:
    return {"oneOf": [{"type": "null"}, _render(type_)]}


def _properties(fields: tuple[Field, ...]) -> dict[str, object]:
    # JSON objects have no order, so that of the columns is kept beside.
    return {f.name: {"connect.index": i, **_nullable(f.type)} for i, f in enumerate(fields)}


def _render(type_: SqlType) -> dict[str, object]:
    match type_:
        case Array(element):
            return {"type": "array", "items": _nullable(element)}
        case Map(key, value):
            # Connect's maps with keys that may be null, as ksqlDB's are, are arrays of entries.
            entry = _properties((Field("key", key), Field("value", value)))
            items = {"type": "object", "properties": entry}
            return {"type": "array", "connect.type": "map", "items": items}
        case Struct(fields):
            return {"type": "object", "properties": _properties(fields)}
        case Decimal(precision, scale):
            return {
                "type": "number",
                "title": f"{_CONNECT}Decimal",
                "connect.version": 1,
                "connect.type": "bytes",
                "connect.parameters": {
                    "scale": str(scale),
                    "connect.decimal.precision": str(precision),
                },
            }
    if base_name(type_) in _LOGICAL:
        name, kind = _LOGICAL[base_name(type_)]
        return {
            "type": "integer",
            "title": _CONNECT + name,
            "connect.version": 1,
            "connect.type": kind,
        }
    return dict(_PRIMITIVES[base_name(type_)])


# ---------------------------------------------------------------- any schema

UNION_FIELD = "io.confluent.connect.json.OneOf.field."
_TITLES = {f"{_CONNECT}{name}": name.lower() for name in ("Decimal", "Date", "Time", "Timestamp")}


def parse(text: str, references: tuple[tuple[str, str], ...] = ()) -> Shape:
    """The schema in Connect's terms; ValueError for what is no schema or Connect cannot read."""
    try:
        root = json_schema.parse(text)
        others = {name: json_schema.parse(other) for name, other in references}
        return _Reader(root, others).shape(root, optional=False)
    except (KeyError, TypeError, AttributeError, RecursionError) as e:
        raise ValueError(f"Invalid JSON schema: {e}") from e


class _Reader:
    def __init__(self, root: Any, others: Mapping[str, Any]) -> None:
        self._root = root
        self._others = others
        self._following: list[str] = []

    def shape(self, schema: Any, *, optional: bool) -> Shape:
        if schema is True or schema == {}:
            return Shape("variant", optional=optional)
        if "$ref" in schema:
            return self._referred(schema["$ref"], optional)
        for word in ("oneOf", "anyOf"):
            if word in schema:
                return self._union(schema[word], optional, schema)
        if "allOf" in schema:
            return self._all_of(schema, optional)
        kind = schema.get("type")
        if isinstance(kind, list):
            return self._union([{**schema, "type": k} for k in kind], optional, schema)
        if "enum" in schema or "const" in schema:
            return Shape("string", optional=optional, default=schema.get("default"))
        if kind is None:
            kind = "object" if "properties" in schema else None
        match kind:
            case "array":
                return self._array(schema, optional)
            case "object":
                return self._object(schema, optional)
        return _leaf(schema, kind, optional)

    def _referred(self, reference: str, optional: bool) -> Shape:
        if reference in self._following:
            raise Mismatch(f"Cyclic schemas are not supported: {reference}")
        place, _, pointer = reference.partition("#")
        root = self._others[place] if place else self._root
        found = json_schema.pointed(root, pointer)
        if found is None:
            raise KeyError(reference)
        self._following.append(reference)
        try:
            return self.shape(found, optional=optional)
        finally:
            self._following.pop()

    def _union(self, members: list[Any], optional: bool, schema: Any) -> Shape:
        others = [m for m in members if m.get("type") != "null"]
        nullable = optional or len(others) < len(members)
        if len(others) == 1:
            return self.shape(others[0], optional=nullable)
        fields = tuple(
            (f"{UNION_FIELD}{i}", self.shape(m, optional=True)) for i, m in enumerate(others)
        )
        default = schema.get("default")
        return Shape("struct", optional=nullable, fields=fields, default=default, form="union")

    def _all_of(self, schema: Any, optional: bool) -> Shape:
        members = schema["allOf"]
        shapes = [self.shape(m, optional=optional) for m in members]
        fields = dict(f for s in shapes if s.kind == "struct" for f in s.fields)
        if fields:
            return Shape("struct", optional=optional, fields=tuple(fields.items()))
        return shapes[0]

    def _array(self, schema: Any, optional: bool) -> Shape:
        items = schema.get("items")
        if items is None:
            raise Mismatch("Array schema did not specify the items type")
        default = schema.get("default")
        if schema.get("connect.type") == "map" and "properties" in items:
            key, value = (
                self.shape(items["properties"][k], optional=False) for k in ("key", "value")
            )
            return Shape(
                "map", optional=optional, key=key, value=value, default=default, form="entries"
            )
        item = self.shape(items, optional=False)
        return Shape("array", optional=optional, value=item, default=default)

    def _object(self, schema: Any, optional: bool) -> Shape:
        default = schema.get("default")
        if schema.get("connect.type") == "map":
            value = self.shape(schema["additionalProperties"], optional=False)
            return Shape(
                "map", optional=optional, key=Shape("string"), value=value, default=default
            )
        ordered: dict[int, tuple[str, Any]] = {}
        for name, part in schema.get("properties", {}).items():
            index = part.get("connect.index") if isinstance(part, dict) else None
            ordered[len(ordered) if index is None else index] = (name, part)
        fields = tuple(
            (name, self.shape(part, optional=False)) for _, (name, part) in sorted(ordered.items())
        )
        return Shape("struct", optional=optional, fields=fields, default=default)


def _leaf(schema: Any, kind: str | None, optional: bool) -> Shape:
    logical = _TITLES.get(schema.get("title", ""), "")
    connect = schema.get("connect.type")
    default = schema.get("default")
    match kind:
        case "boolean":
            return Shape("boolean", optional=optional, default=default)
        case "integer":
            return Shape(connect or "int64", logical, optional, default=default)
        case "string" if connect != "bytes":
            return Shape("string", optional=optional, default=default)
        case "number" | "string":
            found = connect or "float64"
            if found != "bytes":
                return Shape(found, logical, optional, default=default)
            parameters = schema.get("connect.parameters", {})
            precision = int(parameters.get("connect.decimal.precision", DEFAULT_PRECISION))
            scale = int(parameters.get("scale", 0))
            form = "base64" if (kind, logical) == ("string", "decimal") else ""
            return Shape("bytes", logical, optional, precision, scale, default=default, form=form)
    raise Mismatch(f"Unsupported schema type {kind}")
