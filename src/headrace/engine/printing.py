"""PRINT: a topic's records as text, whatever they are.

Nobody says how a topic's records are written. So every format is a possibility until a record
comes that it cannot read; what is shown is the first of those that are left.
"""

from __future__ import annotations

import io
import json
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import fastavro
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from headrace.engine.coercing import java_text
from headrace.engine.world import World
from headrace.formats import FORMATS, jackson
from headrace.formats.base import CodecError, Layout, RegistryFormat, RegistrySchema
from headrace.model.errors import HeadraceError
from headrace.model.schema import Column
from headrace.sql import ast
from headrace.topics.records import PASSING

if TYPE_CHECKING:
    from headrace.topics.registry.client import RegistryClient
    from headrace.topics.registry.schema import Schema

BATCH = 500
# What a client who does not read leaves waiting, of all partitions.
READ_AHEAD_KIB = 4 * 1024
POLL_SECONDS = 0.2
MAGIC = 0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONG = struct.Struct(">q")

# Bytes to text; anything that is raised means that the format is another one.
Read = Callable[[bytes], str]


@dataclass(frozen=True)
class Guess:
    """A format that a topic's keys or values may have."""

    name: str
    read: Read


class Guesses:
    """The formats that are still possible for one side of a topic's records."""

    def __init__(self, guesses: Sequence[Guess]) -> None:
        self._left = list(guesses)
        self._seen = False

    @property
    def names(self) -> list[str]:
        if not self._seen:
            return ["¯\\_(ツ)_/¯ - no data processed"]
        return [g.name for g in self._left]

    def text(self, data: bytes | None) -> str:
        """The data in the likeliest format; formats that cannot read it are out."""
        if data is None:
            return "<null>"
        self._seen = True
        texts: list[str] = []
        left = []
        for guess in self._left:
            try:
                texts.append(guess.read(data))
            except _NOT_SO:
                continue
            left.append(guess)
        self._left = left
        return texts[0] if texts else _escaped(data)


_NOT_SO = (ValueError, TypeError, KeyError, IndexError, EOFError, struct.error, CodecError)


