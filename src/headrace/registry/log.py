"""The registry's log: the compacted `_schemas` topic, or memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from headrace.kafka.admin import TopicAdmin, TopicSpec
from headrace.kafka.client import KafkaConnection, TopicExistsError
from headrace.kafka.records import NewRecord, RecordReader, RecordWriter

TOPIC = "_schemas"

Entry = tuple[bytes, bytes | None]


class RegistryLog(Protocol):
    """Changes in order; of those with the same key the last one is valid."""

    def replay(self) -> Iterator[Entry]:
        """All changes so far."""

    def append(self, entries: Iterable[Entry]) -> None:
        """Adds changes; they are kept when this returns."""

    def close(self) -> None: ...


class MemoryLog:
    """The log of a registry that ends with its process."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def replay(self) -> Iterator[Entry]:
        yield from self.entries

    def append(self, entries: Iterable[Entry]) -> None:
        self.entries.extend(entries)

    def close(self) -> None:
        """Does nothing."""


class TopicLog:
    """The log in a topic of one partition, in the form of Confluent's registry."""

    def __init__(self, connection: KafkaConnection, topic: str = TOPIC) -> None:
        self._topic = topic
        self._admin = TopicAdmin(connection)
        self._reader = RecordReader(connection, self._admin)
        self._create()
        self._writer = RecordWriter(connection, linger_ms=0, acks="all")

    def replay(self) -> Iterator[Entry]:
        for record in self._reader.read(self._topic):
            if record.key is not None:
                yield record.key, record.value

    def append(self, entries: Iterable[Entry]) -> None:
        self._writer.write_all(
            NewRecord(self._topic, key, value, partition=0) for key, value in entries
        )

    def close(self) -> None:
        self._writer.close()

    def _create(self) -> None:
        if self._admin.exists(self._topic):
            return
        spec = TopicSpec(self._topic, partitions=1, configs={"cleanup.policy": "compact"})
        try:
            self._admin.create(spec)
        except TopicExistsError:
            return
