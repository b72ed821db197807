"""Reads and writes records: synchronous writes, reading a topic to its end, following it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Event
from types import TracebackType
from typing import Self, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from headrace.kafka.admin import TopicAdmin
from headrace.kafka.client import SILENCE, KafkaConnection
from headrace.model.errors import HeadraceError

Headers = tuple[tuple[str, bytes | None], ...]

BATCH = 1000
POLL_SECONDS = 0.1
GIVE_UP_SECONDS = 2.0
# The earliest time that a record is written with: librdkafka takes 0 for "now". The few records of
# time 0, as tests and broken clocks have them, are a millisecond late. A second client for them
# alone could not log in everywhere, and one such record would then stop its query for ever.
EARLIEST = 1
# News that need no answer: the client goes on by itself.
PASSING = SILENCE | {KafkaError._PARTITION_EOF, KafkaError._MAX_POLL_EXCEEDED}


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it stands in a topic. `timestamp` is in milliseconds."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to be written.

    Without a partition, the key's murmur2 hash chooses it, as in the Java client. Without a
    timestamp it gets the current time. The earliest time is 1: see `EARLIEST`.
    """

    topic: str
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    timestamp: int | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """Where a written record stands."""

    partition: int
    offset: int


class RecordWriter:
    """Writes records and waits until the broker has them. Safe to share between threads."""

    def __init__(self, connection: KafkaConnection, **settings: str | int | bool) -> None:
        self._connection = connection
        timeout = int(connection.timeout * 1000)
        given = connection.settings.get("delivery.timeout.ms")
        self._settings = {**({"delivery_timeout_ms": timeout} if given is None else {}), **settings}
        self._renewing = threading.Lock()
        self._producer = connection.idempotent_producer(**self._settings)

    def write(self, record: NewRecord) -> Written:
        return self.write_all([record])[0]

    def write_all(self, records: Iterable[NewRecord]) -> list[Written]:
        """Writes in order; fails if any record could not be written, after all were tried."""
        deliveries: list[_Delivery] = []
        producer = self._producer
        for record in records:
            delivery = _Delivery(record.topic)
            self._produce(producer, record, delivery)
            deliveries.append(delivery)
        # Longer than the client tries: what it gives up on is not written afterwards.
        producer.flush(self._connection.timeout + GIVE_UP_SECONDS)
        if any(d.error is not None and d.error.fatal() for d in deliveries):
            self._renew(producer)
        for delivery in deliveries:
            if delivery.error is not None:
                raise self._failure(delivery.error, delivery.topic)
            if delivery.written is None:
                raise self._connection.unavailable("a record was not acknowledged in time")
        return [delivery.written for delivery in deliveries if delivery.written is not None]

    def close(self) -> None:
        self._producer.flush(self._connection.timeout)
        self._producer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _renew(self, failed: Producer) -> None:
        """Replaces a producer that has lost its place in the order of its records: it would refuse
        all others."""
        with self._renewing:
            if self._producer is failed:
                self._producer = self._connection.idempotent_producer(**self._settings)

    def _produce(self, producer: Producer, record: NewRecord, delivery: _Delivery) -> None:
        deadline = time.monotonic() + self._connection.timeout
        while True:
            try:
                producer.produce(
                    record.topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers) or None,
                    timestamp=_timestamp(record),
                    partition=-1 if record.partition is None else record.partition,
                    on_delivery=delivery.report,
                )
            except BufferError:
                # The local queue is full: let deliveries finish, then try again.
                if time.monotonic() > deadline:
                    raise self._connection.unavailable("its queue stays full") from None
                producer.poll(POLL_SECONDS)
                continue
            except KafkaException as failure:
                if failure.args[0].fatal():
                    self._renew(producer)
                raise self._failure(failure.args[0], record.topic) from failure
            producer.poll(0)
            return

    def _failure(self, error: KafkaError, topic: str) -> HeadraceError:
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return HeadraceError(
                f"A record is too large for topic '{topic}': raise its max.message.bytes "
                "and this client's max.request.size."
            )
        return self._connection.error(error, topic)


def _timestamp(record: NewRecord) -> int:
    """For librdkafka, to which 0 means now."""
    return 0 if record.timestamp is None else max(record.timestamp, EARLIEST)


class _Delivery:
    """The delivery result of one record, set by the client library."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.written: Written | None = None
        self.error: KafkaError | None = None

    def report(self, error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is None and partition is not None and offset is not None:
            self.written = Written(partition, offset)
        else:
            self.error = error


class RecordReader:
    """Reads topics without a consumer group, from positions that the caller gives."""

    def __init__(self, connection: KafkaConnection, admin: TopicAdmin | None = None) -> None:
        self._connection = connection
        self._admin = admin or TopicAdmin(connection)

    def read(
        self,
        topic: str,
        start: Mapping[int, int] | None = None,
        end: Mapping[int, int] | None = None,
    ) -> Iterator[Record]:
        """The records from `start` (or the beginning) to `end` (or the current end), by partition.

        Order is kept within a partition. Offsets that are gone count as the oldest there is.
        """
        begin = self._admin.begin_offsets(topic)
        ends = dict(self._admin.end_offsets(topic) if end is None else end)
        first = {p: max(offset, (start or begin).get(p, offset)) for p, offset in begin.items()}
        left = {p for p, offset in first.items() if offset < ends.get(p, 0)}
        if not left:
            return
        consumer = self._connection.consumer(enable_partition_eof=True)
        try:
            consumer.assign([TopicPartition(topic, p, first[p]) for p in sorted(left)])
            heard = time.monotonic()
            while left:
                for message in self._poll(consumer, topic):
                    heard = time.monotonic()
                    record = _record(message)
                    partition = record.partition if record else message.partition()
                    assert partition is not None
                    if record is not None and partition in left and record.offset < ends[partition]:
                        yield record
                    # Markers of transactions fill offsets without being records: the last record
                    # may stand before the end, and then only the partition's end tells.
                    if record is None or record.offset >= ends[partition] - 1:
                        left.discard(partition)
                if time.monotonic() - heard > self._connection.timeout:
                    raise self._connection.unavailable(f"topic '{topic}' could not be read")
        finally:
            consumer.close()

    def tail(
        self, topic: str, start: Mapping[int, int] | None = None, stop: Event | None = None
    ) -> Iterator[Record]:
        """The records from `start` (or the current end) on, as they come, until `stop` is set."""
        positions = self._admin.end_offsets(topic) | dict(start or {})
        consumer = self._connection.consumer()
        try:
            consumer.assign([TopicPartition(topic, p, o) for p, o in positions.items()])
            while stop is None or not stop.is_set():
                for message in self._poll(consumer, topic):
                    if (record := _record(message)) is not None:
                        yield record
        finally:
            consumer.close()

    def _poll(self, consumer: Consumer, topic: str) -> list[Message]:
        """What has come; waits a moment if there is nothing."""
        with self._connection.reaching(topic):
            first = consumer.poll(POLL_SECONDS)
            # To ask for a batch right away would wait until it is full.
            messages = [] if first is None else [first, *consumer.consume(BATCH, 0)]
        for message in messages:
            error = message.error()
            if error is not None and error.code() not in PASSING:
                raise self._connection.error(error, topic)
        return messages


def _record(message: Message) -> Record | None:
    """The message as a record; None for the news that a partition's end is reached."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    if message.error() is not None or topic is None or partition is None or offset is None:
        return None
    return Record(
        topic,
        partition,
        offset,
        message.timestamp()[1],
        message.key(),
        message.value(),
        _headers(message),
    )


def _headers(message: Message) -> Headers:
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    return tuple(headers)