class PrintedTopic:
    """The output of one PRINT, line by line."""

    def __init__(self, world: World, statement: ast.PrintTopic) -> None:
        self._topic = statement.topic
        self._interval = max(statement.interval or 1, 1)
        self._left = statement.limit
        self._polled = 0
        self._connection = world.kafka
        self._keys = Guesses(_key_guesses(world.registry))
        self._values = Guesses(_guesses(world.registry))
        self._told: dict[str, list[str]] = {}
        self._closed = False
        self._polling = threading.Lock()
        starts = _starts(world, statement)
        each = max(READ_AHEAD_KIB // max(len(starts), 1), 64)
        self._consumer: Consumer | None = world.kafka.consumer(
            auto_offset_reset="earliest",
            queued_max_messages_kbytes=each,
            fetch_message_max_bytes=each * 1024,
        )
        self._consumer.assign([TopicPartition(self._topic, p, o) for p, o in starts.items()])

    def next_batch(self, timeout: float) -> Sequence[str] | None:
        with self._polling:
            if self._consumer is None or self._left == 0:
                return None
            records = self._poll(self._consumer, timeout)
            return list(self._lines(records)) if records else []

    def close(self) -> None:
        """May come while another thread polls: that one then returns soon."""
        self._closed = True
        with self._polling:
            consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _poll(self, consumer: Consumer, timeout: float) -> list[Message]:
        deadline = time.monotonic() + timeout
        while not self._closed and (left := deadline - time.monotonic()) > 0:
            with self._connection.reaching(self._topic):
                first = consumer.poll(min(left, POLL_SECONDS))
                messages = [] if first is None else [first, *consumer.consume(BATCH, 0)]
            records = [m for m in messages if self._is_record(m.error())]
            if records:
                return records
        return []

    def _is_record(self, error: KafkaError | None) -> bool:
        if error is not None and error.code() not in PASSING:
            raise self._connection.error(error, self._topic)
        return error is None

    def _lines(self, records: Sequence[Message]) -> Iterator[str]:
        before = (self._keys.names[:1], self._values.names[:1])
        lines = [self._line(r) for r in records]
        if before != (self._keys.names[:1], self._values.names[:1]):
            lines = [self._line(r) for r in records]  # what was likeliest has been ruled out
        shown = []
        for line in lines:
            if self._left == 0:
                break
            if self._polled % self._interval == 0:
                shown.append(line)
                if self._left is not None:
                    self._left -= 1
            self._polled += 1
        yield from self._news("Key format: ", self._keys.names)
        yield from self._news("Value format: ", self._values.names)
        yield from shown

    def _news(self, label: str, names: list[str]) -> Iterator[str]:
        if self._told.get(label) == names:
            return
        self._told[label] = names
        none = (
            " does not match any supported format. It may be a STRING with encoding other than "
            "UTF8, or some other format."
        )
        yield label + (" or ".join(names) or none)

    def _line(self, record: Message) -> str:
        key, value = self._keys.text(record.key()), self._values.text(record.value())
        return (
            f"rowtime: {_rowtime(record.timestamp()[1])}, key: {key}, value: {value}, "
            f"partition: {record.partition()}"
        )


def _starts(world: World, statement: ast.PrintTopic) -> Mapping[int, int]:
    topics = world.admin.topics(include_internal=True)
    if statement.topic not in topics:
        similar = [t for t in topics if t.lower() == statement.topic.lower()]
        hint = "\nDid you mean:" + "".join(f"\n\tprint {t};" for t in similar) if similar else ""
        raise HeadraceError(
            f"Could not find topic '{statement.topic}', or the KSQL user does not have permissions "
            f"to list the topic. Topic names are case-sensitive.{hint}"
        )
    admin = world.admin
    offsets = admin.begin_offsets if statement.from_beginning else admin.end_offsets
    return offsets(statement.topic)


def _rowtime(timestamp: int) -> str:
    if timestamp < 0:
        return "N/A"
    at = _EPOCH + timedelta(milliseconds=timestamp)
    return f"{at:%Y/%m/%d %H:%M:%S}.{at.microsecond // 1000:03d} Z"


# ------------------------------------------------------------------------------------ formats


def _guesses(registry: RegistryClient | None) -> list[Guess]:
    registered = [] if registry is None else _Registered(registry).guesses()
    by_name = {g.name: g for g in (*registered, *_PLAIN)}
    order = [
        "AVRO",
        "PROTOBUF",
        "JSON",
        "JSON_SR",
        "KAFKA_INT",
        "KAFKA_BIGINT",
        "KAFKA_DOUBLE",
        "KAFKA_STRING",
    ]
    return [by_name[name] for name in order if name in by_name]


def _key_guesses(registry: RegistryClient | None) -> list[Guess]:
    """A key may also be that of a window."""
    return [
        guess
        for inner in _guesses(registry)
        for guess in (
            Guess(f"SESSION({inner.name})", _session(inner.read)),
            Guess(f"HOPPING({inner.name})", _window(inner.read)),
            Guess(f"TUMBLING({inner.name})", _window(inner.read)),
            inner,
        )
    ]


def _window(read: Read) -> Read:
    def windowed(data: bytes) -> str:
        (start,) = _LONG.unpack(data[-8:])
        if start < 0:
            raise ValueError("no window begins before 1970")
        return f"[{read(data[:-8])}@{start}/-]"

    return windowed


def _session(read: Read) -> Read:
    def windowed(data: bytes) -> str:
        end, start = _LONG.unpack(data[-16:-8])[0], _LONG.unpack(data[-8:])[0]
        if not 0 <= start <= end:
            raise ValueError("no session ends before it begins")
        return f"[{read(data[:-16])}@{start}/{end}]"

    return windowed


def _json(data: bytes) -> str:
    if not data or jackson.parse(data) is jackson.MISSING:
        raise ValueError("empty")
    return _utf8(data)


def _utf8(data: bytes) -> str:
    text = data.decode("utf-8")
    if not text or "\ufffd" in text:
        raise ValueError("not a text")
    return text


def _packed(format_: str) -> Read:
    packed = struct.Struct(format_)
    return lambda data: java_text(packed.unpack(data)[0])


_PLAIN = (
    Guess("JSON", _json),
    Guess("KAFKA_INT", _packed(">i")),
    Guess("KAFKA_BIGINT", _packed(">q")),
    Guess("KAFKA_DOUBLE", _packed(">d")),
    Guess("KAFKA_STRING", _utf8),
)


def _escaped(data: bytes) -> str:
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02X}" for b in data)


