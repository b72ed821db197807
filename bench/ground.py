"""What the benchmarks stand on: one server, its Kafka, and a stop watch."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headrace.client import Client
from headrace.server.launch import LaunchOptions, RunningServer
from headrace.topics.admin import TopicAdmin, TopicSpec
from headrace.topics.client import KafkaConnection
from headrace.topics.ports import free_port

PARTITIONS = 2
EARLIEST = {"auto.offset.reset": "earliest"}


class Ground:
    """A running server and hands on its Kafka and its Spark session."""

    def __init__(self, server: RunningServer) -> None:
        self.server = server
        self.kafka = KafkaConnection({"bootstrap.servers": server.kafka})
        self.admin = TopicAdmin(self.kafka)
        self.client = Client(server.url, properties=EARLIEST, timeout=300)
        self.spark: SparkSession = server.engine.world.spark

    def fill(
        self,
        topic: str,
        count: int,
        record: Callable[[int], tuple[bytes, bytes]],
        partitions: int = PARTITIONS,
        begin: int = 1_700_000_000_000,
        step_ms: int = 1,
    ) -> None:
        """A topic with `count` records of increasing time; made if it is not there."""
        if not self.admin.exists(topic):
            self.admin.create(TopicSpec(topic, partitions))
        producer = self.kafka.producer(linger_ms=50, queue_buffering_max_messages=500_000)
        for i in range(count):
            key, value = record(i)
            while True:
                try:
                    producer.produce(topic, value, key, timestamp=begin + i * step_ms)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.flush()

    def create(self, statement: str, **properties: object) -> str:
        """Runs CREATE … AS; the id of its query."""
        named = {k.replace("__", "."): v for k, v in properties.items()}
        answer = self.client.execute(statement, properties={**EARLIEST, **named})[-1]
        return str(answer["commandStatus"]["queryId"])

    def ours(self, statement: str, *topics: str, **properties: object) -> float:
        """Seconds from a statement until its query has read and written everything."""
        began = time.monotonic()
        query_id = self.create(statement, **properties)
        query = self.server.engine.queries.get(query_id)
        assert query is not None
        self.await_end(lambda: query.streaming, *topics)
        took = time.monotonic() - began
        self.client.execute(f"TERMINATE {query_id};")
        return took

    def by_hand(self, rows: DataFrame, sink: str, *topics: str) -> float:
        """Seconds that a streaming job of Spark takes; `rows` are what its Kafka sink wants."""
        if not self.admin.exists(sink):
            self.admin.create(TopicSpec(sink, PARTITIONS))
        with tempfile.TemporaryDirectory() as checkpoint:
            began = time.monotonic()
            query = (
                rows.writeStream.format("kafka")
                .option("kafka.bootstrap.servers", self.server.kafka)
                .option("topic", sink)
                .option("checkpointLocation", checkpoint)
                .outputMode("update")
                .start()
            )
            self.await_end(lambda: query, *topics)
            took = time.monotonic() - began
            query.stop()
        return took

    def await_end(self, query: Callable[[], Any], *topics: str) -> None:
        """Waits until a streaming query has finished the batch that ends where its topics do."""
        wanted = {t: {str(p): o for p, o in self.admin.end_offsets(t).items()} for t in topics}
        deadline = time.monotonic() + 250
        while not _covers(reached(query()), wanted):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topics} were not read to their ends")
            time.sleep(0.02)


def reached(query: Any) -> Mapping[str, Mapping[str, int]]:
    """Where a streaming query stood in each topic after its last batch."""
    progress = None if query is None else query.lastProgress
    found: dict[str, Mapping[str, int]] = {}
    for source in [] if progress is None else progress["sources"]:
        end = source["endOffset"]
        found |= json.loads(end) if isinstance(end, str) else (end or {})
    return found


def _covers(
    there: Mapping[str, Mapping[str, int]], wanted: Mapping[str, Mapping[str, int]]
) -> bool:
    return all(
        there.get(topic, {}).get(partition, 0) >= offset
        for topic, partitions in wanted.items()
        for partition, offset in partitions.items()
    )


@contextmanager
def ground(**settings: str) -> Iterator[Ground]:
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as data:
        options = LaunchOptions(
            Path(data),
            port=free_port(),
            kafka_port=free_port(),
            registry_port=free_port(),
            settings={k.replace("__", "."): v for k, v in settings.items()},
        )
        with RunningServer(options, lambda text: print(text, file=sys.stderr)) as server:
            made = Ground(server)
            with made.client:
                yield made


def show(figures: Mapping[str, float]) -> None:
    for name, value in figures.items():
        print(f"{name}: {value:,.2f}" if value < 1000 else f"{name}: {value:,.0f}", flush=True)
