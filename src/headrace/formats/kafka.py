"""KAFKA: a single primitive value, as Kafka's own serializers write it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from headrace.formats.base import (
    ColumnCodec,
    DecodeError,
    Feature,
    Format,
    Layout,
    Row,
    RowCodec,
    Show,
    Side,
)
from headrace.formats.none import VoidColumns, VoidRows
from headrace.model.errors import StatementError
from headrace.model.fallible import Fallible
from headrace.model.java_text import java_text, valid_text
from headrace.model.schema import Column
from headrace.model.types import base_name


@dataclass(frozen=True)
class _Kind:
    """One primitive: its size in bytes where that is fixed, and its four conversions."""

    unpack: Callable[[bytes], object]
    pack: Callable[[Any], bytes]
    from_binary: Callable[[SparkColumn], SparkColumn]
    to_binary: Callable[[SparkColumn], SparkColumn]
    size: int | None = None
    complaint: str = ""


def _signed(data: SparkColumn) -> SparkColumn:
    """Eight bytes, big-endian, as a signed number."""
    return F.conv(F.hex(data), 16, -10).cast("bigint")


def _signed_int(data: SparkColumn) -> SparkColumn:
    # Shifted to the top of eight bytes, so that the sign is where `conv` looks for it.
    wide = _signed(F.concat(data, F.lit(bytes(4))))
    return F.shiftright(wide, 32).cast("int")


def _java_double(method: str, value: SparkColumn) -> SparkColumn:
    """Spark has no function for the bits of a double; Java's own does not take nulls."""
    value = F.coalesce(value, F.lit(0))
    return F.reflect(F.lit("java.lang.Double"), F.lit(method), value)


_KINDS: dict[str, _Kind] = {
    "INTEGER": _Kind(
        lambda data: struct.unpack(">i", data)[0],
        lambda value: struct.pack(">i", value),
        _signed_int,
        lambda value: value.cast("binary"),
        4,
        "Size of data received by IntegerDeserializer is not 4",
    ),
    "BIGINT": _Kind(
        lambda data: struct.unpack(">q", data)[0],
        lambda value: struct.pack(">q", value),
        _signed,
        lambda value: value.cast("binary"),
        8,
        "Size of data received by LongDeserializer is not 8",
    ),
    "DOUBLE": _Kind(
        lambda data: struct.unpack(">d", data)[0],
        lambda value: struct.pack(">d", value),
        lambda data: _java_double("longBitsToDouble", _signed(data)).cast("double"),
        lambda value: F.when(
            value.isNotNull(), _java_double("doubleToLongBits", value).cast("bigint")
        ).cast("binary"),
        8,
        "Size of data received by Deserializer is not 8",
    ),
    "STRING": _Kind(
        lambda data: data.decode("utf-8", "replace"),
        lambda value: value.encode("utf-8", "replace"),
        lambda data: F.make_valid_utf8(data.cast("string")),
        lambda value: value.cast("binary"),
    ),
    "BYTES": _Kind(bytes, bytes, lambda data: data, lambda value: value),
}


class KafkaFormat(Format):
    name = "KAFKA"
    features = frozenset({Feature.UNWRAP})
    structured = False
    ordered_keys = True
    not_grouped = (
        "The KAFKA format is primarily intended for use as a key format. It can be used as a value "
        "format, but can not be used in any operation that requires a repartition or changelog "
        "topic.\n"
        "Removing this limitation requires enhancements to the core of KSQL. This will come in a "
        "future release. Until then, avoid using the KAFKA format for values.\n"
        "If you have an existing topic with KAFKA formatted values you can duplicate the data and "
        "serialize using Avro or JSON with a statement such as: \n\n"
        "'CREATE STREAM <new-stream-name> WITH(VALUE_FORMAT='Avro') AS "
        "SELECT * FROM <existing-kafka-formated-stream-name>;'\n"
        "For more info see https://github.com/confluentinc/ksql/issues/3060"
    )

    def shows(self) -> Mapping[str, Show]:
        return {
            "KAFKA_INT": _show_number(">i"),
            "KAFKA_BIGINT": _show_number(">q"),
            "KAFKA_DOUBLE": _show_number(">d"),
            "KAFKA_STRING": valid_text,
        }

    def check_columns(
        self, columns: Sequence[Column], side: Side, properties: Mapping[str, str]
    ) -> None:
        if len(columns) > 1:
            raise StatementError(
                "The 'KAFKA' format only supports a single field. "
                f"Got: [{', '.join(map(str, columns))}]"
            )
        for column in columns:
            if base_name(column.type) not in _KINDS:
                raise StatementError(
                    f"The 'KAFKA' format does not support type '{base_name(column.type)}'"
                )

    def python(self, layout: Layout) -> RowCodec:
        return KafkaRows(layout) if layout.columns else VoidRows()

    def spark(self, layout: Layout) -> ColumnCodec:
        return KafkaColumns(layout) if layout.columns else VoidColumns(layout)


def _show_number(packed: str) -> Show:
    return lambda data: java_text(struct.unpack(packed, data)[0])


def _failure(layout: Layout, cause: str) -> str:
    return f"Error deserializing KAFKA message from topic: {layout.topic}\n{cause}"


class KafkaRows(RowCodec):
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._name = layout.columns[0].name
        self._kind = _KINDS[base_name(layout.columns[0].type)]

    def decode(self, data: bytes | None) -> Row | None:
        if data is None:
            return None
        if self._kind.size is not None and len(data) != self._kind.size:
            raise DecodeError(_failure(self._layout, self._kind.complaint))
        return {self._name: self._kind.unpack(data)}

    def encode(self, row: Row | None) -> bytes | None:
        value = None if row is None else row[self._name]
        return None if value is None else self._kind.pack(value)


class KafkaColumns(ColumnCodec):
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._name = layout.columns[0].name
        self._kind = _KINDS[base_name(layout.columns[0].type)]

    def decode(self, data: SparkColumn) -> Fallible:
        value = self._kind.from_binary(data).alias(self._name)
        if self._kind.size is None:
            return Fallible(F.when(data.isNotNull(), F.struct(value)))
        fits = F.octet_length(data) == self._kind.size
        complaint = _failure(self._layout, self._kind.complaint)
        return Fallible(F.when(fits, F.struct(value)), F.when(~fits, F.lit(complaint)))

    def encode(self, row: SparkColumn) -> Fallible:
        return Fallible(self._kind.to_binary(row[self._name]))
