"""JSON_SR: JSON that bears the id of its schema in the registry."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal as Number
from functools import reduce
from operator import or_
from typing import Any, TypeGuard

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from headrace.formats import connect
from headrace.formats import java_numbers as java
from headrace.formats.base import (
    ColumnCodec,
    Feature,
    Layout,
    RegistryFormat,
    RegistrySchema,
    RowCodec,
    Show,
    Side,
)
from headrace.formats.columns import NativeFirst, with_entries
from headrace.formats.connect import Reader, Shape
from headrace.formats.json import schema as json_schema
from headrace.formats.json import text as jackson
from headrace.formats.json.columns import decode_json, decoded_value, json_text
from headrace.formats.json.format import Writer, check_map_keys, node_text
from headrace.formats.wire_format import (
    Decode,
    Encode,
    RegisteredRows,
    header_column,
    payload_column,
)
from headrace.model.fallible import Fallible
from headrace.model.java_text import java_text
from headrace.model.representation import spark_type
from headrace.model.schema import Column
from headrace.model.types import Array, Field, Map, SqlType, Struct, base_name, walk


class JsonSrFormat(RegistryFormat):
    name = "JSON_SR"
    schema_type = "JSON"
    features = frozenset({Feature.WRAP, Feature.UNWRAP, Feature.INFERENCE})
    properties = frozenset({"fullSchemaName", "schemaId"})

    def check_columns(
        self, columns: Sequence[Column], side: Side, properties: Mapping[str, str]
    ) -> None:
        check_map_keys(columns, "JSON only supports MAP types with STRING keys")

    def to_registry(self, layout: Layout) -> RegistrySchema:
        text = json_schema.schema_text(layout.type, wrapped=layout.wrapped)
        return RegistrySchema(text, self.schema_type)

    def show(self, schema: RegistrySchema) -> Show:
        def shown(payload: bytes) -> str:
            node = jackson.parse(payload)
            if node is jackson.MISSING:
                raise ValueError("empty")
            return "<null>" if node is None else java_text(node)

        return shown

    def shape(self, schema: RegistrySchema, properties: Mapping[str, str]) -> connect.Shape:
        return json_schema.parse(schema.text, schema.references)

    def python(self, layout: Layout) -> RowCodec:
        return JsonSrRows(layout)

    def spark(self, layout: Layout) -> ColumnCodec:
        return JsonSrColumns(self.name, layout)


class JsonSrRows(RegisteredRows):
    def own_schema(self) -> RegistrySchema:
        return JsonSrFormat().to_registry(self.layout)

    def payload_reader(self, schema: RegistrySchema) -> Decode:
        shape = json_schema.parse(schema.text, schema.references)
        convert = connect.reader(self.layout.type, shape)
        read = node_reader(shape)
        topic = self.layout.topic

        def decode(payload: bytes) -> object:
            try:
                node = jackson.parse(payload)
                if node is jackson.MISSING:
                    raise ValueError("No content to map due to end-of-input")
                value = read(node)
            except ValueError as e:
                raise ValueError(
                    f"Converting byte[] to Kafka Connect data failed due to serialization error "
                    f"of topic {topic}: \n{e}"
                ) from e
            return convert(value)

        return decode

    def payload_writer(self, schema: RegistrySchema | None) -> Encode:
        if schema is None:
            write = node_writer(json_schema.parse(self.own_schema().text))
            return lambda value: write(value).encode("utf-8", "replace")
        shape = json_schema.parse(schema.text, schema.references)
        prepare = connect.writable(self.layout.type, shape)
        write = node_writer(shape)
        return lambda value: write(prepare(value)).encode("utf-8", "replace")


# ---------------------------------------------------------------- nodes by a schema

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def node_reader(shape: Shape) -> Reader:
    """How a parsed node becomes a value in Connect's terms; ValueError where it cannot."""
    read = _node_reader(shape)

    def nullable(node: object) -> object:
        if node is None:
            if shape.default is not None:
                return shape.default
            if shape.optional:
                return None
            raise ValueError(f"Invalid null value for required {shape.kind.upper()} field")
        return read(node)

    return nullable


