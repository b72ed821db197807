"""PROTOBUF and PROTOBUF_NOSR: messages, with and without the registry."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError as ProtoDecodeError

from headrace.formats import connect
from headrace.formats.avro import binary as avro_binary
from headrace.formats.base import (
    ColumnCodec,
    DecodeError,
    EncodeError,
    Feature,
    Format,
    Layout,
    RegistryFormat,
    RegistrySchema,
    Row,
    RowCodec,
    Show,
    Side,
)
from headrace.formats.columns import PythonColumns
from headrace.formats.json.format import check_map_keys
from headrace.formats.protobuf import messages as proto_schema
from headrace.formats.wire_format import Decode, Encode, RegisteredRows
from headrace.model.java_text import java_text
from headrace.model.schema import Column
from headrace.model.types import Field, SqlType, Struct
from headrace.schemas import protobuf

_NULLABLE = frozenset({"optional", "wrapper"})
# How it is written that a message is the first of its schema.
_FIRST = b"\0"


def _check(columns: Sequence[Column], properties: Mapping[str, str]) -> None:
    check_map_keys(
        columns,
        "PROTOBUF format only supports MAP types with STRING keys. "
        "See https://github.com/confluentinc/ksql/issues/6177.",
    )
    proto_schema.check_fields([Field(c.name, c.type) for c in columns])


def _parsed(schema: RegistrySchema) -> protobuf.File:
    try:
        return protobuf.parse(schema.text, dict(schema.references))
    except protobuf.ProtoSyntaxError as e:
        raise ValueError(f"Invalid protobuf schema: {e}") from e


def _nullable(layout: Layout) -> str | None:
    """How the statement wants nulls told from zeros, if at all."""
    found = (layout.option("nullableRepresentation") or "").lower()
    return found if found in _NULLABLE else None


class ProtobufFormat(RegistryFormat):
    name = "PROTOBUF"
    schema_type = "PROTOBUF"
    features = frozenset({Feature.WRAP, Feature.INFERENCE})
    properties = frozenset(
        {"fullSchemaName", "schemaId", "unwrapPrimitives", "nullableRepresentation", "subjectName"}
    )
    inheritable = frozenset({"fullSchemaName"})

    def check_columns(
        self, columns: Sequence[Column], side: Side, properties: Mapping[str, str]
    ) -> None:
        _check(columns, properties)

    def to_registry(self, layout: Layout) -> RegistrySchema:
        name = layout.option("fullSchemaName")
        text = proto_schema.schema_text(layout.struct, name, _nullable(layout))
        return RegistrySchema(text, self.schema_type)

    def show(self, schema: RegistrySchema) -> Show:
        fields = self.columns_from_registry(schema, "value", True, {}, keep_case=True)
        layout = Layout(tuple(Column(f.name, f.type) for f in fields))
        read = ProtobufRows(layout).payload_reader(schema)
        return lambda payload: _shown(read(payload))

    def shape(self, schema: RegistrySchema, properties: Mapping[str, str]) -> connect.Shape:
        file = _parsed(schema)
        name = properties.get("fullSchemaName")
        return proto_schema.shape(file, file.message(name and name.strip()))

    def python(self, layout: Layout) -> RowCodec:
        return ProtobufRows(layout)

    def spark(self, layout: Layout) -> ColumnCodec:
        return PythonColumns(self.name, layout)


def _shown(fields: Mapping[str, object]) -> str:
    """Protobuf's text format, on one line; fields that are not set are not shown."""
    parts: list[str] = []
    for name, value in fields.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                inner = _shown(item)
                parts.append(f"{name} {{ {inner} }}" if inner else f"{name} {{ }}")
            elif item is not None:
                quoted = isinstance(item, str)
                text = json.dumps(item, ensure_ascii=False) if quoted else java_text(item)
                parts.append(f"{name}: {text}")
    return " ".join(parts)


class ProtobufNoSrFormat(Format):
    name = "PROTOBUF_NOSR"
    features = frozenset({Feature.WRAP, Feature.UNWRAP})
    properties = frozenset({"unwrapPrimitives", "nullableRepresentation"})
    inheritable = properties

    def check_columns(
        self, columns: Sequence[Column], side: Side, properties: Mapping[str, str]
    ) -> None:
        _check(columns, properties)

    def python(self, layout: Layout) -> RowCodec:
        return BareMessageRows(layout)

    def spark(self, layout: Layout) -> ColumnCodec:
        return PythonColumns(self.name, layout)


