"""Avro schemas: the one that ksqlDB registers for given columns, and any that others did."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.formats.connect import DEFAULT_PRECISION, Mismatch, Shape, bytes_decimal
from headrace.model.errors import StatementError
from headrace.model.types import Array, Decimal, Field, Map, SqlType, Struct, base_name

DEFAULT_NAME = "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema"

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


def _render(type_: SqlType, path: tuple[str, ...], space: str | None, *, root: bool = False) -> Any:
    """`path` makes the names of nested records unique; `space` is the enclosing namespace."""
    match type_:
        case Array(element):
            return {"type": "array", "items": _nullable(element, path, space)}
        case Map(key, value):
            full = "_".join(path)
            names = _named(full, space)
            space = full.rpartition(".")[0]
            # Connect's maps with keys that may be null, as ksqlDB's are, are arrays of entries.
            entry = {
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
            parts = [_field(field_name(f.name), f.type, (*path, f.name), space) for f in fields]
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
        plain, name, logical = _LOGICAL[base_name(type_)]
        version = {} if root else {"connect.version": 1}
        return {
            "type": plain,
            **version,
            "connect.name": _CONNECT + name,
            "logicalType": logical,
        }
    return _PRIMITIVES[base_name(type_)]


def _named(full: str, space: str | None) -> dict[str, str]:
    """Name and namespace, the latter only where it is not the enclosing one."""
    own, _, name = full.rpartition(".")
    return {"name": name} if own == (space or "") else {"name": name, "namespace": own}


def _nullable(type_: SqlType, path: tuple[str, ...], space: str | None) -> list[Any]:
    return ["null", _render(type_, path, space)]


def _field(name: str, type_: SqlType, path: tuple[str, ...], space: str) -> dict[str, Any]:
    return {"name": name, "type": _nullable(type_, path, space), "default": None}


# ---------------------------------------------------------------- any schema


@dataclass(eq=False)
class Node:
    """One resolved node of a schema; references to a name are the same node."""

    type: str
    name: str = ""
    fields: list[tuple[str, Node, Any]] = field(default_factory=list)  # name, type, default
    items: Node | None = None  # of arrays, and the values of maps
    branches: list[Node] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    size: int = 0
    props: dict[str, Any] = field(default_factory=dict)

    @property
    def logical(self) -> str:
        return str(self.props.get("logicalType", ""))

    @property
    def is_decimal(self) -> bool:
        return self.type in ("bytes", "fixed") and self.logical == "decimal"

    @property
    def is_map_entry(self) -> bool:
        return self.type == "record" and (
            self.name == "io.confluent.connect.avro.MapEntry"
            or self.props.get("connect.internal.type") == "MapEntry"
        )

    @property
    def only_branch(self) -> Node | None:
        """The one branch beside null, of a union that merely says that a value may be null."""
        others = [b for b in self.branches if b.type != "null"]
        return others[0] if self.type == "union" and len(others) == 1 else None


_SIMPLE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
# Defaults stand for a value only where the schema gives one; null is a value.
NO_DEFAULT = object()


def parse(text: str) -> Node:
    """ValueError where it is no schema."""
    try:
        return _resolve(json.loads(text), "", {})
    except (KeyError, TypeError, AttributeError) as e:
        raise ValueError(f"Invalid Avro schema: {e}") from e


def _resolve(schema: Any, space: str, names: dict[str, Node]) -> Node:
    if isinstance(schema, str):
        return _reference(schema, space, names)
    if isinstance(schema, list):
        return Node("union", branches=[_resolve(s, space, names) for s in schema])
    kind = schema["type"]
    if not isinstance(kind, str):
        return _resolve(kind, space, names)
    props = {k: v for k, v in schema.items() if k not in ("type", "fields", "items", "values")}
    if kind in _SIMPLE:
        return Node(kind, props=props)
    if kind == "array":
        return Node("array", items=_resolve(schema["items"], space, names), props=props)
    if kind == "map":
        return Node("map", items=_resolve(schema["values"], space, names), props=props)
    if kind not in ("record", "error", "enum", "fixed"):
        return _reference(kind, space, names)
    full = _full_name(schema["name"], schema.get("namespace", space))
    node = names[full] = Node("record" if kind == "error" else kind, name=full, props=props)
    if kind == "enum":
        node.symbols = list(schema["symbols"])
    elif kind == "fixed":
        node.size = int(schema["size"])
    else:
        inner = full.rpartition(".")[0]
        node.fields = [
            (f["name"], _resolve(f["type"], inner, names), f.get("default", NO_DEFAULT))
            for f in schema["fields"]
        ]
    return node


def _reference(name: str, space: str, names: dict[str, Node]) -> Node:
    if name in _SIMPLE:
        return Node(name)
    full = _full_name(name, space)
    if full not in names:
        raise ValueError(f"Invalid Avro schema: unknown type {full}")
    return names[full]


def _full_name(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


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


def shape(node: Node, *, optional: bool = False, default: Any = NO_DEFAULT) -> Shape:
    """The node in Connect's terms; Mismatch for what Connect does not read."""
    return _shape(node, optional, default, ())


