"""Records that bear the id of their schema in the registry: Confluent's wire format."""

from __future__ import annotations

import re
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
_UNKNOWN_ID = re.compile(r"^unknown schema id (\d+)$", re.MULTILINE)


def unknown_schema_id(error: str) -> int | None:
    """The id that a decoding error complains of, if the layout did not know that writer."""
    match = _UNKNOWN_ID.search(error)
    return None if match is None else int(match[1])


def header(schema_id: int) -> bytes:
    return struct.pack(">bI", 0, schema_id)


def header_column(schema_id: int) -> SparkColumn:
    return F.lit(header(schema_id))


def schema_id_column(data: SparkColumn) -> SparkColumn:
    """The id as a signed number; null where the record is too short or has no magic byte."""
    return F.when(
        (F.octet_length(data) >= HEADER_SIZE) & (F.substring(data, 1, 1) == F.lit(b"\0")),
        F.conv(F.hex(F.substring(data, 2, 4)), 16, 10).cast("bigint"),
    )


def payload_column(data: SparkColumn) -> SparkColumn:
    return F.substring(data, F.lit(HEADER_SIZE + 1), F.octet_length(data))


class RegisteredRows(RowCodec):
    """The Python face of a registry format: finds the writer's schema, and what to do by it."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._schemas = dict(layout.writers)
        if layout.schema_id is not None:
            own = layout.physical or self.own_schema()
            self._schemas.setdefault(layout.schema_id, own)
        self._readers: dict[bytes, Callable[[bytes], Any]] = {}  # by header
        self._write: Callable[[Any], bytes] | None = None

    @abstractmethod
    def own_schema(self) -> RegistrySchema:
        """What the format registers for the columns."""

    @abstractmethod
    def payload_reader(self, schema: RegistrySchema) -> Callable[[bytes], Any]:
        """What comes after the header to a value of the layout's type; ValueError if bad."""

    @abstractmethod
    def payload_writer(self, schema: RegistrySchema | None) -> Callable[[Any], bytes]:
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

    def _reader(self, data: bytes) -> Callable[[bytes], Any]:
        start = data[:HEADER_SIZE]
        reader = self._readers.get(start)
        if reader is None:
            if not data or data[0] != 0:
                raise ValueError("Unknown magic byte!")
            if len(data) < HEADER_SIZE:
                raise ValueError("Record is too short to bear a schema id")
            (schema_id,) = struct.unpack_from(">I", data, 1)
            schema = self._schemas.get(schema_id)
            if schema is None:
                raise ValueError(f"unknown schema id {schema_id}")
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