class _Registered:
    """Records that name their schema."""

    def __init__(self, registry: RegistryClient) -> None:
        self._registry = registry
        self._schemas: dict[int, Schema | None] = {}
        self._readers: dict[int, Read] = {}

    def guesses(self) -> list[Guess]:
        kinds = {"AVRO": self._avro, "PROTOBUF": self._protobuf, "JSON_SR": self._json_sr}
        types = {"AVRO": "AVRO", "PROTOBUF": "PROTOBUF", "JSON_SR": "JSON"}
        return [Guess(name, self._typed(types[name], read)) for name, read in kinds.items()]

    def _typed(self, type_: str, read: Callable[[int, bytes], str]) -> Read:
        def registered(data: bytes) -> str:
            if len(data) < 5 or data[0] != MAGIC:
                raise ValueError("names no schema")
            id_ = int.from_bytes(data[1:5])
            schema = self._schema(id_)
            if schema is None or schema.type != type_:
                raise ValueError(f"no {type_} schema has the id {id_}")
            return read(id_, data)

        return registered

    def _schema(self, id_: int) -> Schema | None:
        if id_ not in self._schemas:
            self._schemas[id_] = self._registry.by_id(id_)
        return self._schemas[id_]

    def _avro(self, id_: int, data: bytes) -> str:
        read = self._readers.get(id_)
        if read is None:
            schema = self._schemas[id_]
            assert schema is not None
            named: dict[str, Any] = {}
            for text in self._registry.referenced(schema).values():
                fastavro.parse_schema(json.loads(text), named)
            parsed = fastavro.parse_schema(json.loads(schema.text), named)
            read = self._readers[id_] = lambda data: _avro_text(
                fastavro.schemaless_reader(io.BytesIO(data), parsed, None)
            )
        return read(data[5:])

    def _json_sr(self, id_: int, data: bytes) -> str:
        node = jackson.parse(data[5:])
        return "<null>" if node is None else java_text(node)

    def _protobuf(self, id_: int, data: bytes) -> str:
        read = self._readers.get(id_)
        if read is None:
            read = self._readers[id_] = self._protobuf_reader(id_)
        return read(data)

    def _protobuf_reader(self, id_: int) -> Read:
        format_ = FORMATS["PROTOBUF"]
        assert isinstance(format_, RegistryFormat)
        schema = self._schemas[id_]
        assert schema is not None
        references = tuple(self._registry.referenced(schema).items())
        known = RegistrySchema(schema.text, schema.type, references)
        fields = format_.columns_from_registry(known, "value", True, {}, keep_case=True)
        columns = tuple(Column(f.name, f.type) for f in fields)
        codec = format_.python(Layout(columns, writers=((id_, known),)))
        return lambda data: _protobuf_text(codec.decode(data) or {})


def _avro_text(value: object) -> str:
    """As Avro's own classes print it: a text bare, everything else as JSON."""
    if isinstance(value, str):
        return value
    return "<null>" if value is None else json.dumps(value, ensure_ascii=False, default=_shown)


def _shown(value: object) -> object:
    return {"bytes": value.decode("latin-1")} if isinstance(value, bytes) else str(value)


def _protobuf_text(fields: Mapping[str, Any]) -> str:
    """Protobuf's text format, on one line; fields that are not set are not shown."""
    parts: list[str] = []
    for name, value in fields.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                inner = _protobuf_text(item)
                parts.append(f"{name} {{ {inner} }}" if inner else f"{name} {{ }}")
            elif item is not None:
                parts.append(f"{name}: {_protobuf_scalar(item)}")
    return " ".join(parts)


def _protobuf_scalar(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return java_text(value)
