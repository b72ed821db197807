"""Joins and windows through the server: records/s, beside Kafka Streams, and what a batch costs.

    python bench/joins.py [lookup|growth|kinds] …

lookup: a stream of 1M records meets tables of 1,000, 100,000 and 1M rows; at least 1.0 of Kafka
Streams is wanted. growth: a batch of 1,000 records against a table of 1M rows and one of 1,000; at
most 1.5 times the time. kinds: windows, sessions, table joins at 10,000 keys; 50,000 records/s.
"""

from __future__ import annotations

import statistics
import sys
import time

import kafka_streams
from ground import Ground, ground, show

from headrace.topics.admin import TopicSpec

JSON = "value_format='JSON', wrap_single_values=true"
COUNT = 1_000_000


def key(i: int, keys: int) -> bytes:
    return b"key%d" % (i * 7919 % keys)


def _table(at: Ground, name: str, rows: int, begin: int = 1_600_000_000_000) -> None:
    at.fill(
        name,
        rows,
        lambda i: (b"key%d" % i, b'{"NAME":"name %d","F":"key%d"}' % (i, i)),
        begin=begin,
    )
    at.client.execute(
        f"CREATE TABLE {name} (k STRING PRIMARY KEY, name STRING, f STRING) "
        f"WITH (kafka_topic='{name}', {JSON});"
    )


def _stream(at: Ground, name: str, count: int, keys: int, step_ms: int = 1) -> None:
    at.fill(name, count, lambda i: (key(i, keys), b'{"N":%d}' % i), step_ms=step_ms)
    at.client.execute(
        f"CREATE STREAM {name} (k STRING KEY, n BIGINT) WITH (kafka_topic='{name}', {JSON});"
    )


def lookup(
    at: Ground, count: int = COUNT, sizes: tuple[int, ...] = (1_000, 100_000, 1_000_000)
) -> dict[str, float]:
    """A stream-table join against tables of these sizes; ours and Kafka Streams."""
    found: dict[str, float] = {}
    for rows in sizes:
        stream, table = f"stream_{rows}", f"table_{rows}"
        _table(at, table, rows)
        _stream(at, stream, count, rows)
        took = at.ours(
            f"CREATE STREAM looked_up_{rows} AS SELECT s.k AS k, s.n AS n, t.name AS name "
            f"FROM {stream} s LEFT JOIN {table} t ON s.k = t.k;",
            stream,
            table,
        )
        found[f"stream-table join, {rows} rows, ours: records/s"] = count / took
        if kafka_streams.available():
            sink = f"joined_{rows}"
            at.admin.create(TopicSpec(sink, 2))
            other = kafka_streams.seconds("join", at.server.kafka, count, sink, stream, table)
            found[f"stream-table join, {rows} rows, Kafka Streams: records/s"] = count / other
            found[f"stream-table join, {rows} rows, ours / Kafka Streams"] = other / took
    return found


def growth(at: Ground, sizes: tuple[int, int] = (1_000, 1_000_000)) -> dict[str, float]:
    """The time of a batch of 1,000 records beside tables of both sizes, and the ratio."""
    medians = []
    for rows in sizes:
        stream, table = f"grow_{rows}", f"grown_{rows}"
        _table(at, table, rows)
        _stream(at, stream, 1_000, rows)
        query_id = at.create(
            f"CREATE STREAM grew_{rows} AS SELECT s.k AS k, s.n AS n, t.name AS name "
            f"FROM {stream} s LEFT JOIN {table} t ON s.k = t.k;"
        )
        query = at.server.engine.queries.get(query_id)
        assert query is not None and query.streaming is not None
        at.await_end(lambda: query.streaming, stream, table)  # noqa: B023
        times = []
        for _ in range(12):
            at.fill(stream, 1_000, lambda i: (key(i, rows), b'{"N":%d}' % i))  # noqa: B023
            at.await_end(lambda: query.streaming, stream)  # noqa: B023
            times += [
                p["durationMs"]["triggerExecution"]
                for p in query.streaming.recentProgress[-3:]
                if p["numInputRows"] >= 500
            ][-1:]
        medians.append(statistics.median(times[4:]))
        at.client.execute(f"TERMINATE {query_id};")
    small, large = medians
    return {
        f"batch of 1,000 records, table of {sizes[0]}: ms": small,
        f"batch of 1,000 records, table of {sizes[1]}: ms": large,
        "batch of 1,000 records, large / small table": large / small,
    }


def kinds(at: Ground, count: int = 500_000, keys: int = 10_000) -> dict[str, float]:
    """Windows, sessions and table joins."""
    _stream(at, "timed", count, keys)
    _table(at, "rights", keys)
    at.fill(
        "lefts",
        count,
        lambda i: (key(i, keys), b'{"NAME":"n","F":"key%d"}' % (i * 31 % keys)),
    )
    at.client.execute(
        "CREATE TABLE lefts (k STRING PRIMARY KEY, name STRING, f STRING) "
        f"WITH (kafka_topic='lefts', {JSON});"
    )
    statements = {
        "tumbling windows": (
            "SELECT k, COUNT(*) AS c FROM timed WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY k",
            "timed",
        ),
        "session windows": (
            "SELECT k, COUNT(*) AS c FROM timed WINDOW SESSION (5 SECONDS) GROUP BY k",
            "timed",
        ),
        "table-table join": (
            "SELECT l.k AS k, l.name AS a, r.name AS b FROM lefts l "
            "LEFT JOIN rights r ON l.k = r.k",
            "lefts",
            "rights",
        ),
        "foreign-key join": (
            "SELECT l.k AS k, l.name AS a, r.name AS b FROM lefts l "
            "LEFT JOIN rights r ON l.f = r.k",
            "lefts",
            "rights",
        ),
    }
    found = {}
    for number, (name, (select, *topics)) in enumerate(statements.items()):
        took = at.ours(f"CREATE TABLE kind_{number} AS {select};", *topics)
        found[f"{name}, {keys} keys: records/s"] = count / took
    return found


PARTS = {"lookup": lookup, "growth": growth, "kinds": kinds}


def main() -> None:
    with ground() as at:
        _stream(at, "warm", 20_000, 100)
        _table(at, "warm_names", 100)
        at.ours(
            "CREATE STREAM warmed AS SELECT s.k AS k, s.n AS n, t.name AS name "
            "FROM warm s LEFT JOIN warm_names t ON s.k = t.k;",
            "warm",
            "warm_names",
        )
        for part in sys.argv[1:] or list(PARTS):
            began = time.monotonic()
            show(PARTS[part](at))
            print(f"({part}: {time.monotonic() - began:.0f} s)", file=sys.stderr)


if __name__ == "__main__":
    main()
