"""Writes rows to Kafka from the Python workers: one producer per process, timestamps kept.

Spark's own Kafka sink has no timestamp column, so ROWTIME could not survive it. This one is as
fast: rows arrive as Arrow batches and go straight to librdkafka. It runs on executors, so it
closes over values only.

A record that the broker refuses for what it is (too large, a time out of bounds) is skipped and
logged. Everything else that goes wrong fails the task, and Spark writes the batch again.
"""

from __future__ import annotations

import atexit
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headrace.kafka.records import EARLIEST
from headrace.spark.rows.columns import DEAD, FAILED, KEY, LOG, RAW, TASK, TIME, VALUE
from headrace.spark.rows.optimistic import require_small
from headrace.spark.rows.processing_log import (
    SkippedRecord,
    SourceRecord,
    dated,
    production_entry,
    shortened,
    unread_topics,
)
from headrace.spark.sink import fencing
from headrace.spark.sink.partitions import ANY, partitions_of
from headrace.spark.sink.transactions import Place, Transaction

WRITTEN_SCHEMA = "written bigint, failed bigint, unread array<bigint>"
# Under which name Spark reports the counts of a micro-batch.
OBSERVED = "headrace"

# How long the entry of a refused record may take.
LOG_SECONDS = 120.0

# How long the broker may take to tell a topic's partitions.
METADATA_SECONDS = 30.0

# What the broker says of a record that it will never take.
REFUSALS = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
    }
)

PRODUCER_SETTINGS: Mapping[str, str | int | bool] = {
    "partitioner": "murmur2_random",  # what Kafka's Java producer does
    "enable.idempotence": True,  # retries keep order and make no duplicates
    "linger.ms": 2,
    "queue.buffering.max.messages": 200_000,
    "message.timeout.ms": 120_000,
    "compression.type": "none",
    "delivery.report.only.error": True,  # a call to Python for each record is a third of all
}

_producers: dict[tuple[tuple[str, str], ...], Producer] = {}


@dataclass(frozen=True)
class SinkTarget:
    """Where a query's rows go, and the client's settings.

    Log entries and skipped records go to topics of their own, if there are such. With
    `transactions`, which is how they are named, each task of a micro-batch writes exactly once. The
    last `window_bytes` of a key are its window, which has no say in the choice of its partition.
    With `small_rows`, large rows fail the batch: for tables, where writing again changes nothing.
    `sources` are the topics of which it is counted how many records could not be read.
    """

    query: str
    topic: str
    client: tuple[tuple[str, str], ...]
    log_topic: str | None = None
    skipped_topic: str | None = None
    transactions: str | None = None
    window_bytes: int = 0
    small_rows: bool = False
    sources: tuple[str, ...] = ()


def write_to_kafka(rows: DataFrame, target: SinkTarget) -> DataFrame:
    """A DataFrame whose evaluation writes the rows; it yields counts, one row per task: of records
    that were written, of rows that failed, and by source of records that could not be read."""
    return rows.mapInArrow(_writer(target), WRITTEN_SCHEMA)


def observed(counts: DataFrame, target: SinkTarget) -> DataFrame:
    """The same, with the sums in what Spark reports of each micro-batch (`BatchCounts`)."""
    unread = F.col("unread")
    sums = [F.sum(unread[i]).alias(f"unread{i}") for i in range(len(target.sources))]
    return counts.observe(OBSERVED, F.sum("written").alias("written"), *sums)


def _writer(target: SinkTarget) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task: _Task | _TransactionalTask | None = None
        written = failed = 0
        began = fencing.begin()
        try:
            for batch in batches:
                if not batch.num_rows:
                    continue
                if target.small_rows:
                    require_small(batch)
                if FAILED in batch.schema.names:
                    failed += sum(batch.column(FAILED).to_pylist())
                fencing.check(began)
                if task is None:
                    task = _task(target, batch)
                task.produce(batch)
                written += _alive(batch)
            if task is not None:
                task.finish()
        except BaseException:  # here, or in a step before this one
            if task is not None:
                task.abort()
            raise
        unread = [0 if task is None else task.unread[topic] for topic in target.sources]
        counts = {"written": [written], "failed": [failed]}
        yield pa.RecordBatch.from_pydict(
            {**counts, "unread": pa.array([unread], pa.list_(pa.int64()))}
        )

    return write


