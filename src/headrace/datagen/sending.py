"""Sends rows to a topic, as records of its formats, no faster than wanted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, Message

from headrace.datagen.rows import Row, shown
from headrace.engine.layouts import registered_layout, unregistered_layout
from headrace.formats import format_named
from headrace.formats.base import RegistryFormat, RowCodec, Side
from headrace.formats.json.format import JsonFormat
from headrace.formats.kafka import KafkaFormat
from headrace.kafka.client import KafkaConnection
from headrace.kafka.records import EARLIEST, NewRecord
from headrace.model.errors import HeadraceError
from headrace.model.schema import Column, Namespace
from headrace.model.sources import Serde
from headrace.model.types import Field
from headrace.registry.client import RegistryClient

KEY = "Key"
# Where nothing is said.
KEY_FORMAT, VALUE_FORMAT = KafkaFormat.name, JsonFormat.name
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Target:
    """The topic of the records, their formats, and the fields that are their key and time."""

    topic: str
    key: str
    timestamp: str | None = None
    key_format: str = KEY_FORMAT
    value_format: str = VALUE_FORMAT
    delimiter: str | None = None


class RowEncoder:
    """Rows as records. The registry is asked for only if a format has schemas."""

    def __init__(
        self, target: Target, columns: Sequence[Field], registry: Callable[[], RegistryClient]
    ) -> None:
        self._target = target
        key = next(c for c in columns if c.name == target.key)
        values = [Column(c.name, c.type) for c in columns]
        keys = [Column(KEY, key.type, Namespace.KEY)]
        # A single key is bare where its format lets it be, a value never.
        self._key = _codec(Serde(target.key_format, False), keys, "key", target.topic, registry)
        given = () if target.delimiter is None else (("delimiter", target.delimiter),)
        value = Serde(target.value_format, True, given)
        self._value = _codec(value, values, "value", target.topic, registry)

    def record(self, row: Row) -> NewRecord:
        target = self._target
        at = None if target.timestamp is None else max(EARLIEST, row[target.timestamp])
        return NewRecord(
            target.topic,
            self._key.encode({KEY: row[target.key]}),
            self._value.encode(dict(row)),
            timestamp=at,
        )


def _codec(
    serde: Serde,
    columns: Sequence[Column],
    side: Side,
    topic: str,
    registry: Callable[[], RegistryClient],
) -> RowCodec:
    format_named(serde.format).check(columns, side, serde.wrap, dict(serde.properties))
    format_, layout = unregistered_layout(serde, columns, side, topic)
    if isinstance(format_, RegistryFormat):
        layout = registered_layout(registry(), format_, layout)
    return format_.python(layout)


class Sender:
    """Sends records; the first that Kafka does not take ends it with an error."""

    def __init__(self, connection: KafkaConnection, say: Callable[[str], None] | None) -> None:
        self._connection = connection
        self._say = say
        self._producer = connection.idempotent_producer(client_id="headrace-datagen")
        self._failure: HeadraceError | None = None
        self.sent = 0

    def send(self, record: NewRecord, key: Any, row: Row) -> None:
        self._check()

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._failure = self._connection.error(error, record.topic)
                return
            self.sent += 1
            if self._say is not None:
                self._say(f"[{key}] --> ({shown(row)}) ts:{message.timestamp()[1]}")

        while True:
            try:
                with self._connection.reaching(record.topic):
                    self._producer.produce(
                        record.topic,
                        record.value,
                        record.key,
                        timestamp=record.timestamp or 0,
                        on_delivery=delivered,
                    )
                self._producer.poll(0)
                return
            except BufferError:  # the local queue is full: let some of it go out
                self._producer.poll(POLL_SECONDS)

    def flush(self) -> None:
        """Returns when all records are in the topic."""
        left = self._producer.flush(self._connection.timeout)
        self._check()
        if left:
            raise self._connection.unavailable("records were not acknowledged in time")

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure


def paced(
    count: int | None,
    rate: float | None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[int]:
    """Counts up to `count`, or for ever, at most `rate` numbers a second."""
    began, number = clock(), 0
    while count is None or number < count:
        if rate is not None:
            early = began + number / rate - clock()
            if early > 0:
                sleep(early)
        yield number
        number += 1
