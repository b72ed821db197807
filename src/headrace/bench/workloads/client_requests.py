"""Requests as clients see them: pull queries by key on a big table, inserts, push queries.

The load for pull queries comes from a process of its own, over a pool of HTTP/1.1 connections,
with as little work per request as can be; the same pool asks an endpoint that does nothing, for
comparison.
"""

from __future__ import annotations

import random
import socket
import statistics
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from headrace.bench.bench_server import BenchServer
from headrace.bench.figures import HEADRACE, Bar, Row, percentile, samples
from headrace.bench.measures import Measure, Run
from headrace.bench.pool import Load, load
from headrace.kafka.admin import TopicSpec
from headrace.kafka.records import NewRecord, RecordWriter
from headrace.model.errors import HeadraceError

BATCH = 20_000
ROWS_PER_CHUNK = 500
INSERTS = 200
PUSHES, PUSHED_ROWS = 5, 10  # queries, and rows of each


# --------------------------------------------------------------------------------------- pull


def _pull(run: Run) -> Iterator[Row]:
    first = _fill_table(run.at, run.records)
    run.announce(f"the first pull query on {run.records:,} rows: {first:.1f} s")
    url, pulls, nothings = run.at.server.url, [], []
    for _ in range(run.repeats):
        nothings.append(load(url, None, run.records))
        pulls.append(load(url, "BIG", run.records))
        run.announce(f"pull by key: {pulls[-1]}; an empty handler: {nothings[-1]}")
    run.at.client.execute("DROP TABLE BIG;")
    run.at.admin.delete("big")
    empty = Bar(0.6, "pull-nothing")
    title = f"pull by key, {run.records:,} rows"
    yield Row(
        "pull-nothing", "an endpoint that does nothing", "requests/s", _each(nothings, "per_second")
    )
    yield Row(
        "pull",
        title,
        "requests/s",
        _each(pulls, "per_second"),
        (Bar(3_000, unless=empty),),
        run.records,
    )
    yield Row("pull-p50", f"{title}, p50", "ms", _each(pulls, "p50_ms"), records=run.records)
    yield Row(
        "pull-p99",
        f"{title}, p99",
        "ms",
        _each(pulls, "p99_ms"),
        (Bar(20, at_most=True),),
        run.records,
    )


def _each(loads: Iterable[Load], name: str) -> dict[str, Any]:
    return {HEADRACE: samples(getattr(load, name) for load in loads)}


def _fill_table(at: BenchServer, rows: int) -> float:
    """A table of so many rows; how long its first pull query takes, which reads them."""
    at.admin.create(TopicSpec("big", 2, 1, {"cleanup.policy": "compact"}))
    with RecordWriter(at.kafka, linger_ms=50) as writer:
        for start in range(0, rows, BATCH):
            writer.write_all(
                NewRecord("big", b"key-%d" % i, b'{"NAME":"name-%d","AMOUNT":%d.5}' % (i, i % 500))
                for i in range(start, min(start + BATCH, rows))
            )
    at.client.execute(
        "CREATE SOURCE TABLE BIG (ID STRING PRIMARY KEY, NAME STRING, AMOUNT DOUBLE) "
        "WITH (KAFKA_TOPIC='big', VALUE_FORMAT='JSON');"
    )
    began = time.monotonic()
    if not at.client.pull("SELECT * FROM BIG WHERE ID = 'key-1';"):
        raise HeadraceError("A row that was written was not found.")
    return time.monotonic() - began


# ------------------------------------------------------------------------------------ inserts


def _inserts(run: Run) -> Iterator[Row]:
    at = run.at
    at.client.execute(
        "CREATE STREAM TAKEN (ID STRING KEY, NAME STRING, AMOUNT DOUBLE) "
        "WITH (KAFKA_TOPIC='taken', PARTITIONS=2, VALUE_FORMAT='JSON');"
    )
    _insert_stream(at.server.url, min(run.records, BATCH))
    rates = [_insert_stream(at.server.url, run.records) for _ in range(run.repeats)]
    run.announce(f"/inserts-stream: {statistics.median(rates):,.0f} rows/s")
    yield Row(
        "inserts-stream",
        "/inserts-stream, one connection",
        "rows/s",
        {HEADRACE: samples(rates)},
        (Bar(20_000),),
        run.records,
    )
    per_second, half = [], []
    for _ in range(run.repeats):
        took = []
        for i in range(INSERTS):
            began = time.monotonic()
            at.client.execute(f"INSERT INTO TAKEN VALUES ('key-{i}', 'name', {i}.5);")
            took.append(time.monotonic() - began)
        per_second.append(INSERTS / sum(took))
        half.append(statistics.median(took) * 1000)
    at.client.execute("DROP STREAM TAKEN DELETE TOPIC;")
    title = "INSERT VALUES, one after the other"
    yield Row(
        "insert-values", title, "statements/s", {HEADRACE: samples(per_second)}, records=INSERTS
    )
    yield Row("insert-values-p50", f"{title}, p50", "ms", {HEADRACE: samples(half)})