def _shape(node: Node, optional: bool, default: Any, outer: tuple[Node, ...]) -> Shape:
    if any(node is o for o in outer):
        raise Mismatch(f"Cyclic schemas are not supported: {node.name}")
    outer = (*outer, node) if node.type == "record" else outer
    given = _default(node, default)
    match node.type:
        case "union":
            if (branch := node.only_branch) is not None:
                nullable = len(node.branches) > 1
                return _shape(branch, optional or nullable, default, outer)
            members = tuple(
                (member_name(b), _shape(b, True, NO_DEFAULT, outer))
                for b in node.branches
                if b.type != "null"
            )
            nullable = any(b.type == "null" for b in node.branches)
            return Shape("struct", optional=optional or nullable, fields=members, default=given)
        case "array":
            assert node.items is not None
            if node.items.is_map_entry:
                entry = {name: (n, d) for name, n, d in node.items.fields}
                if set(entry) != {"key", "value"}:
                    raise Mismatch(
                        "Found map encoded as array of key-value pairs, but array "
                        "elements do not match the expected format."
                    )
                key, value = (_shape(*_of(entry[k]), outer) for k in ("key", "value"))
                return Shape("map", optional=optional, key=key, value=value, default=given)
            item = _shape(node.items, False, NO_DEFAULT, outer)
            return Shape("array", optional=optional, value=item, default=given)
        case "map":
            assert node.items is not None
            item = _shape(node.items, False, NO_DEFAULT, outer)
            return Shape("map", optional=optional, key=Shape("string"), value=item, default=given)
        case "record":
            fields = tuple((name, _shape(*_of((n, d)), outer)) for name, n, d in node.fields)
            return Shape("struct", optional=optional, fields=fields, default=given)
        case "null":
            raise Mismatch("Standalone null schemas are not supported by this converter")
    if node.is_decimal:
        return Shape(
            "bytes",
            "decimal",
            optional,
            int(node.props.get("precision", DEFAULT_PRECISION)),
            int(node.props.get("scale", 0)),
            default=given,
        )
    logical = _LOGICAL_SHAPES.get((node.type, node.logical), "")
    kind = _KINDS[node.type]
    if node.type == "int" and not node.logical:
        kind = str(node.props.get("connect.type", kind))
    return Shape(kind, logical, optional, default=given)


def _default(node: Node, written: Any) -> Any:
    """What a default in a schema's JSON stands for, in Connect's terms; None if there is none, or
    none of the type: such a schema can be read by all the same."""
    try:
        return None if written is NO_DEFAULT else _default_value(node, written)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _default_value(node: Node, written: Any) -> Any:
    if written is None or written is NO_DEFAULT:
        return None
    match node.type:
        case "union":
            # A default is one of the union's first branch; some write it for another.
            only = node.only_branch
            if only is not None:
                return _default_value(only, written)
            first = node.branches[0]
            return {member_name(first): _default_value(first, written)}
        case "record":
            return {
                name: _default_value(part, written.get(name, default))
                for name, part, default in node.fields
            }
        case "array":
            assert node.items is not None
            items = [_default_value(node.items, item) for item in written]
            return {e["key"]: e["value"] for e in items} if node.items.is_map_entry else items
        case "map":
            assert node.items is not None
            return {key: _default_value(node.items, item) for key, item in written.items()}
        case "bytes" | "fixed":
            data = written.encode("latin-1")  # each character is a byte
            return bytes_decimal(data, int(node.props.get("scale", 0))) if node.is_decimal else data
        case "float" | "double":
            return float(written)
    return written


def _of(part: tuple[Node, Any]) -> tuple[Node, bool, Any]:
    node, default = part
    return node, False, default


def member_name(branch: Node) -> str:
    """What Connect calls the field of a union's branch."""
    named = branch.type in ("record", "enum", "fixed")
    return branch.name.rpartition(".")[2] if named else branch.type