def _alive(batch: pa.RecordBatch) -> int:
    """The rows that are more than an entry of the log."""
    dead = batch.column(DEAD) if DEAD in batch.schema.names else None
    return int(batch.num_rows if dead is None else batch.num_rows - (pc.sum(dead).as_py() or 0))


def _task(target: SinkTarget, first: pa.RecordBatch) -> _Task | _TransactionalTask:
    if target.transactions is None:
        return _Task(target, producer_for(target.client))
    number = first.column(TASK)[0].as_py() if TASK in first.schema.names else None
    place = Place.of_task(target.transactions, target.topic, number)
    return _TransactionalTask(target, Transaction(target.client, PRODUCER_SETTINGS, place))


@dataclass(frozen=True)
class _Refused:
    """A record that was not taken; `raw` is the source record behind it, if it is kept."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    error: KafkaError
    raw: SourceRecord | None


class _Task:
    """What one Spark task writes."""

    def __init__(self, target: SinkTarget, producer: Producer) -> None:
        self._target = target
        self._producer = producer
        self._in_transaction = target.transactions is not None
        self._failure: KafkaError | None = None
        self._refused: list[_Refused] = []
        self.unread: Counter[str] = Counter()

    def produce(self, batch: pa.RecordBatch) -> None:
        columns = {name: batch.column(name) for name in batch.schema.names}
        keys = columns[KEY].to_pylist()
        values = columns[VALUE].to_pylist()
        times = columns[TIME].to_pylist()
        dead = columns[DEAD].to_pylist() if DEAD in columns else None
        logs = columns.get(LOG)
        raws = columns.get(RAW)
        producer = self._producer
        if 0 in times:
            times = [time or EARLIEST for time in times]
        places = self._places(columns[KEY])
        topic, done, send = self._target.topic, self._done, producer.produce
        for i, value in enumerate(values):
            if dead is not None and dead[i]:
                continue
            if raws is not None:
                done = partial(self._done, raw=raws[i])
            while True:
                try:
                    # By position: names cost half a microsecond.
                    send(topic, value, keys[i], places[i], done, None, times[i])
                    break
                except BufferError:
                    producer.poll(0.05)
                except KafkaException as e:
                    self._refuse(e, _Refused(keys[i], value, times[i], e.args[0], _raw(raws, i)))
                    break
        if logs is not None and logs.null_count < len(logs):
            for texts in logs.drop_null().to_pylist():
                self._send_texts(texts.split("\n"))
        producer.poll(0)

    def _places(self, keys: pa.Array) -> list[int]:
        """The partition of each record, if the client would choose another than ksqlDB."""
        topic, width = self._target.topic, self._target.window_bytes
        if not width:
            return [ANY] * len(keys)
        found = self._producer.list_topics(topic, METADATA_SECONDS).topics[topic]
        return partitions_of(keys, max(len(found.partitions), 1), width)

    def finish(self) -> None:
        """Waits until everything is acknowledged; a task whose records are not has failed."""
        self._flush()
        refused, self._refused = self._refused, []
        for record in refused:
            self._try_alone(record)

    def abort(self) -> None:
        """What was written stays: the batch will write it again."""

    def _flush(self) -> None:
        while self._producer.flush(1.0):
            if self._failure is not None:
                break
        if self._failure is not None:
            raise RuntimeError(f"Failed to write to Kafka: {self._failure.str()}")

    def _done(
        self, error: KafkaError | None, message: Message, raw: pa.StructScalar | None = None
    ) -> None:
        if error is None:
            return
        if error.code() in REFUSALS and not self._in_transaction:
            kept = None if raw is None else raw.as_py()
            when = message.timestamp()[1]
            self._refused.append(_Refused(message.key(), message.value(), when, error, kept))
        elif self._failure is None:
            self._failure = error

    def _refuse(self, failure: KafkaException, record: _Refused) -> None:
        if record.error.code() not in REFUSALS:
            raise failure
        self._refused.append(record)

    def _try_alone(self, record: _Refused) -> None:
        """The broker refuses records by the batch: the others in it may be fine."""
        try:
            self._producer.produce(
                self._target.topic,
                record.value,
                record.key,
                self._places(pa.array([record.key], pa.binary()))[0],
                on_delivery=self._done,
                timestamp=record.timestamp,
            )
            self._flush()
        except KafkaException as e:
            self._refuse(e, record)
        again, self._refused = self._refused, []
        for refused in again:
            self._log_refusal(refused.error.str(), record.raw)

    # ------------------------------------------------------------ entries and skipped records

    def _log_refusal(self, reason: str, raw: SourceRecord | None) -> None:
        target = self._target
        message = f"Error writing to topic {target.topic}: {reason}"
        self._send_entry(production_entry(target.query, "Sink", message))
        if raw is not None:
            self._send_skipped(SkippedRecord.of_row(target.query, "Sink", message, raw))
        self._producer.flush(LOG_SECONDS)

    def _send_texts(self, texts: Sequence[str]) -> None:
        for text in texts:
            skipped = SkippedRecord.read(text)
            if skipped is None:
                self.unread.update(unread_topics(text))
                self._send_entry(dated(text))
            else:
                self._send_skipped(skipped)

    def _send_entry(self, entry: str, *, last: bool = False) -> None:
        """The log must not stop what it is about: an entry too large for it is shortened."""

        def done(error: KafkaError | None, message: Message | None) -> None:
            if error is not None and not last and error.code() in REFUSALS:
                self._send_entry(shortened(entry), last=True)

        if self._target.log_topic is None:
            return
        try:
            self._send(self._target.log_topic, entry.encode(), on_delivery=done)
        except KafkaException as e:
            done(e.args[0], None)

    def _send_skipped(self, skipped: SkippedRecord) -> None:
        target, topic = self._target, self._target.skipped_topic
        if topic is None:
            return

        def done(error: KafkaError | None, message: Message | None) -> None:
            if error is not None and error.code() in REFUSALS:
                reason = f"Error writing to topic {topic}: {error.str()}"
                self._send_entry(production_entry(target.query, skipped.step, reason))
            elif error is not None and self._failure is None:
                self._failure = error

        when = {"timestamp": skipped.timestamp or EARLIEST} if skipped.timestamp >= 0 else {}
        try:
            self._send(
                topic,
                skipped.value,
                skipped.key,
                headers=skipped.headers,
                on_delivery=done,
                **when,
            )
        except KafkaException as e:
            done(e.args[0], None)

    def _send(self, *args: Any, **named: Any) -> None:
        while True:
            try:
                self._producer.produce(*args, **named)
                return
            except BufferError:
                self._producer.poll(0.05)


class _TransactionalTask:
    """What one Spark task writes: all of it, once, or nothing."""

    def __init__(self, target: SinkTarget, transaction: Transaction) -> None:
        self._transaction = transaction
        self._task = _Task(target, transaction.producer)
        self.unread = self._task.unread

    def produce(self, batch: pa.RecordBatch) -> None:
        if not self._transaction.done:
            self._task.produce(batch)

    def finish(self) -> None:
        if not self._transaction.done:
            self._task.finish()
        self._transaction.commit()

    def abort(self) -> None:
        self._transaction.abort()


def _raw(raws: pa.StructArray | None, i: int) -> SourceRecord | None:
    return None if raws is None else raws[i].as_py()


def producer_for(client: tuple[tuple[str, str], ...]) -> Producer:
    """This process's producer for these settings; workers are reused from batch to batch."""
    if client not in _producers:
        producer = _producers[client] = Producer({**PRODUCER_SETTINGS, **dict(client)})
        atexit.register(producer.flush, 5)
    return _producers[client]
