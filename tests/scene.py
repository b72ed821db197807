"""What end-to-end tests say: statements, records in, records out."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from headrace.client import Client, ClientError, ConnectionFailed
from headrace.kafka.admin import TopicAdmin, TopicSpec
from headrace.kafka.client import KafkaConnection
from headrace.kafka.records import (
    Headers,
    NewRecord,
    Record,
    RecordReader,
    RecordWriter,
)

PATIENCE = 90.0


@dataclass(frozen=True)
class Entry:
    """An entry of the processing log."""

    logger: str
    message: dict[str, Any]

    @property
    def detail(self) -> dict[str, Any]:
        (detail,) = (v for k, v in self.message.items() if k != "type" and v is not None)
        return dict(detail)


def record(
    value: object = None,
    key: str | None = None,
    headers: Headers = (),
    at: int = 1,
    partition: int | None = None,
) -> dict[str, Any]:
    """A record to write: dicts become JSON, bytes stay as they are."""
    data = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
    return {
        "value": data,
        "key": key.encode() if key is not None else None,
        "headers": headers,
        "timestamp": at,
        "partition": partition,
    }


class Scene:
    """A server under test, with a client and hands on its Kafka."""

    def __init__(self, url: str, kafka: str) -> None:
        self.url = url
        self.kafka = KafkaConnection({"bootstrap.servers": kafka})
        self.admin = TopicAdmin(self.kafka)
        self.client = Client(url, properties={"auto.offset.reset": "earliest"}, timeout=PATIENCE)
        self._writer = RecordWriter(self.kafka)
        self._reader = RecordReader(self.kafka)

    def close(self) -> None:
        self.client.close()
        self._writer.close()

    # ---------------------------------------------------------------------- statements

    def sql(self, text: str, **properties: object) -> list[dict[str, Any]]:
        named = {k.replace("__", "."): v for k, v in properties.items()}
        return self.client.execute(text, properties=named)

    def refused(self, text: str, **properties: object) -> str:
        """The words in which a statement is refused."""
        try:
            answer = self.sql(text, **properties)
        except ClientError as error:
            return str(error)
        raise AssertionError(f"accepted: {text}\n{answer}")

    def create(self, text: str, **properties: object) -> str:
        """Runs CREATE … AS or INSERT INTO … SELECT; the id of its query."""
        answer = self.sql(text, **properties)[-1]
        return str(answer["commandStatus"]["queryId"])

    @contextmanager
    def query(self, text: str, **properties: object) -> Iterator[str]:
        """A persistent query that ends with the block."""
        query_id = self.create(text, **properties)
        try:
            yield query_id
        finally:
            self.sql(f"TERMINATE {query_id};")

    def push(self, text: str, count: int, **properties: object) -> list[tuple[object, ...]]:
        """The first rows of a push query."""
        rows: list[tuple[object, ...]] = []
        named = {k.replace("__", "."): v for k, v in properties.items()}
        client = Client(self.url, properties={**self.client.properties, **named})
        with client, client.stream(text) as stream, suppress(ConnectionFailed):
            patience = threading.Timer(PATIENCE, client.close_query, [stream.query_id])
            patience.start()
            for row in stream:
                rows.append(tuple(row))
                if len(rows) == count:
                    break
            patience.cancel()
        return rows

    def pull(self, text: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in self.client.pull(text)]

    def headrace(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command line, as a user runs it against this server."""
        command = [sys.executable, "-m", "headrace.cli.main", "cli", self.url, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    # ------------------------------------------------------------------------- records

    def topic(self, name: str, partitions: int = 1, **settings: str) -> str:
        dotted = {k.replace("_", "."): v for k, v in settings.items()}
        self.admin.create(TopicSpec(name, partitions, 1, dotted))
        return name

    def write(self, topic: str, *records: dict[str, Any]) -> None:
        self._writer.write_all([NewRecord(topic, **r) for r in records])

    def records(self, topic: str, count: int) -> list[Record]:
        """All records of a topic, once there are so many; more than that is wrong."""
        found = self.wait(lambda: self.all(topic), lambda records: len(records) >= count)
        assert len(found) == count, _listed(found)
        return found

    def all(self, topic: str) -> list[Record]:
        """The records of a topic as of now."""
        return list(self._reader.read(topic))

    def values(self, topic: str, count: int) -> list[Any]:
        return [
            None if r.value is None else json.loads(r.value) for r in self.records(topic, count)
        ]

    def log(self, query_id: str, count: int, topic: str | None = None) -> list[Entry]:
        """A query's entries in the processing log, once there are so many."""
        name = topic or "default_ksql_processing_log"

        def read() -> list[Entry]:
            bodies = [json.loads(r.value) for r in self._reader.read(name) if r.value]
            entries = [Entry(b["logger"], b["message"]) for b in bodies]
            return [e for e in entries if e.logger.startswith(f"processing.{query_id}.")]

        found = self.wait(read, lambda entries: len(entries) >= count)
        assert len(found) == count, _listed(found)
        return found

    def wait(
        self, look: Callable[[], Any], good: Callable[[Any], bool], patience: float = PATIENCE
    ) -> Any:
        """Looks until it is good; what it saw last if patience ends."""
        deadline = time.monotonic() + patience
        while not good(seen := look()):
            if time.monotonic() > deadline:
                raise AssertionError(f"Waited in vain, saw: {_listed(seen)}\n{self._errors()}")
            time.sleep(0.1)
        return seen

    def drained(self, query_id: str, *topics: str, patience: float = PATIENCE) -> None:
        """Waits until a query has read its topics to their ends."""
        ends = {t: self.admin.end_offsets(t) for t in topics}
        self.wait(lambda: self._read_so_far(query_id), lambda read: _covers(read, ends), patience)

    def _read_so_far(self, query_id: str) -> dict[str, dict[int, int]]:
        sinks = next(q for q in self.client.queries() if q["id"] == query_id)["sinks"]
        described = self.client.describe(f"`{sinks[0]}`", extended=True)
        return {
            topic["kafkaTopic"]: {p["partition"]: p["consumerOffset"] for p in topic["offsets"]}
            for group in described["queryOffsetSummaries"]
            for topic in group["topicSummaries"]
        }

    def _errors(self) -> str:
        told = []
        for query in self.client.queries():
            described = self.sql(f"EXPLAIN {query['id']};")[0]["queryDescription"]
            told += [f"{query['id']}: {e['errorMessage']}" for e in described["queryErrors"]]
        return "\n".join(told)


def _covers(read: dict[str, dict[int, int]], ends: dict[str, dict[int, int]]) -> bool:
    return all(
        read.get(topic, {}).get(partition, 0) >= end
        for topic, partitions in ends.items()
        for partition, end in partitions.items()
    )


def _listed(items: object) -> str:
    return "\n".join(map(repr, items[:20])) if isinstance(items, list) else repr(items)
