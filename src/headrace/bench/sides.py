"""The sides of a comparison, each of which runs a job until everything is written."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from pyspark.sql import DataFrame

from headrace.bench.bench_server import BenchServer
from headrace.bench.figures import BY_HAND, HEADRACE, Absent
from headrace.bench.jobs import Hand, Job, Size
from headrace.spark.runtime.kafka_source import consumer_options, stream_topic
from headrace.spark.sink.kafka import SinkTarget, write_to_kafka

Topics = Mapping[str, str]
MAX_PER_BATCH = 500_000  # as Headrace's default


class Side(Protocol):
    """One side of a comparison. `why_not` says why it cannot run a job, `seconds` runs one until
    all is written, `running` keeps one running, `spent` says where the last job's seconds went, if
    known."""

    name: str
    spent: Mapping[str, float]

    def why_not(self, job: Job) -> str | None: ...

    def seconds(self, job: Job, size: Size, sink: str) -> float: ...

    def running(self, job: Job, topics: Topics, sink: str) -> Any: ...


def spent(query: Any, took: float) -> dict[str, float]:
    """Where the seconds of a streaming query went, by Spark's names for the parts of a batch;
    `outside` is before the first batch and between batches."""
    parts: Counter[str] = Counter()
    for progress in query.recentProgress:
        parts.update(progress["durationMs"])
    outside = took - parts.pop("triggerExecution", 0) / 1000
    return {"outside": outside, **{name: ms / 1000 for name, ms in parts.items()}}


def topics_of(at: BenchServer, job: Job, size: Size) -> dict[str, str]:
    return {source.name: at.source(source, size) for source in job.sources}


class Ours:
    name = HEADRACE

    def __init__(self, at: BenchServer) -> None:
        self._at = at
        self.spent: Mapping[str, float] = {}

    def why_not(self, job: Job) -> str | None:
        return None

    def seconds(self, job: Job, size: Size, sink: str) -> float:
        topics = topics_of(self._at, job, size)
        with self.running(job, topics, sink) as query:
            self._at.await_end(lambda: query.streaming, *topics.values())
            took: float = time.monotonic() - query.started_at
            self.spent = spent(query.streaming, took)
        return took

    @contextmanager
    def running(self, job: Job, topics: Topics, sink: str) -> Iterator[Any]:
        query = self._at.create(job.statement(sink, topics), job.properties)
        try:
            yield query
        finally:
            self._at.client.execute(f"TERMINATE {query.id}; DROP {job.makes} {sink};")


class ByHand:
    """The job in PySpark, on the server's own session: the limit of our engine."""

    name = BY_HAND

    def __init__(self, at: BenchServer) -> None:
        self._at = at
        self._started_at = 0.0
        self.spent: Mapping[str, float] = {}

    def why_not(self, job: Job) -> str | None:
        return job.by_hand.reason if isinstance(job.by_hand, Absent) else None

    def seconds(self, job: Job, size: Size, sink: str) -> float:
        topics = topics_of(self._at, job, size)
        with self.running(job, topics, sink) as query:
            self._at.await_end(lambda: query, *topics.values())
            took = time.monotonic() - self._started_at
            self.spent = spent(query, took)
        return took

    @contextmanager
    def running(self, job: Job, topics: Topics, sink: str) -> Iterator[Any]:
        at = self._at
        options = consumer_options(at.kafka.java_settings)

        def read(source: str, headers: bool = False) -> DataFrame:
            topic = topics[source]
            return stream_topic(at.spark, topic, options, "earliest", MAX_PER_BATCH, headers)

        assert callable(job.by_hand)
        hand = job.by_hand(read)
        with tempfile.TemporaryDirectory(dir=at.data_dir, ignore_cleanup_errors=True) as checkpoint:
            writer = (
                self._writer(hand, sink)
                .option("checkpointLocation", checkpoint)
                .outputMode(hand.mode)
            )
            self._started_at = time.monotonic()
            query = writer.start()
            try:
                yield query
            finally:
                query.stop()

    def _writer(self, hand: Hand, sink: str) -> Any:
        if "$key" in hand.rows.columns:
            client = self._at.kafka.producer_settings
            target = SinkTarget("by_hand", sink, tuple(sorted(client.items())))
            return write_to_kafka(hand.rows, target).writeStream.format("noop")
        return (
            hand.rows.writeStream.format("kafka")
            .option("kafka.bootstrap.servers", self._at.server.kafka)
            .option("topic", sink)
        )
