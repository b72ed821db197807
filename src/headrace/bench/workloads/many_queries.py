"""Many queries on one server: their cost while idle, and whether they keep up under load."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from headrace.bench.bench_server import PATIENCE_SECONDS, BenchServer, position
from headrace.bench.figures import HEADRACE, Absent, Bar, Row, samples
from headrace.bench.jobs import Size, Source
from headrace.bench.measures import Measure, Run
from headrace.bench.processes import available, percent_of_core
from headrace.bench.workloads.joins import table
from headrace.kafka.records import NewRecord, RecordWriter
from headrace.model.errors import HeadraceError

COUNTS = (1, 5, 20)
# The last seconds of a load count: new queries are slow until Java has compiled what they do.
LOAD_SECONDS, COUNTED_SECONDS, RATE = 60, 15, 1_000
IDLE_SECONDS, SETTLE_SECONDS = 15, 20
SMALL = 100

MANY = Source(
    "many",
    "k STRING KEY, n BIGINT, word STRING",
    lambda i: (b"key%d" % (i % SMALL), b'{"N":%d,"WORD":"w"}' % i),
)
NAMES = table("many_names", SMALL, SMALL)
# Half of them remember something.
KINDS = (
    "CREATE STREAM q{i} AS SELECT k, n * 2 AS m FROM {many} WHERE n % {j} = 0;",
    "CREATE TABLE q{i} AS SELECT k, COUNT(*) AS c, SUM(n) AS s FROM {many} GROUP BY k;",
    "CREATE STREAM q{i} AS SELECT s.k AS k, s.n AS n, t.name AS name FROM {many} s "
    "LEFT JOIN {names} t ON s.k = t.k;",
    "CREATE STREAM q{i} AS SELECT k, CAST(n AS STRING) + word AS m FROM {many};",
)


def _queries(run: Run) -> Iterator[Row]:
    at = run.at
    many, names = at.source(MANY, Size(SMALL)), at.source(NAMES, Size(SMALL))
    started: list[str] = []
    for count in COUNTS:
        for i in range(len(started), count):
            statement = KINDS[i % len(KINDS)].format(i=i, j=i + 1, many=many, names=names)
            started.append(at.create(statement).id)
        _await_end(at, many)
        behind = _feed(at, many)
        most = max(behind[-COUNTED_SECONDS:])
        run.announce(f"{count} at once: at most {most:,.0f} records behind")
        what = f"{count} quer{'y' if count == 1 else 'ies'}"
        yield Row(
            f"queries-{count}-behind",
            f"{what} at {RATE:,} records/s: most that one is behind",
            "records",
            {HEADRACE: samples([most])},
            (Bar(5 * RATE, at_most=True),),  # keeps up: never more than five seconds
        )
        idle = samples([_idle(at, many)]) if available() else Absent("CPU is read from /proc")
        bars = (Bar(25, at_most=True),) if count == max(COUNTS) else ()
        yield Row(
            f"queries-{count}-idle",
            f"{what}, nothing comes: CPU with broker",
            "% of a core",
            {HEADRACE: idle},
            bars,
        )
    for i, id_ in enumerate(started):
        kind = "TABLE" if "CREATE TABLE" in KINDS[i % len(KINDS)] else "STREAM"
        at.client.execute(f"TERMINATE {id_}; DROP {kind} q{i} DELETE TOPIC;")
    at.forget_sources()


def _feed(at: BenchServer, topic: str) -> list[float]:
    """Writes at a rate; how many records the slowest query is behind, looked at each second."""
    behind: list[float] = []
    written = 0
    began = time.monotonic()
    with RecordWriter(at.kafka, linger_ms=5) as writer:
        while (now := time.monotonic() - began) < LOAD_SECONDS:
            due = int(now * RATE) - written
            writer.write_all(
                NewRecord(topic, *MANY.record(i)) for i in range(written, written + due)
            )
            written += due
            if now >= len(behind) + 1:
                behind.append(_lag(at, topic))
            time.sleep(0.05)
    return behind


def _lag(at: BenchServer, topic: str) -> float:
    end = sum(at.admin.end_offsets(topic).values())
    return max(end - position(query, topic) for query in at.server.engine.queries)


def _await_end(at: BenchServer, topic: str) -> None:
    """Until every query has read what there is."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while _lag(at, topic):
        if time.monotonic() > deadline:
            raise HeadraceError(f"{topic}: not read to the end in time")
        time.sleep(0.2)


def _idle(at: BenchServer, topic: str) -> float:
    """Percent of a core that everything takes, once there is nothing left to do."""
    _await_end(at, topic)
    time.sleep(SETTLE_SECONDS)
    return percent_of_core(os.getpid(), IDLE_SECONDS)


MEASURES = (
    Measure("queries", "1, 5 and 20 queries at once", _queries, records=LOAD_SECONDS * RATE),
)
