"""End-to-end latency: from writing a record to reading its result."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from confluent_kafka import TopicPartition

from headrace.bench.bench_server import PARTITIONS, BenchServer
from headrace.bench.figures import FLINK, Absent, Bar, Cell, Row, percentile, samples
from headrace.bench.jobs import Job, Size
from headrace.bench.measures import Measure, Run
from headrace.bench.sides import Side, topics_of
from headrace.bench.workloads import aggregates, joins, stateless
from headrace.kafka.records import NewRecord, RecordWriter

TRIPS, SECONDS, QUICK_SECONDS = 100, 15.0, 3.0  # whichever comes first, but
FEWEST, QUICK_FEWEST = 9, 4
# The same, before it counts. Java goes on compiling for hundreds of micro-batches.
WARM_UP, WARM_UP_SECONDS, QUICK_WARM_UP_SECONDS = 250, 90.0, 6.0
QUIET_SECONDS = 3.0
BACKLOG = 1_000


@dataclass(frozen=True)
class LatencyCase:
    """A job, and numbers of records of its first source that each give one output."""

    name: str
    title: str
    job: Job
    bar: float
    number: int = 0
    step: int = 1
    quick: bool = True


_KERNEL = replace(
    aggregates.aggregate(100, ()),
    select="SELECT k, LATEST_BY_OFFSET(n) AS c, COUNT(*) AS s FROM {numbers_100} GROUP BY k",
    by_hand=None,
    streams=None,
)
WAYS = (
    LatencyCase("stateless", "filter and projection", stateless.JOBS[0], 200, number=400, step=500),
    LatencyCase("aggregate", "COUNT and SUM", aggregates.aggregate(100, ()), 400),
    LatencyCase("kernel", "an aggregate that is a kernel", _KERNEL, 400, quick=False),
    LatencyCase("join", "stream-table join", joins.lookup(1_000), 400),
)


def _latency(run: Run) -> Iterator[Row]:
    for way in WAYS:
        if run.quick and not way.quick:
            continue
        half: dict[str, Cell] = {}
        most: dict[str, Cell] = {}
        for side in run.sides:
            if side.name == FLINK or _form(way.job, side) is None:
                continue
            reason = side.why_not(way.job)
            if reason is not None:
                half[side.name] = most[side.name] = Absent(reason)
                continue
            trips = _trips(run.at, side, way, run.quick)
            run.announce(f"{side.name}: {len(trips)} records, p50 {percentile(trips, 50):.0f} ms")
            parts = max(1, min(run.repeats, len(trips) // 3))
            half[side.name] = samples(percentile(trips[i::parts], 50) for i in range(parts))
            most[side.name] = samples([percentile(trips, 99)])
        name, bar = f"latency-{way.name}", Bar(way.bar, at_most=True)
        title = f"one record, {way.title}"
        yield Row(f"{name}-p50", f"{title}, p50", "ms", half, (bar,))
        yield Row(f"{name}-p99", f"{title}, p99", "ms", most)
    run.at.forget_sources()


def _form(job: Job, side: Side) -> object:
    forms = {"PySpark": job.by_hand, "Kafka Streams": job.streams, "Flink": job.flink}
    return forms.get(side.name, job.select)


def _trips(at: BenchServer, side: Side, way: LatencyCase, quick: bool) -> list[float]:
    """Milliseconds of records that go in one after the other."""
    warm_up, counted, fewest = WARM_UP_SECONDS, SECONDS, FEWEST
    if quick:
        warm_up, counted, fewest = QUICK_WARM_UP_SECONDS, QUICK_SECONDS, QUICK_FEWEST
    topics = topics_of(at, way.job, Size(BACKLOG))
    sink = at.sink(f"way_{way.name}_{side.name.lower().replace(' ', '_')}")
    source = way.job.sources[0]
    consumer = at.kafka.consumer(fetch_wait_max_ms=5)
    with side.running(way.job, topics, sink), RecordWriter(at.kafka, linger_ms=0) as writer:
        consumer.assign([TopicPartition(sink, p, 0) for p in range(PARTITIONS)])
        _await_quiet(consumer)
        numbers = count(way.number, way.step)

        def send(most: int, seconds: float) -> Iterator[float]:
            began = time.monotonic()
            for done in range(most):
                if done >= fewest and time.monotonic() - began > seconds:
                    return
                record = NewRecord(topics[source.name], *source.record(next(numbers)))
                yield _trip(consumer, writer, record)

        list(send(WARM_UP, warm_up))
        took = list(send(TRIPS, counted))
    consumer.close()
    at.admin.delete(sink)
    return took


def _trip(consumer: Any, writer: RecordWriter, record: NewRecord) -> float:
    began = time.monotonic()
    writer.write(record)
    while (message := consumer.poll(30)) is None or message.error():
        continue
    return (time.monotonic() - began) * 1000


def _await_quiet(consumer: Any) -> None:
    """Until what was there before has come out."""
    consumer.poll(60)
    while consumer.poll(QUIET_SECONDS) is not None:
        continue


MEASURES = (Measure("latency", "one record's way, warm", _latency, records=BACKLOG, quick=True),)
