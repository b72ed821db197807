"""PRINT: shows a topic's records as text, guessing their formats.

Nobody says how a topic's records are written. So every format is a possibility until a record
comes that it cannot read; what is shown is the first of those that are left.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from headrace.engine.environment import Environment
from headrace.engine.layouts import with_references
from headrace.formats import FORMATS, REGISTRY_FORMATS
from headrace.formats.base import CodecError, RegistryFormat, Show
from headrace.formats.wire_format import HEADER_SIZE, schema_id
from headrace.kafka.records import PASSING
from headrace.model.errors import HeadraceError
from headrace.sql import ast

if TYPE_CHECKING:
    from headrace.registry.client import RegistryClient
    from headrace.registry.schema import Schema

BATCH = 500
# What a client who does not read leaves waiting, of all partitions.
READ_AHEAD_KIB = 4 * 1024
POLL_SECONDS = 0.2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONG = struct.Struct(">q")


@dataclass(frozen=True)
class Guess:
    """A format that a topic's keys or values may have."""

    name: str
    show: Show


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
                texts.append(guess.show(data))
            except _NOT_SO:
                continue
            left.append(guess)
        self._left = left
        return texts[0] if texts else _escaped(data)


_NOT_SO = (ValueError, TypeError, KeyError, IndexError, RecursionError, struct.error, CodecError)


class PrintedTopic:
    """The output of one PRINT, line by line."""

    def __init__(self, env: Environment, statement: ast.PrintTopic) -> None:
        self._topic = statement.topic
        self._interval = max(statement.interval or 1, 1)
        self._left = statement.limit
        self._polled = 0
        self._connection = env.kafka
        self._keys = Guesses(_key_guesses(env.registry))
        self._values = Guesses(_guesses(env.registry))
        self._told: dict[str, list[str]] = {}
        self._closed = False
        self._polling = threading.Lock()
        starts = _starts(env, statement)
        each = max(READ_AHEAD_KIB // max(len(starts), 1), 64)
        self._consumer: Consumer | None = env.kafka.consumer(
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
        """Ends the output; a thread that polls it then returns soon."""
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


def _starts(env: Environment, statement: ast.PrintTopic) -> Mapping[int, int]:
    topics = env.admin.topics(include_internal=True)
    if statement.topic not in topics:
        similar = [t for t in topics if t.lower() == statement.topic.lower()]
        hint = "\nDid you mean:" + "".join(f"\n\tprint {t};" for t in similar) if similar else ""
        raise HeadraceError(
            f"Could not find topic '{statement.topic}', or the KSQL user does not have permissions "
            f"to list the topic. Topic names are case-sensitive.{hint}"
        )
    admin = env.admin
    offsets = admin.begin_offsets if statement.from_beginning else admin.end_offsets
    return offsets(statement.topic)


def _rowtime(timestamp: int) -> str:
    if timestamp < 0:
        return "N/A"
    at = _EPOCH + timedelta(milliseconds=timestamp)
    return f"{at:%Y/%m/%d %H:%M:%S}.{at.microsecond // 1000:03d} Z"


# ------------------------------------------------------------------------------------ formats


def _guesses(registry: RegistryClient | None) -> list[Guess]:
    """Records that name their schema are told from others at once."""
    registered = [] if registry is None else RegisteredRecords(registry).guesses()
    shows = (show for format_ in FORMATS.values() for show in format_.shows().items())
    return [*registered, *(Guess(*show) for show in shows)]


def _key_guesses(registry: RegistryClient | None) -> list[Guess]:
    """A key may also be that of a window."""
    return [
        guess
        for inner in _guesses(registry)
        for guess in (
            Guess(f"SESSION({inner.name})", _session(inner.show)),
            Guess(f"HOPPING({inner.name})", _window(inner.show)),
            Guess(f"TUMBLING({inner.name})", _window(inner.show)),
            inner,
        )
    ]


def _window(show: Show) -> Show:
    def windowed(data: bytes) -> str:
        (start,) = _LONG.unpack(data[-8:])
        if start < 0:
            raise ValueError("no window begins before 1970")
        return f"[{show(data[:-8])}@{start}/-]"

    return windowed


def _session(show: Show) -> Show:
    def windowed(data: bytes) -> str:
        end, start = _LONG.unpack(data[-16:-8])[0], _LONG.unpack(data[-8:])[0]
        if not 0 <= start <= end:
            raise ValueError("no session ends before it begins")
        return f"[{show(data[:-16])}@{start}/{end}]"

    return windowed


def _escaped(data: bytes) -> str:
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02X}" for b in data)


class RegisteredRecords:
    """Records that name their schema."""

    def __init__(self, registry: RegistryClient) -> None:
        self._registry = registry
        self._schemas: dict[int, Schema | None] = {}

    def guesses(self) -> list[Guess]:
        return [Guess(f.name, self._show(f)) for f in REGISTRY_FORMATS]

    def text(self, data: bytes) -> str | None:
        """What the data says; None if it names no schema, or is not of the one that it names."""
        for guess in self._formats:
            try:
                return guess.show(data)
            except _NOT_SO:
                continue
        return None

    @cached_property
    def _formats(self) -> list[Guess]:
        return self.guesses()

    def _show(self, format_: RegistryFormat) -> Show:
        shows: dict[int, Show] = {}

        def shown(data: bytes) -> str:
            id_ = schema_id(data)
            show = shows.get(id_)
            if show is None:
                schema = self._schema(id_)
                if schema is None or schema.type != format_.schema_type:
                    raise ValueError(f"no {format_.schema_type} schema has the id {id_}")
                show = shows[id_] = format_.show(with_references(self._registry, schema))
            return show(data[HEADER_SIZE:])

        return shown

    def _schema(self, id_: int) -> Schema | None:
        if id_ not in self._schemas:
            self._schemas[id_] = self._registry.by_id(id_)
        return self._schemas[id_]