def _node_reader(shape: Shape) -> Reader:
    match shape.kind:
        case "array":
            assert shape.value is not None
            item = node_reader(shape.value)
            return lambda node: [item(x) for x in _expect(node, list, "an array")]
        case "map":
            return _map_reader(shape)
        case "struct" if shape.form == "union":
            return _union_reader(shape)
        case "struct":
            return _struct_reader(shape)
        case "boolean":
            return lambda node: _expect(node, bool, "a boolean")
        case "string":
            return node_text
        case "bytes":
            return _decimal_reader(shape) if shape.logical == "decimal" else _bytes
        case "float32":
            return lambda node: _single(_double(node))
        case "float64":
            return _double
        case "variant":
            return lambda node: node
    bits = _BITS[shape.kind]
    return lambda node: _integer(node, bits)


def _expect(node: object, wanted: type, words: str) -> Any:
    if not isinstance(node, wanted):
        raise ValueError(f"Expected {words}, but found {jackson.dump(node)[:100]}")
    return node


def _is_number(node: object) -> TypeGuard[int | Number]:
    return isinstance(node, (int, Number)) and not isinstance(node, bool)


def _integer(node: object, bits: int) -> int:
    value = None
    if isinstance(node, str):
        value = java.parse_integer(node, bits)
    elif _is_number(node) and not (isinstance(node, Number) and node.adjusted() > 400):
        value = java.narrow(int(node), bits)
    if value is None:
        raise ValueError(f"Expected an integer, but found {jackson.dump(node)[:100]}")
    return value


def _double(node: object) -> float:
    value = None
    if isinstance(node, str):
        value = java.parse_double(node)
    elif _is_number(node):
        try:
            value = float(node)
        except OverflowError:
            value = float("inf") if node > 0 else float("-inf")
    if value is None:
        raise ValueError(f"Expected a number, but found {jackson.dump(node)[:100]}")
    return value