def _payload_reader(type_: SqlType, file: protobuf.File, message: Descriptor) -> Decode:
    """Bytes of a message to a value of a SQL type; ValueError where they are none."""
    shape = proto_schema.shape(file, message)
    convert = connect.reader(type_, shape)
    if isinstance(type_, Struct) and shape.kind == "struct":
        read = proto_schema.row_reader(type_, message, shape)
    else:
        read_message = proto_schema.message_reader(message)

        def read(value: object) -> object:
            return convert(read_message(value))

    parse = message_factory.GetMessageClass(message).FromString

    def decode(payload: bytes) -> object:
        try:
            parsed = parse(payload)
        except ProtoDecodeError as e:
            raise ValueError(f"Error deserializing Protobuf message\n{e}") from e
        return read(parsed)

    return decode


def _payload_writer(message: Descriptor, prepare: connect.Reader) -> Encode:
    write = proto_schema.message_writer(message)
    make = message_factory.GetMessageClass(message)

    def encode(value: object) -> bytes:
        try:
            return make(**write(prepare(value))).SerializeToString(deterministic=True)
        except (TypeError, OverflowError) as e:
            raise ValueError(str(e)) from e

    return encode


class ProtobufRows(RegisteredRows):
    """After the header comes which message of the schema it is, then the message."""

    def own_schema(self) -> RegistrySchema:
        return ProtobufFormat().to_registry(self.layout)

    def payload_reader(self, schema: RegistrySchema) -> Decode:
        file = _parsed(schema)
        readers: dict[tuple[int, ...], Decode] = {}
        type_ = self.layout.type
        first = _FIRST[0]

        def decode(payload: bytes) -> object:
            if payload and payload[0] == first and (0,) in readers:
                return readers[0,](payload[1:])
            source = avro_binary.Source(payload)  # numbers are written as Avro writes them
            count = source.integer()
            if not 0 <= count <= len(payload):
                raise ValueError(f"Invalid message indexes: {count}")
            path = tuple(source.integer() for _ in range(count)) or (0,)
            if path not in readers:
                readers[path] = _payload_reader(type_, file, _at(file, path))
            return readers[path](payload[source.position :])

        return decode

    def payload_writer(self, schema: RegistrySchema | None) -> Encode:
        if schema is None:
            file = _parsed(self.own_schema())
            write = _payload_writer(file.message(), lambda value: value)
            return lambda value: _FIRST + write(value)
        file = _parsed(schema)
        name = self.layout.option("fullSchemaName")
        message = file.message(name and name.strip())
        shape = proto_schema.shape(file, message, _nullable(self.layout))
        prepare = connect.writable(self.layout.type, shape, strict="Protobuf")
        write = _payload_writer(message, prepare)
        indexes = _indexes(file, message)
        return lambda value: indexes + write(value)


def _at(file: protobuf.File, path: tuple[int, ...]) -> Descriptor:
    """The message at a path of indexes."""
    package = file.descriptor.package
    names = [package] if package else []
    level = list(file.descriptor.message_type)
    for index in path:
        if not 0 <= index < len(level):
            raise ValueError(f"Invalid message indexes: {list(path)}")
        names.append(level[index].name)
        level = list(level[index].nested_type)
    return file.message(".".join(names))


def _indexes(file: protobuf.File, message: Descriptor) -> bytes:
    """Where the message is in its file; the first one is abbreviated."""
    top = [m.name for m in file.descriptor.message_type]
    index = top.index(message.name) if message.name in top else 0
    if index == 0:
        return _FIRST
    out = bytearray()
    avro_binary.write_long(out, 1)
    avro_binary.write_long(out, index)
    return bytes(out)


class BareMessageRows(RowCodec):
    """Messages without header, of the schema that the columns make."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        if layout.wrapped:
            text, name = proto_schema.schema_text(layout.struct, None, _nullable(layout)), None
        else:
            text, name = proto_schema.bare_schema_text(layout.type, _nullable(layout))
        file = protobuf.parse(text, {})
        message = file.message(name)
        self._read = _payload_reader(layout.type, file, message)
        self._write = _payload_writer(message, lambda value: value)

    def decode(self, data: bytes | None) -> Row | None:
        if data is None:
            return None
        try:
            value = self._read(data)
        except ValueError as e:
            raise DecodeError(
                f"Error deserializing message from topic: {self._layout.topic}\n{e}"
            ) from e
        return value if self._layout.wrapped else {self._layout.columns[0].name: value}

    def encode(self, row: Row | None) -> bytes | None:
        if row is None:
            return None
        value = row if self._layout.wrapped else row[self._layout.columns[0].name]
        if value is None:
            return None
        try:
            return self._write(value)
        except ValueError as e:
            raise EncodeError(
                f"Error serializing message to topic: {self._layout.topic}. {e}"
            ) from e
