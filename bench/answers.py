"""Answers: pull by key on a big table, inserts, and push queries, as clients see them.

    python bench/answers.py [push|inserts|pull …]

One server, one run. The load for pull queries comes from a process of its own, over a pool of
HTTP/1.1 connections, with as little work per request as can be; the same pool asks an endpoint
that does nothing, for comparison.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from ground import ground

from headrace.client import Client
from headrace.topics.admin import TopicAdmin, TopicSpec
from headrace.topics.client import KafkaConnection
from headrace.topics.records import NewRecord, RecordWriter

ROWS = 1_000_000
CONNECTIONS = 16
SECONDS = 6.0
BATCH = 20_000
INSERTED_ROWS = 200_000
ROWS_PER_CHUNK = 500
PUSHES, PUSHED_ROWS = 6, 10  # queries, and rows of each


@dataclass(frozen=True)
class Load:
    """What a pool of connections saw."""

    per_second: float
    p50_ms: float
    p99_ms: float

    def __str__(self) -> str:
        return f"{self.per_second:,.0f}/s, p50 {self.p50_ms:.1f} ms, p99 {self.p99_ms:.1f} ms"


def p99(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


# ----------------------------------------------------------------------------- a pool's load


class Asker(asyncio.Protocol):
    """One connection: sends a request, waits for its whole answer, sends the next."""

    def __init__(self, make: Callable[[], bytes], until: float, took: list[float]) -> None:
        self.make, self.until, self.took = make, until, took
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.data = b""
        self.began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._ask()

    def _ask(self) -> None:
        self.began = time.monotonic()
        self.transport.write(self.make())

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, found, body = self.data.partition(b"\r\n\r\n")
        if not found:
            return
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"refused: {self.data.decode()}")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if len(body) < length:
            return
        now = time.monotonic()
        self.took.append(now - self.began)
        self.data = b""
        if now < self.until:
            self._ask()
        else:
            self.transport.close()
            self.done.set_result(None)


def request(host: str, method: str, path: str, body: bytes = b"") -> bytes:
    return (
        f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def _pool(url: str, table: str | None, rows: int, seconds: float, connections: int) -> Load:
    """In a process of its own. Without a table, an endpoint that does nothing is asked."""
    host = urlsplit(url).netloc
    name, _, port = host.partition(":")
    choose = random.Random(1)

    def lookup() -> bytes:
        sql = f"SELECT * FROM {table} WHERE ID = 'key-{choose.randrange(rows)}';"
        return request(host, "POST", "/query-stream", json.dumps({"sql": sql}).encode())

    nothing = request(host, "GET", "/chc/live")
    make = lookup if table else lambda: nothing

    async def run() -> list[float]:
        took: list[float] = []
        until = time.monotonic() + seconds
        loop = asyncio.get_running_loop()
        made = [
            await loop.create_connection(lambda: Asker(make, until, took), name, int(port))
            for _ in range(connections)
        ]
        await asyncio.gather(*(asker.done for _, asker in made))
        return took

    took = asyncio.run(run())
    return Load(len(took) / seconds, statistics.median(took) * 1000, p99(took) * 1000)


def load(
    url: str, table: str | None, rows: int, seconds: float = SECONDS, connections: int = CONNECTIONS
) -> Load:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_pool, (url, table, rows, seconds, connections))


# ------------------------------------------------------------------------------ what is asked


def fill_table(client: Client, kafka: KafkaConnection, rows: int) -> float:
    """A table of so many rows; returns how long its first pull query takes, which reads them."""
    TopicAdmin(kafka).create(TopicSpec("big", 2, 1, {"cleanup.policy": "compact"}))
    with RecordWriter(kafka, linger_ms=50) as writer:
        for start in range(0, rows, BATCH):
            writer.write_all(
                NewRecord("big", b"key-%d" % i, b'{"NAME":"name-%d","AMOUNT":%d.5}' % (i, i % 500))
                for i in range(start, min(start + BATCH, rows))
            )
    client.execute(
        "CREATE SOURCE TABLE BIG (ID STRING PRIMARY KEY, NAME STRING, AMOUNT DOUBLE) "
        "WITH (KAFKA_TOPIC='big', VALUE_FORMAT='JSON');"
    )
    began = time.monotonic()
    assert client.pull("SELECT * FROM BIG WHERE ID = 'key-1';")
    return time.monotonic() - began


def inserts(client: Client, url: str, rows: int = INSERTED_ROWS) -> float:
    """Rows a second through `/inserts-stream` on one connection, all of them acknowledged."""
    client.execute(
        "CREATE STREAM TAKEN (ID STRING KEY, NAME STRING, AMOUNT DOUBLE) "
        "WITH (KAFKA_TOPIC='taken', PARTITIONS=2, VALUE_FORMAT='JSON');"
    )
    address = urlsplit(url)
    chunks = [
        b"".join(
            b'{"ID":"key-%d","NAME":"name-%d","AMOUNT":%d.5}\n' % (i, i, i % 500)
            for i in range(start, min(start + ROWS_PER_CHUNK, rows))
        )
        for start in range(0, rows, ROWS_PER_CHUNK)
    ]
    with socket.create_connection((address.hostname, address.port)) as connection:
        began = time.monotonic()
        connection.sendall(
            f"POST /inserts-stream HTTP/1.1\r\nHost: {address.netloc}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        acks = threading.Thread(target=_await_acks, args=(connection, rows))
        acks.start()
        for chunk in [b'{"target":"TAKEN"}\n', *chunks, b""]:
            connection.sendall(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        acks.join()
        return rows / (time.monotonic() - began)


def _await_acks(connection: socket.socket, rows: int) -> None:
    seen, rest = 0, b""
    while seen < rows:
        data = connection.recv(1 << 20)
        assert data, f"{seen} of {rows} rows were acknowledged"
        seen += (rest + data).count(b'"status":"ok"') - rest.count(b'"status":"ok"')
        rest = data[-20:]


def insert_values(client: Client, count: int = 300) -> Load:
    """Single INSERT statements, one after the other."""
    took = []
    for i in range(count):
        began = time.monotonic()
        client.execute(f"INSERT INTO TAKEN VALUES ('key-{i}', 'name', {i}.5);")
        took.append(time.monotonic() - began)
    return Load(count / sum(took), statistics.median(took) * 1000, p99(took) * 1000)


def push(client: Client, kafka: KafkaConnection) -> tuple[list[float], list[float]]:
    """Seconds to the first row of push queries, and from a record's writing to its row."""
    client.execute(
        "CREATE STREAM EVENTS (ID STRING KEY, N INT, T STRING) "
        "WITH (KAFKA_TOPIC='events', PARTITIONS=1, VALUE_FORMAT='JSON');"
        "INSERT INTO EVENTS VALUES ('a', 1, 'x');"
    )
    first: list[float] = []
    later: list[float] = []
    with RecordWriter(kafka, linger_ms=0) as writer:
        for _ in range(PUSHES):
            began = time.monotonic()
            with client.stream(
                "SELECT ID, N * 2 AS M FROM EVENTS WHERE N > 0 EMIT CHANGES;"
            ) as rows:
                each = iter(rows)
                next(each)
                first.append(time.monotonic() - began)
                writer.write(NewRecord("events", b"b", b'{"N":-1}'))
                for _ in range(PUSHED_ROWS):
                    _drain(each, writer, later)
    return first, later