def _single(value: float) -> float:
    """The nearest number of 32 bits."""
    try:
        return float(struct.unpack(">f", struct.pack(">f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _bytes(node: object) -> bytes:
    value = jackson.decode_bytes(node) if isinstance(node, str) else None
    if value is None:
        raise ValueError("Invalid bytes field")
    return value


def _decimal_reader(shape: Shape) -> Reader:
    def read(node: object) -> Number:
        if isinstance(node, str) and shape.form == "base64":
            return connect.bytes_decimal(_bytes(node), shape.scale)
        if isinstance(node, str) and (number := java.parse_decimal(node)) is not None:
            return number
        if not _is_number(node):
            raise ValueError(
                "Invalid type for Decimal, underlying representation should be numeric or bytes"
            )
        return Number(node)

    return read


def _map_reader(shape: Shape) -> Reader:
    assert shape.key is not None and shape.value is not None
    key, value = node_reader(shape.key), node_reader(shape.value)

    def read_object(node: object) -> dict[str, object]:
        entries = _expect(node, dict, "an object")
        return {node_text(k): value(v) for k, v in entries.items()}

    def read_entries(node: object) -> dict[object, object]:
        entries = [_expect(e, dict, "a map's entry") for e in _expect(node, list, "an array")]
        return {key(e.get("key")): value(e.get("value")) for e in entries}

    return read_entries if shape.form == "entries" else read_object


def _struct_reader(shape: Shape) -> Reader:
    parts = [(name, node_reader(part), part.default) for name, part in shape.fields]

    def read(node: object) -> dict[str, object]:
        row = _expect(node, dict, "an object")
        # A field that is not there is null even where null is not allowed.
        return {
            name: read_field(row[name]) if name in row else default
            for name, read_field, default in parts
        }

    return read


def _union_reader(shape: Shape) -> Reader:
    members = [(name, part, _node_reader(part)) for name, part in shape.fields]

    def read(node: object) -> dict[str, object]:
        best, most = None, 0
        for name, part, read_member in members:
            if _is_simple_match(part, node):
                return {name: read_member(node)}
            matching = _matching_fields(part, node)
            if matching > most:
                best, most = (name, read_member), matching
        if best is None:
            raise ValueError("Did not find matching oneof field for data")
        name, read_member = best
        return {name: read_member(node)}

    return read


def _is_simple_match(shape: Shape, node: object) -> bool:
    integral = isinstance(node, int) and not isinstance(node, bool)
    match shape.kind:
        case "float32" | "float64":
            return integral or isinstance(node, Number)
        case "boolean":
            return isinstance(node, bool)
        case "string":
            return isinstance(node, str)
        case "bytes":
            return isinstance(node, Number)
        case "array":
            return isinstance(node, list)
        case "map":
            return isinstance(node, (dict, list))
    return shape.kind in _BITS and integral


def _matching_fields(shape: Shape, node: object) -> int:
    if shape.kind != "struct" or not isinstance(node, dict):
        return 0
    common = [(name, part) for name, part in shape.fields if name in node]
    return len(common) + sum(_matching_fields(part, node[name]) for name, part in common)


def node_writer(shape: Shape) -> Writer:
    """How a value in Connect's terms is written."""
    write = _node_writer(shape)
    return lambda value: "null" if value is None else write(value)


def _node_writer(shape: Shape) -> Writer:
    match shape.kind:
        case "array":
            assert shape.value is not None
            item = node_writer(shape.value)
            return lambda items: f"[{','.join(map(item, items))}]"
        case "map":
            assert shape.key is not None and shape.value is not None
            key, value = node_writer(shape.key), node_writer(shape.value)
            if shape.form == "entries":
                return lambda entries: (
                    f"[{','.join(_entry(key(k), value(v)) for k, v in entries.items())}]"
                )
            return lambda entries: (
                f"{{{','.join(f'{key(k)}:{value(v)}' for k, v in entries.items())}}}"
            )
        case "struct" if shape.form == "union":
            members = {name: node_writer(part) for name, part in shape.fields}
            return lambda row: next(
                (members[name](v) for name, v in row.items() if v is not None), "null"
            )
        case "struct":
            return _struct_writer(shape)
        case "bytes" if shape.logical == "decimal" and shape.form == "base64":
            return lambda number: f'"{jackson.encode_bytes(connect.decimal_bytes(number))}"'
        case "bytes" if shape.logical != "decimal":
            return lambda value: f'"{jackson.encode_bytes(value)}"'
        case "float32":
            return lambda value: connect.float_text(value)
    return jackson.dump


def _entry(key: str, value: str) -> str:
    return f'{{"key":{key},"value":{value}}}'


def _struct_writer(shape: Shape) -> Writer:
    parts = [
        (name, f"{jackson.string(name)}:", node_writer(part), part.optional)
        for name, part in shape.fields
    ]

    def write(row: Any) -> str:
        texts = []
        for name, label, write_field, optional in parts:
            value = row.get(name)
            if value is not None or optional:
                texts.append(label + write_field(value))
        return f"{{{','.join(texts)}}}"

    return write


# ---------------------------------------------------------------- Spark columns


class JsonSrColumns(NativeFirst):
    """As JSON, where the writer's schema says of each column what JSON would make of it."""

    def attempt(self, data: SparkColumn) -> SparkColumn:
        return decode_json(self._parsed(), payload_column(data), any_case=False)

    def settle(self, attempt: SparkColumn, data: SparkColumn) -> tuple[SparkColumn, SparkColumn]:
        layout = self.layout
        parsed = decoded_value(self._parsed(), attempt)
        value = parsed.cast(spark_type(layout.type))  # the names that the columns have
        start = F.substring(data, 1, 5)
        sure = F.lit(False)
        for id_, shape in self._native_writers():
            nulls = _required_nulls(layout.type, shape, value)
            sure |= (start == header_column(id_)) & ~reduce(or_, nulls, F.lit(False))
        row = value if layout.wrapped else F.struct(value.alias(layout.columns[0].name))
        return row, attempt.isNull() | ~sure

    def _parsed(self) -> SqlType:
        writers = self._native_writers()
        return _payload_type(self.layout.type, writers[0][1]) if writers else self.layout.type

    def encode(self, row: SparkColumn) -> Fallible:
        layout = self.layout
        if layout.physical is not None or layout.schema_id is None:
            return super().encode(row)
        text = json_text(layout, with_entries(layout.struct, row))
        return Fallible(F.concat(header_column(layout.schema_id), text.cast("binary")))

    def _native_writers(self) -> list[tuple[int, Shape]]:
        """Those that Spark reads rightly, and that spell the columns as the first of them does."""
        type_ = self.layout.type
        schemas = dict(self.layout.writers)
        if self.layout.schema_id is not None:
            own = self.layout.physical or JsonSrFormat().to_registry(self.layout)
            schemas.setdefault(self.layout.schema_id, own)
        shapes = ((id_, _native_shape(type_, schema)) for id_, schema in schemas.items())
        native = [(id_, shape) for id_, shape in shapes if shape is not None]
        return [
            (id_, shape)
            for id_, shape in native
            if _payload_type(type_, shape) == _payload_type(type_, native[0][1])
        ]


def _payload_type(type_: SqlType, shape: Shape) -> SqlType:
    """The type with fields named as the writer names them."""
    match type_:
        case Array(element):
            assert shape.value is not None
            return Array(_payload_type(element, shape.value))
        case Struct(fields):
            matched = connect.matched_fields(fields, shape)
            return Struct(
                tuple(
                    Field(matched[f.name][0], _payload_type(f.type, matched[f.name][1]))
                    for f in fields
                )
            )
    return type_


def _native_shape(type_: SqlType, schema: RegistrySchema) -> Shape | None:
    """What the schema says, if a record of it is read as the JSON format reads it."""
    if any(isinstance(t, Map) for t in walk(type_)):
        return None
    try:
        shape = json_schema.parse(schema.text, schema.references)
        connect.reader(type_, shape)
    except ValueError:
        return None
    return shape if _reads_as_json(type_, shape) else None


def _reads_as_json(type_: SqlType, shape: Shape) -> bool:
    """Whether all fields are there, and values have the form that the JSON format looks for."""
    if shape.default is not None or shape.form:
        return False
    match type_:
        case Array(element):
            return shape.value is not None and _reads_as_json(element, shape.value)
        case Struct(fields):
            matched = connect.matched_fields(fields, shape)
            return all(
                f.name in matched and _reads_as_json(f.type, matched[f.name][1]) for f in fields
            )
    return shape.kind != "float32" and (base_name(type_) != "STRING" or shape.kind == "string")


def _required_nulls(type_: SqlType, shape: Shape, value: SparkColumn) -> list[SparkColumn]:
    """Where a null may be one that the schema forbids: an error if it was written as such."""
    conditions = [] if shape.optional else [value.isNull()]
    match type_:
        case Array(element):
            assert shape.value is not None
            item = shape.value
            if _required_nulls(element, item, value):
                conditions.append(
                    F.exists(value, lambda x: reduce(or_, _required_nulls(element, item, x)))
                )
        case Struct(fields):
            matched = connect.matched_fields(fields, shape)
            for f in fields:
                inner = _required_nulls(f.type, matched[f.name][1], value[f.name])
                conditions += [value.isNotNull() & c for c in inner]
    return [F.coalesce(c, F.lit(False)) for c in conditions]
