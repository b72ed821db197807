"""The server that the benchmark measures, with its Kafka and its Spark session."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headrace.bench.jobs import Size, Source
from headrace.client import Client
from headrace.engine.queries.persistent import PersistentQuery
from headrace.kafka.admin import TopicAdmin, TopicSpec
from headrace.kafka.client import KafkaConnection
from headrace.kafka.ports import free_port
from headrace.model.errors import HeadraceError
from headrace.server.launch import LaunchOptions, RunningServer

PARTITIONS = 2
EARLIEST = {"auto.offset.reset": "earliest"}
PATIENCE_SECONDS = 600
Announce = Callable[[str], None]


class BenchServer:
    """A running server, with access to its Kafka and its Spark session."""

    def __init__(self, server: RunningServer, data_dir: Path, announce: Announce) -> None:
        self.server = server
        self.data_dir = data_dir
        self.announce = announce
        self.kafka = KafkaConnection({"bootstrap.servers": server.kafka})
        self.admin = TopicAdmin(self.kafka)
        self.client = Client(server.url, properties=EARLIEST, timeout=PATIENCE_SECONDS)
        self.spark: SparkSession = server.engine.env.spark
        self._sources: dict[str, Source] = {}

    # ------------------------------------------------------------------------------- sources

    def source(self, source: Source, size: Size) -> str:
        """The name of a source's stream or table, and of its topic; filled when first asked for."""
        count = source.count(size)
        name = f"{source.name}_{count}"
        if name in self._sources:
            return name
        if source.made_of is not None:
            base = self.source(source.made_of, size)
            self.announce(f"filling {name}: {count:,} records out of {base}")
            self.admin.create(TopicSpec(name, PARTITIONS))
            query = self.create(
                f"CREATE STREAM {name} WITH (kafka_topic='{name}', {source.properties}) "
                f"AS SELECT * FROM {base};"
            )
            self.await_end(lambda: query.streaming, base)
            self.client.execute(f"TERMINATE {query.id};")
        else:
            self.announce(f"filling {name}: {count:,} records")
            self.fill(name, source, range(count))
            self.client.execute(
                f"CREATE {source.kind} {name} ({source.columns}) "
                f"WITH (kafka_topic='{name}', {source.properties});"
            )
        self._sources[name] = source
        return name

    def fill(self, topic: str, source: Source, numbers: range) -> None:
        """Writes the records of these numbers; the topic is made if it is not there."""
        if not self.admin.exists(topic):
            self.admin.create(TopicSpec(topic, PARTITIONS))
        producer = self.kafka.producer(linger_ms=50, queue_buffering_max_messages=500_000)
        for i in numbers:
            key, value = source.record(i)
            headers = None if source.headers is None else source.headers(i)
            while True:
                try:
                    at = source.begin + i * source.step_ms
                    producer.produce(topic, value, key, timestamp=at, headers=headers)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.flush()

    def forget_sources(self) -> None:
        """Drops what was filled, newest first: some are made of others."""
        for name, source in reversed(self._sources.items()):
            self.client.execute(f"DROP {source.kind} {name} DELETE TOPIC;")
        self._sources.clear()

    # ------------------------------------------------------------------------------- queries

    def sink(self, name: str) -> str:
        """A new topic for a side's output."""
        self.admin.create(TopicSpec(name, PARTITIONS))
        return name

    def create(self, statement: str, properties: Mapping[str, object] | None = None) -> Any:
        """Runs CREATE … AS and returns its query."""
        answer = self.client.execute(statement, properties={**EARLIEST, **(properties or {})})
        found = self.server.engine.queries.get(str(answer[-1]["commandStatus"]["queryId"]))
        if not isinstance(found, PersistentQuery):
            raise HeadraceError(f"No query was started by: {statement}")
        return found

    def await_end(self, query: Callable[[], Any], *topics: str) -> None:
        """Waits until a streaming query has finished the batch that ends where its topics do."""
        ends = {t: {str(p): o for p, o in self.admin.end_offsets(t).items()} for t in topics}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not covers(reached(query()), ends):
            failure = getattr(query(), "exception", lambda: None)()
            if failure is not None:
                raise HeadraceError(f"The query failed: {failure}")
            if time.monotonic() > deadline:
                raise HeadraceError(f"{', '.join(topics)}: not read to the end in time")
            time.sleep(0.02)


def reached(query: Any) -> Mapping[str, Mapping[str, int]]:
    """Where a streaming query stood in each topic after its last batch."""
    progress = None if query is None else query.lastProgress
    found: dict[str, Mapping[str, int]] = {}
    for source in [] if progress is None else progress["sources"]:
        end = source["endOffset"]
        for topic, partitions in (json.loads(end) if isinstance(end, str) else end or {}).items():
            # One topic that is read twice is as far as its slower reader.
            before = found.get(topic, partitions)
            found[topic] = {p: min(int(o), int(before.get(p, 0))) for p, o in partitions.items()}
    return found


def position(query: PersistentQuery, topic: str) -> int:
    """How many of a topic's records a query has read."""
    return sum(reached(query.streaming).get(topic, {}).values())


def covers(there: Mapping[str, Mapping[str, int]], ends: Mapping[str, Mapping[str, int]]) -> bool:
    return all(
        there.get(topic, {}).get(partition, 0) >= offset
        for topic, partitions in ends.items()
        for partition, offset in partitions.items()
    )


@contextmanager
def bench_server(announce: Announce) -> Iterator[BenchServer]:
    """A server with default settings on a new broker; nothing of it is left behind."""
    with tempfile.TemporaryDirectory(
        prefix="headrace-bench-", ignore_cleanup_errors=True
    ) as directory:
        options = LaunchOptions(
            Path(directory), port=free_port(), kafka_port=free_port(), registry_port=free_port()
        )
        with RunningServer(options, announce) as server:
            made = BenchServer(server, Path(directory), announce)
            with made.client:
                yield made
