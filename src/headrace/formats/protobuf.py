"""PROTOBUF and PROTOBUF_NOSR: messages, with and without the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError as ProtoDecodeError

from headrace.formats import avro_binary, connect, proto_schema, proto_text
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
    Side,
)
from headrace.formats.json import check_map_keys
from headrace.formats.native import PythonColumns
from headrace.formats.proto_text import ProtoFile
from headrace.formats.registered import RegisteredRows
from headrace.model.errors import StatementError
from headrace.model.schema import Column
from headrace.model.types import Field, SqlType, Struct

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


def _nullable(layout: Layout) -> str | None:
    """How the statement wants nulls told from zeros, if at all."""
    found = (layout.option("nullableRepresentation") or "").lower()
    return found if found in _NULLABLE else None


class ProtobufFormat(RegistryFormat):
    name = "PROTOBUF"
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
        return RegistrySchema(
            proto_schema.schema_text(layout.struct, name, _nullable(layout)), "PROTOBUF"
        )

    def schema_names(self, schema: RegistrySchema) -> list[str]:
        """The full names of the messages that the schema defines."""
        try:
            proto = proto_text.parse(schema.text, dict(schema.references)).proto
        except ValueError as e:
            raise StatementError(str(e)) from e
        prefix = f"{proto.package}." if proto.package else ""
        return [prefix + message.name for message in proto.message_type]

    def shape(self, schema: RegistrySchema, properties: Mapping[str, str]) -> connect.Shape:
        file = proto_text.parse(schema.text, dict(schema.references))
        name = properties.get("fullSchemaName")
        return proto_schema.shape(file, file.message(name and name.strip()))

    def python(self, layout: Layout) -> RowCodec:
        return ProtobufRows(layout)

    def spark(self, layout: Layout) -> ColumnCodec:
        return PythonColumns(self.name, layout)


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


def _payload_reader(type_: SqlType, file: ProtoFile, message: Descriptor) -> Callable[[bytes], Any]:
    """Bytes of a message to a value of a SQL type; ValueError where they are none."""
    shape = proto_schema.shape(file, message)
    convert = connect.reader(type_, shape)
    if isinstance(type_, Struct) and shape.kind == "struct":
        read = proto_schema.row_reader(type_, message, shape)
    else:
        read_message = proto_schema.message_reader(message)

        def read(value: Any) -> Any:
            return convert(read_message(value))

    parse = message_factory.GetMessageClass(message).FromString

    def decode(payload: bytes) -> Any:
        try:
            parsed = parse(payload)
        except ProtoDecodeError as e:
            raise ValueError(f"Error deserializing Protobuf message\n{e}") from e
        return read(parsed)

    return decode


def _payload_writer(message: Descriptor, prepare: Callable[[Any], Any]) -> Callable[[Any], bytes]:
    write = proto_schema.message_writer(message)
    make = message_factory.GetMessageClass(message)

    def encode(value: Any) -> bytes:
        try:
            return make(**write(prepare(value))).SerializeToString(deterministic=True)
        except (TypeError, OverflowError) as e:
            raise ValueError(str(e)) from e

    return encode


class ProtobufRows(RegisteredRows):
    """After the header comes which message of the schema it is, then the message."""

    def own_schema(self) -> RegistrySchema:
        return ProtobufFormat().to_registry(self.layout)

    def payload_reader(self, schema: RegistrySchema) -> Callable[[bytes], Any]:
        file = proto_text.parse(schema.text, dict(schema.references))
        readers: dict[tuple[int, ...], Callable[[bytes], Any]] = {}
        type_ = self.layout.type
        first = _FIRST[0]

        def decode(payload: bytes) -> Any:
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

    def payload_writer(self, schema: RegistrySchema | None) -> Callable[[Any], bytes]:
        if schema is None:
            file = proto_text.parse(self.own_schema().text, {})
            write = _payload_writer(file.message(), lambda value: value)
            return lambda value: _FIRST + write(value)
        file = proto_text.parse(schema.text, dict(schema.references))
        name = self.layout.option("fullSchemaName")
        message = file.message(name and name.strip())
        shape = proto_schema.shape(file, message, _nullable(self.layout))
        prepare = connect.writable(self.layout.type, shape, strict="Protobuf")
        write = _payload_writer(message, prepare)
        indexes = _indexes(file, message)
        return lambda value: indexes + write(value)


def _at(file: ProtoFile, path: tuple[int, ...]) -> Descriptor:
    """The message at a path of indexes."""
    package = file.proto.package
    names = [package] if package else []
    level = list(file.proto.message_type)
    for index in path:
        if not 0 <= index < len(level):
            raise ValueError(f"Invalid message indexes: {list(path)}")
        names.append(level[index].name)
        level = list(level[index].nested_type)
    return file.message(".".join(names))


def _indexes(file: ProtoFile, message: Descriptor) -> bytes:
    """Where the message is in its file; the first one is abbreviated."""
    top = [m.name for m in file.proto.message_type]
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
        file = proto_text.parse(text, {})
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
