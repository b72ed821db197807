"""Careless clients: connections opened and dropped at random, and what the server holds after.

    python tests/careless_clients.py [SECONDS] [CONNECTIONS]

Push queries, pull queries, PRINT, insert streams and half-sent requests, each dropped after a
random moment. Prints the server's queries, threads, file handles and memory before and after.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from headrace.bench.bench_server import bench_server
from headrace.client import Client
from headrace.server.launch import RunningServer

SECONDS, CONNECTIONS = 120.0, 200
# Push queries are Spark's work: that many of the connections at once.
PUSHES = 20
QUIET_SECONDS = 60.0
_BODIES = (
    ("/query-stream", {"sql": "SELECT * FROM SOAKED;"}),
    ("/query-stream", {"sql": "SELECT * FROM KEPT WHERE ID = 'a';"}),
    ("/query", {"ksql": "SELECT * FROM KEPT;"}),
    ("/query-stream", {"sql": "PRINT soaked FROM BEGINNING;"}),
    ("/ksql", {"ksql": "SHOW STREAMS; DESCRIBE SOAKED;"}),
    ("/query-stream", {"sql": "SELECT NONSENSE;"}),
)
# Spark forgets old broadcasts after a collection on up to 100 threads a pool, which end a minute
# after it.
_PASSING = ("block-manager-ask-thread-pool", "block-manager-storage-async-thread-pool")
_PUSH = {"sql": "SELECT * FROM SOAKED EMIT CHANGES;", "properties": {}}


@dataclass(frozen=True)
class Held:
    """What a server holds on to."""

    pushes: int
    streaming: int
    threads: int
    files: int
    megabytes: int
    jvm_threads: int

    @staticmethod
    def of(server: RunningServer) -> Held:
        gc.collect()
        spark = server.engine.env.spark
        assert spark._jvm is not None
        spark._jvm.java.lang.System.gc()
        status = Path("/proc/self/status").read_text()
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return Held(
            len(server.engine.pushes),
            len(spark.streams.active),
            threading.active_count(),
            len(list(Path("/proc/self/fd").iterdir())),
            int(resident.split()[1]) // 1024,
            sum(not name.startswith(_PASSING) for name in _jvm_threads(spark)),
        )


def _jvm_threads(spark: SparkSession) -> list[str]:
    assert spark._jvm is not None
    return [str(t.getName()) for t in spark._jvm.java.lang.Thread.getAllStackTraces().keySet()]


def prepare(client: Client) -> None:
    client.execute(
        "CREATE STREAM SOAKED (ID STRING KEY, N INT) "
        "WITH (KAFKA_TOPIC='soaked', PARTITIONS=1, VALUE_FORMAT='JSON');"
        "CREATE SOURCE TABLE KEPT (ID STRING PRIMARY KEY, N INT) "
        "WITH (KAFKA_TOPIC='soaked', VALUE_FORMAT='JSON');"
        + "".join(f"INSERT INTO SOAKED VALUES ('{k}', {i});" for i, k in enumerate("abc"))
    )


async def visit(url: str, seconds: float, connections: int, pushes: int = PUSHES) -> int:
    """So many connections at a time, for so long; returns how many there were."""
    address = urlsplit(url)
    host, port = address.hostname or "", address.port or 0
    until = time.monotonic() + seconds
    free = asyncio.Semaphore(pushes)
    count = 0

    async def one(choose: random.Random) -> None:
        nonlocal count
        while time.monotonic() < until:
            count += 1
            with suppress(OSError, asyncio.IncompleteReadError):
                if free.locked() or choose.random() < 0.7:
                    await _drop(host, port, _request(host, choose), choose.uniform(0, 0.5))
                else:
                    async with free:
                        push = _http(host, "/query-stream", json.dumps(_PUSH).encode())
                        await _drop(host, port, push, choose.expovariate(1 / 3))

    await asyncio.gather(*(one(random.Random(i)) for i in range(connections)))
    return count


async def _drop(host: str, port: int, request: bytes, seconds: float) -> None:
    """Asks, reads for a moment whatever comes, and leaves without a word."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(request)
        async with asyncio.timeout(seconds):
            while await reader.read(65536):
                pass
    except TimeoutError:
        pass
    finally:
        writer.transport.abort()


def _request(host: str, choose: random.Random) -> bytes:
    kind = choose.random()
    if kind < 0.2:
        rows = b"".join(b'{"ID":"a","N":%d}\n' % i for i in range(choose.randrange(20)))
        body = b'{"target":"SOAKED"}\n' + rows
        # The request is longer than announced, or not: it is never ended.
        return _http(host, "/inserts-stream", body, choose.randrange(3) * 50)
    path, wanted = choose.choice(_BODIES)
    request = _http(host, path, json.dumps(wanted).encode())
    return request[: choose.randrange(len(request))] if kind < 0.3 else request


def _http(host: str, path: str, body: bytes, missing: int = 0) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body) + missing}\r\n\r\n".encode() + body


def soak(server: RunningServer, seconds: float, connections: int) -> tuple[int, Held, Held]:
    """How many connections there were, and what was held before and after."""
    asyncio.run(visit(server.url, min(60.0, seconds), connections))  # pools fill, code warms up
    _quiet(server)
    before = Held.of(server)
    count = asyncio.run(visit(server.url, seconds, connections))
    _quiet(server)
    return count, before, Held.of(server)


def _quiet(server: RunningServer) -> None:
    deadline = time.monotonic() + QUIET_SECONDS
    spark, lasting = server.engine.env.spark, len(list(server.engine.queries))
    while server.engine.pushes or len(spark.streams.active) > lasting:
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)
    threads = -1
    while threads != threading.active_count() and time.monotonic() < deadline:
        threads = threading.active_count()
        time.sleep(2)  # those that were just let go end


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    connections = int(sys.argv[2]) if len(sys.argv) > 2 else CONNECTIONS
    with bench_server(lambda text: print(text, file=sys.stderr)) as on:
        prepare(on.client)
        count, before, after = soak(on.server, seconds, connections)
        print(f"{count} connections in {seconds:.0f} s, {connections} at a time")
        print(f"before: {before}\nafter:  {after}")
        rows = on.client.pull("SELECT * FROM SOAKED EMIT CHANGES LIMIT 1;")
        print(f"and it still answers: {[list(row) for row in rows]}")


if __name__ == "__main__":
    main()