def _drain(each: object, writer: RecordWriter, later: list[float]) -> None:
    mark = random.randrange(1 << 30)
    began = time.monotonic()
    writer.write(NewRecord("events", b"c", b'{"N":%d}' % mark))
    for row in each:  # type: ignore[attr-defined]
        if row[1] == mark * 2:
            break
    later.append(time.monotonic() - began)


def tell_push(client: Client, kafka: KafkaConnection, url: str) -> None:
    first, later = push(client, kafka)
    print(
        f"push: first row {first[0]:.2f} s cold, then {statistics.median(first[1:]):.2f} s "
        f"({min(first[1:]):.2f} to {max(first[1:]):.2f}), wanted at most 2; a row "
        f"p50 {statistics.median(later) * 1000:.0f} ms, p99 {p99(later) * 1000:.0f} ms",
        flush=True,
    )


def tell_inserts(client: Client, kafka: KafkaConnection, url: str) -> None:
    print(f"/inserts-stream: {inserts(client, url):,.0f} rows/s, wanted 20,000", flush=True)
    print(f"INSERT VALUES: {insert_values(client)}", flush=True)


def tell_pull(client: Client, kafka: KafkaConnection, url: str) -> None:
    took = fill_table(client, kafka, ROWS)
    print(f"a table of {ROWS:,} rows: its first pull query {took:.1f} s", flush=True)
    for _ in range(2):
        empty = load(url, None, ROWS)
        pull = load(url, "BIG", ROWS)
        ratio = pull.per_second / empty.per_second
        print(
            f"pull by key: {pull}; an empty handler: {empty}; ratio {ratio:.2f}, "
            "wanted 3,000/s and p99 20 ms, or 0.6",
            flush=True,
        )


PARTS = {"push": tell_push, "inserts": tell_inserts, "pull": tell_pull}


def main() -> None:
    with ground() as on:
        for part in sys.argv[1:] or PARTS:
            PARTS[part](on.client, on.kafka, on.server.url)


if __name__ == "__main__":
    main()
