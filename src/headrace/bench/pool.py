"""An HTTP load: many connections, each with one request at a time."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from headrace.bench.figures import percentile

CONNECTIONS = 16
SECONDS = 6.0


@dataclass(frozen=True)
class Load:
    """The responses that a pool of connections received, and how long they took."""

    per_second: float
    p50_ms: float
    p99_ms: float

    def __str__(self) -> str:
        return f"{self.per_second:,.0f}/s, p50 {self.p50_ms:.1f} ms, p99 {self.p99_ms:.1f} ms"


class LoadConnection(asyncio.Protocol):
    """One connection: sends a request, waits for the whole response, sends the next."""

    def __init__(self, make: Callable[[], bytes], until: float, took: list[float]) -> None:
        self.make, self.until, self.took = make, until, took
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.data = b""
        self.began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the server hung up"))

    def _ask(self) -> None:
        self.began = time.monotonic()
        self.transport.write(self.make())

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, found, body = self.data.partition(b"\r\n\r\n")
        if not found:
            return
        if not head.startswith(b"HTTP/1.1 200"):
            self.done.set_exception(ConnectionError(self.data.decode()))
            self.transport.close()
            return
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if len(body) < length:
            return
        now = time.monotonic()
        self.took.append(now - self.began)
        self.data = b""
        if now < self.until:
            self._ask()
        else:
            self.done.set_result(None)
            self.transport.close()


def _request(host: str, method: str, path: str, body: bytes = b"") -> bytes:
    return (
        f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def _send_requests(url: str, table: str | None, rows: int) -> Load:
    """Sends requests, in its own process; without a table, to an endpoint that does nothing."""
    host = urlsplit(url).netloc
    name, _, port = host.partition(":")
    choose = random.Random(1)

    def lookup() -> bytes:
        sql = f"SELECT * FROM {table} WHERE ID = 'key-{choose.randrange(rows)}';"
        return _request(host, "POST", "/query-stream", json.dumps({"sql": sql}).encode())

    nothing = _request(host, "GET", "/chc/live")
    make = lookup if table else lambda: nothing

    async def run() -> list[float]:
        took: list[float] = []
        until = time.monotonic() + SECONDS
        loop = asyncio.get_running_loop()
        made = [
            await loop.create_connection(lambda: LoadConnection(make, until, took), name, int(port))
            for _ in range(CONNECTIONS)
        ]
        await asyncio.gather(*(asker.done for _, asker in made))
        return took

    took = [seconds * 1000 for seconds in asyncio.run(run())]
    return Load(len(took) / SECONDS, percentile(took, 50), percentile(took, 99))


def load(url: str, table: str | None, rows: int) -> Load:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_send_requests, (url, table, rows))
