"""Confluent's wire format: records that begin with the id of their schema."""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from headrace.formats.base import (
    DecodeError,
    EncodeError,
    Layout,
    RegistrySchema,
    Row,
    RowCodec,
)

HEADER_SIZE = 5
# What comes after the header to a value of a layout's type, and back.
Decode = Callable[[bytes], Any]
Encode = Callable[[Any], bytes]


def header(schema_id: int) -> bytes:
    return struct.pack(">bI", 0, schema_id)


def schema_id(data: bytes) -> int:
    """The schema id of a record; ValueError if it has none."""
    if not data or data[0] != 0:
        raise ValueError("Unknown magic byte!")
    if len(data) < HEADER_SIZE:
        raise ValueError("Record is too short to bear a schema id")
    return int.from_bytes(data[1:HEADER_SIZE])


def header_column(schema_id: int) -> SparkColumn:
    return F.lit(header(schema_id))


def payload_column(data: SparkColumn) -> SparkColumn:
    return F.substring(data, F.lit(HEADER_SIZE + 1), F.octet_length(data))


class RegisteredRows(RowCodec):
    """The row codec of a registry format: finds the writer's schema, and what to do by it."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._schemas = dict(layout.writers)
        if layout.schema_id is not None:
            own = layout.physical or self.own_schema()
            self._schemas.setdefault(layout.schema_id, own)
        self._readers: dict[bytes, Decode] = {}  # by header
        self._write: Encode | None = None

    @abstractmethod
    def own_schema(self) -> RegistrySchema:
        """What the format registers for the columns."""

    @abstractmethod
    def payload_reader(self, schema: RegistrySchema) -> Decode:
        """What comes after the header to a value of the layout's type; ValueError if bad."""

    @abstractmethod
    def payload_writer(self, schema: RegistrySchema | None) -> Encode:
        """A value of the layout's type to what comes after the header; None: the own schema."""

    def decode(self, data: bytes | None) -> Row | None:
        if data is None:
            return None
        try:
            value = self._reader(data)(data[HEADER_SIZE:])
        except ValueError as e:
            raise DecodeError(
                f"Error deserializing message from topic: {self.layout.topic}\n{e}"
            ) from e
        return self._row(value)

    def _row(self, value: Any) -> Row:
        if not self.layout.wrapped:
            return {self.layout.columns[0].name: value}
        if value is None:
            raise DecodeError(f"Error deserializing message from topic: {self.layout.topic}\nnull")
        return value  # type: ignore[no-any-return]

    def _reader(self, data: bytes) -> Decode:
        start = data[:HEADER_SIZE]
        reader = self._readers.get(start)
        if reader is None:
            id_ = schema_id(data)
            schema = self._schemas.get(id_)
            if schema is None:
                raise ValueError(f"unknown schema id {id_}")
            reader = self._readers[start] = self.payload_reader(schema)
        return reader

    def encode(self, row: Row | None) -> bytes | None:
        if row is None:
            return None
        layout = self.layout
        value = row if layout.wrapped else row[layout.columns[0].name]
        if value is None:
            return None
        try:
            if layout.schema_id is None:
                raise ValueError("The schema is not registered")
            if self._write is None:
                self._write = self.payload_writer(layout.physical)
            return header(layout.schema_id) + self._write(value)
        except ValueError as e:
            raise EncodeError(f"Error serializing message to topic: {layout.topic}. {e}") from e
