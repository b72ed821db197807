"""A push query over many records that one client reads as fast as it can.

By hand the same rows come to the driver's Python, batch by batch, where they are counted: there is
no server and no client.
"""

from __future__ import annotations

import json
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headrace.bench.bench_server import EARLIEST, PATIENCE_SECONDS, BenchServer
from headrace.bench.figures import BY_HAND, HEADRACE, Row, samples
from headrace.bench.jobs import Size
from headrace.bench.measures import Measure, Run
from headrace.bench.workloads.stateless import COLUMNS, FILTERED, ORDERS
from headrace.engine.queries.program import PUSHED_RECORDS
from headrace.model.errors import HeadraceError
from headrace.spark.runtime.kafka_source import consumer_options, stream_topic

RECORDS = 300_000


@dataclass(frozen=True)
class Reading:
    """Seconds until the first and until the last row."""

    first: float
    last: float


def _push_rows(run: Run) -> Iterator[Row]:
    at = run.at
    topic = at.source(ORDERS, Size(run.records))
    rows = sum(1 for i in range(run.records) if i % 500 >= 100)  # that the filter lets through
    sides = {HEADRACE: by_headrace, BY_HAND: by_hand}
    readings: dict[str, list[Reading]] = {side: [] for side in sides}
    for i in range(run.repeats + 1):
        for side, read in sides.items():
            reading = read(at, topic, rows)
            if i:  # the first turn warms up
                readings[side].append(reading)
    at.forget_sources()
    rates = {side: samples(run.records / r.last for r in readings[side]) for side in sides}
    first = {side: samples(r.first for r in readings[side]) for side in sides}
    told = ", ".join(f"{side} {cell.median:,.0f} records/s" for side, cell in rates.items())
    run.announce(f"a push query: {told}; first row {statistics.median(first[HEADRACE].values):.2f}")
    title = "a push query, read at once by one client"
    yield Row("push-rows", title, "records/s", rates, records=run.records)
    yield Row("push-rows-first", f"{title}: first row", "s", first, records=run.records)


def by_headrace(at: BenchServer, topic: str, rows: int) -> Reading:
    """Over HTTP; the client does no more than count lines."""
    query = FILTERED % "orders"
    sql = f"{query.format(orders=topic)} EMIT CHANGES LIMIT {rows};"
    body = json.dumps({"sql": sql, "properties": EARLIEST}).encode()
    address = urlsplit(at.server.url)
    head = f"POST /query-stream HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n"
    with socket.create_connection(
        (address.hostname or "", address.port or 0), PATIENCE_SECONDS
    ) as connection:
        began = time.monotonic()
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        lines, first, before = 0, 0.0, b""
        while lines < rows and (data := connection.recv(1 << 18)):
            lines += (before + data).count(b"]\n")
            before = data[-1:]  # of a row whose last sign is yet to come
            first = first or (time.monotonic() - began if lines else 0.0)
        last = time.monotonic() - began
    if lines != rows:
        raise HeadraceError(f"{lines} rows came, not {rows}.")
    return Reading(first, last)


def by_hand(at: BenchServer, topic: str, rows: int) -> Reading:
    options = consumer_options(at.kafka.settings)
    value = F.from_json(F.col("value").cast("string"), COLUMNS)
    records = stream_topic(at.spark, topic, options, "earliest", PUSHED_RECORDS, headers=False)
    wanted = (
        records.select(F.col("key").cast("string").alias("K"), value.alias("v"))
        .where("v.AMOUNT > 100")
        .select("K", "v.ID", "v.NAME", (F.col("v.AMOUNT") * 2).alias("TWICE"))
    )
    times: list[float] = []
    count = 0
    over = threading.Event()

    def take(batch: DataFrame, number: int) -> None:
        nonlocal count
        count += batch.toArrow().num_rows
        times.append(time.monotonic() - began)
        if count >= rows:
            over.set()

    with tempfile.TemporaryDirectory(dir=at.data_dir, ignore_cleanup_errors=True) as checkpoint:
        writer = wanted.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
        began = time.monotonic()
        query = writer.start()
        over.wait(PATIENCE_SECONDS)
        query.stop()
    if count != rows:
        raise HeadraceError(f"By hand {count} rows came, not {rows}.")
    return Reading(times[0], times[-1])


MEASURES = (Measure("push-rows", "a push query over many records", _push_rows, records=RECORDS),)
