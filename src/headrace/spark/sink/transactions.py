"""Exactly once: what a task writes in a micro-batch is one Kafka transaction.

The number of the batch is part of the transaction, as an offset that a group of the task commits
for the sink. A batch that runs again after a crash finds it there, and leaves alone what was
written. See docs/design/0003-exactly-once.md. Runs on executors.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from pyspark import TaskContext

T = TypeVar("T")
Client = tuple[tuple[str, str], ...]

# A task computes while it writes: it may take as long as brokers allow.
TRANSACTION_MS = 900_000
PATIENCE = 60.0
# How long a broker takes to finish a transaction after it has said that it is committed.
SETTLED_SECONDS = 2.0
# How many transactional producers a process keeps for the batches to come.
KEPT = 32

# What Spark tells the tasks of a streaming query.
BATCH, QUERY = "streaming.sql.batchId", "sql.streaming.queryId"

_SHARED = ("bootstrap.servers", "client.", "security.", "sasl.", "ssl.", "socket.", "broker.")


@dataclass(frozen=True)
class Place:
    """The part of a query's output that one task writes in one micro-batch.

    `group` is new with every checkpoint: batch numbers of another one mean nothing here.
    """

    group: str
    topic: str
    task: int
    batch: int

    @property
    def writer_id(self) -> str:
        """The name of the task's producer, and of its group. Each task has a group of its own, as a
        sink may have fewer partitions than there are tasks, and always has the first."""
        return f"{self.group}-{self.task}"

    def reached(self, batch: int = OFFSET_INVALID) -> TopicPartition:
        """Where the group keeps the number of the batch."""
        return TopicPartition(self.topic, 0, batch)

    @classmethod
    def of_task(cls, name: str, topic: str, task: int | None) -> Place:
        """Of the running task; `task` tells it apart from others better than its number does."""
        context = TaskContext.get()
        assert context is not None
        number = context.partitionId() if task is None else task
        batch = context.getLocalProperty(BATCH)
        assert batch is not None, "only a streaming query writes in transactions"
        return cls(f"{name}-{context.getLocalProperty(QUERY)}", topic, number, int(batch))


class Transaction:
    """What a task writes in a micro-batch: all of it can be read, or nothing.

    `done`: it was committed when this batch ran before, so there is nothing left to write.
    """

    def __init__(self, client: Client, settings: Mapping[str, object], place: Place) -> None:
        self._key = (client, place.group, place.task)
        self._place = place
        # Taken out while it is in use: after a failure it is of no use any more.
        writer = _writers.pop(self._key, None)
        if writer is None or not writer.is_last(client, place):
            # Another process wrote since, or none did. From here on all others are fenced off.
            writer = _Writer.open(client, settings, place)
            writer.reached = _reached(client, place)
        self._writer = writer
        self.done = writer.reached is not None and writer.reached > place.batch
        if not self.done:
            writer.producer.begin_transaction()

    @property
    def producer(self) -> Producer:
        return self._writer.producer

    def commit(self) -> None:
        writer, place = self._writer, self._place
        if not self.done:
            reached = place.reached(place.batch + 1)
            _patiently(writer.producer.send_offsets_to_transaction, [reached], writer.group)
            _patiently(writer.producer.commit_transaction)
            writer.reached = place.batch + 1
        _keep(self._key, writer)

    def abort(self) -> None:
        """Gives up what was written; if even that fails, the next one of this place does it."""
        try:
            if not self.done:
                self._writer.producer.abort_transaction(PATIENCE)
        except KafkaException:
            pass


@dataclass
class _Writer:
    producer: Producer
    group: Any
    reached: int | None = None  # the batch after the last one that it committed

    @classmethod
    def open(cls, client: Client, settings: Mapping[str, object], place: Place) -> _Writer:
        own = {
            **settings,
            "transactional.id": place.writer_id,
            "transaction.timeout.ms": TRANSACTION_MS,
        }
        producer = Producer({**own, **dict(client)})
        _patiently(producer.init_transactions)
        consumer = Consumer({**_connection(client), "group.id": place.writer_id})
        try:
            return cls(producer, consumer.consumer_group_metadata())
        finally:
            consumer.close()

    def is_last(self, client: Client, place: Place) -> bool:
        """Whether nobody has written since, or begun to: a transaction that stays open is one of a
        process that was killed, and ends when another producer of its name is opened."""
        try:
            return self.reached == _reached(client, place, SETTLED_SECONDS)
        except KafkaException as e:
            if e.args[0].code() == KafkaError.UNSTABLE_OFFSET_COMMIT:
                return False
            raise


_writers: OrderedDict[tuple[Client, str, int], _Writer] = OrderedDict()
_admins: dict[Client, AdminClient] = {}


def _keep(key: tuple[Client, str, int], writer: _Writer) -> None:
    _writers[key] = writer
    while len(_writers) > KEPT:
        _, dropped = _writers.popitem(last=False)
        dropped.producer.close()


def _reached(client: Client, place: Place, patience: float = PATIENCE) -> int | None:
    """The batch after the last one whose transaction for this place is committed. Fails if one is
    still open after so many seconds."""
    if client not in _admins:
        _admins[client] = AdminClient(_connection(client))
    request = [ConsumerGroupTopicPartitions(place.writer_id, [place.reached()])]

    def ask(timeout: float) -> int:
        futures = _admins[client].list_consumer_group_offsets(
            request, require_stable=True, request_timeout=timeout
        )
        (found,) = futures[place.writer_id].result().topic_partitions
        if found.error is not None:
            raise KafkaException(found.error)
        return int(found.offset)

    offset = _patiently(ask, patience=patience)
    return offset if offset >= 0 else None


def _connection(client: Client) -> dict[str, str | int | float | bool]:
    """What a producer's settings say of the way to Kafka."""
    return {name: value for name, value in client if name.startswith(_SHARED)}


# Unstable: a transaction of the same place is just being finished.
_PASSING = frozenset({KafkaError.UNSTABLE_OFFSET_COMMIT, KafkaError.COORDINATOR_LOAD_IN_PROGRESS})


def _patiently(call: Callable[..., T], *arguments: object, patience: float = PATIENCE) -> T:
    deadline = time.monotonic() + patience
    while True:
        try:
            return call(*arguments, PATIENCE)
        except KafkaException as e:
            error = e.args[0]
            passing = error.retriable() or error.code() in _PASSING
            if not passing or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
