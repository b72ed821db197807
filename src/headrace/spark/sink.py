"""Writes rows to Kafka from the Python workers: one producer per process, timestamps kept.

Spark's own Kafka sink has no timestamp column, so ROWTIME could not survive it. This one is as
fast: rows arrive as Arrow batches and go straight to librdkafka. It runs on executors, so it
closes over plain values only.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from headrace.topics.epoch import EpochProducer

# The columns a DataFrame must have to be written.
KEY, VALUE, TIME, DEAD, LOG = "$key", "$value", "$time", "$dead", "$log"
FAILED = "$failed"  # if there: rows whose log entries are found elsewhere
WRITTEN_SCHEMA = "written bigint, failed bigint"

# How long a record of time 0 may take.
EPOCH_SECONDS = 120.0

_producers: dict[tuple[tuple[str, str], ...], Any] = {}
_epoch_producers: dict[tuple[tuple[str, str], ...], EpochProducer] = {}


@dataclass(frozen=True)
class SinkTarget:
    """Where rows go: the topic, the processing log's topic (if any), and the client's settings."""

    topic: str
    log_topic: str | None
    client: tuple[tuple[str, str], ...]


def write_to_kafka(rows: DataFrame, target: SinkTarget) -> DataFrame:
    """A DataFrame whose evaluation writes the rows; it yields counts, one row per task."""
    return rows.mapInArrow(_writer(target), WRITTEN_SCHEMA)


def _writer(target: SinkTarget) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        producer: Any = None
        delivery = Delivery()
        count = failed = 0
        for batch in batches:
            if not batch.num_rows:
                continue
            if producer is None:
                producer = producer_for(target.client)
            count += _produce(producer, batch, target, delivery)
            if FAILED in batch.schema.names:
                failed += sum(batch.column(FAILED).to_pylist())
        if producer is not None:
            delivery.finish(producer)
        yield pa.RecordBatch.from_pydict({"written": [count], "failed": [failed]})

    return write


def _produce(producer: Any, batch: pa.RecordBatch, target: SinkTarget, delivery: Delivery) -> int:
    columns = {name: batch.column(name) for name in batch.schema.names}
    keys = columns[KEY].to_pylist()
    values = columns[VALUE].to_pylist()
    times = columns[TIME].to_pylist()
    dead = columns[DEAD].to_pylist() if DEAD in columns else None
    logs = columns[LOG].to_pylist() if LOG in columns else None
    if 0 in times:
        producer = _TwoProducers(producer, epoch_producer_for(target.client))
    topic, done, send = target.topic, delivery.done, producer.produce
    for i, value in enumerate(values):
        if dead is None or not dead[i]:
            while True:
                try:
                    send(topic, value, keys[i], on_delivery=done, timestamp=times[i])
                    break
                except BufferError:
                    producer.poll(0.05)
        if logs is not None and logs[i] and target.log_topic is not None:
            for entry in logs[i]:
                _send_entry(producer, target.log_topic, entry, done)
    producer.poll(0)
    if isinstance(producer, _TwoProducers):
        producer.finish()
    return len(values)


def _send_entry(producer: Any, topic: str, entry: str, done: Callable[..., None]) -> None:
    while True:
        try:
            producer.produce(topic, entry.encode(), on_delivery=done)
            return
        except BufferError:
            producer.poll(0.05)


class _TwoProducers:
    """Keeps the order of rows of which some bear the time 0, which the usual client cannot write:
    before the one writes, the other has finished."""

    def __init__(self, usual: Any, epoch: EpochProducer) -> None:
        self._usual = usual
        self._epoch = epoch
        self.poll = usual.poll

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        on_delivery: Callable[..., None],
        timestamp: int | None = None,
    ) -> None:
        if timestamp == 0:
            self._usual.flush()
            self._epoch.send(topic, value, key)
            return
        self.finish()
        more = {} if timestamp is None else {"timestamp": timestamp}
        self._usual.produce(topic, value, key, on_delivery=on_delivery, **more)

    def finish(self) -> None:
        self._epoch.flush(EPOCH_SECONDS)


class Delivery:
    """Remembers the first failure among the records of one task."""

    def __init__(self) -> None:
        self.failure: Any = None

    def done(self, error: Any, message: Any) -> None:
        if error is not None and self.failure is None:
            self.failure = error

    def finish(self, producer: Any) -> None:
        """Waits until everything is acknowledged; a task whose records are not has failed."""
        while producer.flush(1.0):
            if self.failure is not None:
                break
        if self.failure is not None:
            raise RuntimeError(f"Failed to write to Kafka: {self.failure.str()}")


def producer_for(client: tuple[tuple[str, str], ...]) -> Any:
    """This process's producer for these settings; workers are reused from batch to batch."""
    from confluent_kafka import Producer

    if client not in _producers:
        settings: dict[str, Any] = {
            "partitioner": "murmur2_random",  # what Kafka's Java producer does
            "enable.idempotence": True,  # retries keep order and make no duplicates
            "linger.ms": 2,
            "queue.buffering.max.messages": 200_000,
            "message.timeout.ms": 120_000,
            "compression.type": "none",
            **dict(client),
        }
        producer = _producers[client] = Producer(settings)
        atexit.register(producer.flush, 5)
    return _producers[client]


def epoch_producer_for(client: tuple[tuple[str, str], ...]) -> EpochProducer:
    """This process's producer for records of time 0; most processes never need one."""
    if client not in _epoch_producers:
        _epoch_producers[client] = EpochProducer(dict(client))
    return _epoch_producers[client]
