"""Many queries on one server: what they take when idle, whether they keep up, one record's way.

    python bench/queries.py [QUERIES]

Of 20 queries (half of them stateful): CPU when nothing comes (of one core; less than 25 % wanted),
how far they fall behind at 1,000 records/s in total, and the median way of one record through an
aggregate of Spark's own and through a kernel (400 ms wanted).
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

from confluent_kafka import TopicPartition
from ground import Ground, ground, reached, show

from headrace.topics.admin import TopicSpec
from headrace.topics.records import NewRecord, RecordWriter

IDLE_SECONDS, LOAD_SECONDS, RATE = 20, 15, 1_000
WARM_UP, ROUND_TRIPS = 10, 30

KINDS = (
    "CREATE STREAM q{i} AS SELECT k, n * 2 AS m FROM many WHERE n % {j} = 0;",
    "CREATE TABLE q{i} AS SELECT k, COUNT(*) AS c, SUM(n) AS s FROM many GROUP BY k;",
    "CREATE STREAM q{i} AS SELECT s.k AS k, s.n AS n, t.name AS name FROM many s "
    "LEFT JOIN names t ON s.k = t.k;",
    "CREATE STREAM q{i} AS SELECT k, CAST(n AS STRING) + word AS m FROM many;",
)


def cpu_seconds(pid: int) -> float:
    """CPU of a process and all its descendants, those that ended under them included."""
    stats: dict[int, list[str]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid_, rest = stat.read_text().split(" ", 1)
        except OSError:
            continue
        stats[int(pid_)] = rest.rsplit(")", 1)[1].split()
    wanted, ticks = {pid}, 0
    while True:
        more = {p for p, fields in stats.items() if int(fields[1]) in wanted} - wanted
        if not more:
            break
        wanted |= more
    for process in wanted:
        ticks += sum(int(x) for x in stats.get(process, [])[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def start(at: Ground, queries: int) -> None:
    at.admin.create(TopicSpec("many", 2))
    at.fill("names", 100, lambda i: (b"k%d" % i, b'{"NAME":"name %d"}' % i))
    at.client.execute(
        "CREATE STREAM many (k STRING KEY, n BIGINT, word STRING) "
        "WITH (kafka_topic='many', value_format='JSON', wrap_single_values=true);"
        "CREATE TABLE names (k STRING PRIMARY KEY, name STRING) "
        "WITH (kafka_topic='names', value_format='JSON', wrap_single_values=true);"
    )
    for i in range(queries):
        at.client.execute(KINDS[i % len(KINDS)].format(i=i, j=i + 1))


def feed(at: Ground, seconds: float, rate: int = RATE) -> list[float]:
    """Writes at a rate; how many records the slowest query is behind, looked at each second."""
    behind: list[float] = []
    written = 0
    began = time.monotonic()
    with RecordWriter(at.kafka, linger_ms=5) as writer:
        while (now := time.monotonic() - began) < seconds:
            due = int(now * rate) - written
            writer.write_all(
                NewRecord("many", b"k%d" % (i % 100), b'{"N":%d,"WORD":"w"}' % i)
                for i in range(written, written + due)
            )
            written += due
            if now >= len(behind) + 1:
                behind.append(lag(at))
            time.sleep(0.05)
    return behind


def lag(at: Ground) -> float:
    queries = list(at.server.engine.queries)
    end = sum(at.admin.end_offsets("many").values()) if queries else 0
    return max(
        (end - sum(map(int, reached(q.streaming).get("many", {}).values())) for q in queries),
        default=0,
    )


def idle(at: Ground, seconds: float) -> float:
    """Percent of a core that everything takes, once there is nothing left to do."""
    while lag(at):
        time.sleep(0.5)
    time.sleep(2)
    before, began = cpu_seconds(os.getpid()), time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_seconds(os.getpid()) - before) / (time.monotonic() - began)


def round_trip(at: Ground, name: str, statement: str) -> list[float]:
    query_id = at.create(statement)
    sink = name.upper()
    consumer = at.kafka.consumer(fetch_wait_max_ms=5)
    consumer.assign([TopicPartition(sink, 0, 0)])
    took = []
    with RecordWriter(at.kafka, linger_ms=0) as writer:
        for i in range(WARM_UP + ROUND_TRIPS):
            began = time.monotonic()
            writer.write(NewRecord("one", b"k", b'{"N":%d,"WORD":"w"}' % i))
            while (message := consumer.poll(30)) is None or message.error():
                continue
            took.append(time.monotonic() - began)
    consumer.close()
    at.client.execute(f"TERMINATE {query_id};")
    return sorted(took[WARM_UP:])


def latency(at: Ground) -> dict[str, float]:
    at.admin.create(TopicSpec("one", 1))
    at.client.execute(
        "CREATE STREAM one (k STRING KEY, n BIGINT, word STRING) "
        "WITH (kafka_topic='one', value_format='JSON', partitions=1);"
    )
    found = {}
    for name, call in (("native", "COUNT(*)"), ("kernel", "LATEST_BY_OFFSET(n)")):
        took = round_trip(
            at,
            f"one_{name}",
            f"CREATE TABLE one_{name} AS SELECT k, {call} AS c FROM one GROUP BY k;",
        )
        found[f"one record through an aggregate ({name}), p50: ms"] = 1000 * statistics.median(took)
        found[f"one record through an aggregate ({name}), p90: ms"] = (
            1000 * took[len(took) * 9 // 10]
        )
    return found


def waiting(at: Ground, queries: int = 20) -> dict[str, float]:
    """What a server takes while nothing comes, without queries and with them."""
    name = "waiting, percent of a core"
    without = idle(at, IDLE_SECONDS / 2)
    start(at, queries)
    feed(at, 5, 100)
    return {f"no query {name}": without, f"{queries} queries {name}": idle(at, IDLE_SECONDS)}


def load(at: Ground) -> dict[str, float]:
    """Whether the queries that `waiting` started keep up."""
    behind = feed(at, LOAD_SECONDS)
    name = f"queries at {RATE} records/s: most records that one is behind, second half"
    return {name: max(behind[len(behind) // 2 :])}


def main() -> None:
    with ground() as at:
        show(waiting(at, int(sys.argv[1]) if len(sys.argv) > 1 else 20))
        show(load(at))
        show(latency(at))


if __name__ == "__main__":
    main()
