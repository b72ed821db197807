"""How cost grows: the same work on more data, and a small batch beside a large table."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from headrace.bench.figures import HEADRACE, Bar, Row, samples
from headrace.bench.jobs import Job, Size
from headrace.bench.measures import Measure, Run
from headrace.bench.sides import topics_of
from headrace.bench.workloads import aggregates, joins, stateless

FACTORS = (1, 4, 16)
JOBS = {
    "stateless": stateless.JOBS[0],
    "aggregate": aggregates.aggregate(20_000, ()),
    "join": joins.lookup(1_000),
}
BATCH, BATCHES, FIRST = 1_000, 12, 4  # records, how many, and the first that counts


def _growth(run: Run) -> Iterator[Row]:
    """Records/s of each job with a sixteenth, a quarter, and all of the records."""
    for name, job in JOBS.items():
        sink = run.at.sink(f"grown_{name}_warm")
        run.ours.seconds(job, Size(run.records // max(FACTORS), warm_up=True), sink)
        run.at.admin.delete(sink)
        for factor in FACTORS:
            count = run.records // max(FACTORS) * factor
            rates = []
            for i in range(run.repeats):
                sink = run.at.sink(f"grown_{name}_{factor}_{i}")
                rates.append(count / run.ours.seconds(job, Size(count), sink))
                run.at.admin.delete(sink)
            run.announce(f"{name}, {factor}x the data: {statistics.median(rates):,.0f} records/s")
            yield Row(
                f"growth-{name}-{factor}x",
                f"{job.title}, {factor} times the data",
                "records/s",
                {HEADRACE: samples(rates)},
                records=count,
            )
    run.at.forget_sources()


def _batches(run: Run) -> Iterator[Row]:
    """The time of a batch of 1,000 records beside a small and a large table."""
    sizes = (1_000, run.records)
    for rows in sizes:
        job = joins.lookup(rows)
        times = _batch_times(run, job)
        run.announce(f"beside {rows:,} rows: {statistics.median(times):,.0f} ms")
        bar = () if rows == sizes[0] else (Bar(1.5, f"join-batch-{sizes[0]}", at_most=True),)
        yield Row(
            f"join-batch-{rows}",
            f"a batch of {BATCH:,} records beside a table of {rows:,} rows",
            "ms",
            {HEADRACE: samples(times)},
            bar,
            records=BATCH,
        )
    run.at.forget_sources()


def _batch_times(run: Run, job: Job) -> list[float]:
    at, stream = run.at, job.sources[0]
    topics = topics_of(at, job, Size(BATCH))
    sink = at.sink(f"{stream.name}_batches")
    times = []
    with run.ours.running(job, topics, sink) as query:
        at.await_end(lambda: query.streaming, *topics.values())
        for i in range(BATCHES):
            at.fill(topics[stream.name], stream, range((i + 1) * BATCH, (i + 2) * BATCH))
            at.await_end(lambda: query.streaming, topics[stream.name])
            times += [
                float(progress["durationMs"]["triggerExecution"])
                for progress in query.streaming.recentProgress[-3:]
                if progress["numInputRows"] >= BATCH / 2
            ][-1:]
    at.admin.delete(sink)
    return times[FIRST:]


MEASURES = (
    Measure("growth", "the same work at 1, 4 and 16 times the data", _growth, records=1_000_000),
    Measure("join-batch", "a small batch beside a large table", _batches, records=1_000_000),
)