def _insert_stream(url: str, rows: int) -> float:
    """Rows a second on one connection, all of them acknowledged."""
    address = urlsplit(url)
    chunks = [
        b"".join(
            b'{"ID":"key-%d","NAME":"name-%d","AMOUNT":%d.5}\n' % (i, i, i % 500)
            for i in range(start, min(start + ROWS_PER_CHUNK, rows))
        )
        for start in range(0, rows, ROWS_PER_CHUNK)
    ]
    with socket.create_connection((address.hostname or "", address.port or 0)) as connection:
        began = time.monotonic()
        connection.sendall(
            f"POST /inserts-stream HTTP/1.1\r\nHost: {address.netloc}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        failures: list[str] = []
        acks = threading.Thread(target=_await_acks, args=(connection, rows, failures))
        acks.start()
        for chunk in [b'{"target":"TAKEN"}\n', *chunks, b""]:
            connection.sendall(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        acks.join()
        took = time.monotonic() - began
    if failures:
        raise HeadraceError(failures[0])
    return rows / took


def _await_acks(connection: socket.socket, rows: int, failures: list[str]) -> None:
    ok = b'"status":"ok"'
    seen, rest = 0, b""
    while seen < rows:
        data = connection.recv(1 << 20)
        if not data:
            failures.append(f"Only {seen} of {rows} rows were acknowledged.")
            return
        seen += (rest + data).count(ok)
        # The beginning of an answer that goes on in the next part.
        rest = (rest + data)[-(len(ok) - 1) :]


# --------------------------------------------------------------------------------------- push


def _push(run: Run) -> Iterator[Row]:
    at = run.at
    at.client.execute(
        "CREATE STREAM EVENTS (ID STRING KEY, N INT, T STRING) "
        "WITH (KAFKA_TOPIC='events', PARTITIONS=1, VALUE_FORMAT='JSON');"
        "INSERT INTO EVENTS VALUES ('a', 1, 'x');"
    )
    first: list[float] = []
    later: list[float] = []
    with RecordWriter(at.kafka, linger_ms=0) as writer:
        for _ in range(PUSHES + 1):
            began = time.monotonic()
            with at.client.stream(
                "SELECT ID, N * 2 AS M FROM EVENTS WHERE N > 0 EMIT CHANGES;"
            ) as rows:
                each = iter(rows)
                next(each)
                first.append(time.monotonic() - began)
                later += [_until_seen(each, writer) for _ in range(PUSHED_ROWS)]
    at.client.execute("DROP STREAM EVENTS DELETE TOPIC;")
    warm = later[PUSHED_ROWS:]
    run.announce(f"push: first row {statistics.median(first[1:]):.2f} s")
    yield Row(
        "push-first-row",
        "first row of a push query",
        "s",
        {HEADRACE: samples(first[1:])},
        (Bar(2, at_most=True),),
    )
    yield Row("push-row-p50", "a row of a push query, p50", "ms", _one(percentile(warm, 50)))
    yield Row("push-row-p99", "a row of a push query, p99", "ms", _one(percentile(warm, 99)))


def _one(value: float) -> dict[str, Any]:
    return {HEADRACE: samples([value])}


def _until_seen(each: Iterator[Any], writer: RecordWriter) -> float:
    """Milliseconds from writing a record to having its row."""
    mark = random.randrange(1, 1 << 29)
    began = time.monotonic()
    writer.write(NewRecord("events", b"c", b'{"N":%d}' % mark))
    for row in each:
        if row[1] == mark * 2:
            break
    return (time.monotonic() - began) * 1000


MEASURES = (
    Measure("pull", "pull queries by key", _pull, records=1_000_000, quick=True),
    Measure("inserts", "INSERT VALUES and /inserts-stream", _inserts, records=100_000),
    Measure("push", "push queries", _push, records=PUSHES * PUSHED_ROWS),
)
