"""Clients that ask and do not read, and what that costs the server."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

from headrace.client import Client
from process_resources import MemoryWatch
from scene import Scene

_VALUE = json.dumps({"T": "x" * 180}).encode()  # about 200 bytes with its key
_EARLIEST = {"auto.offset.reset": "earliest"}


def fill(scene: Scene, name: str, records: int) -> None:
    """A stream of that name, of two partitions."""
    scene.topic(name, partitions=2)
    producer = scene.kafka.producer(linger_ms=50, queue_buffering_max_messages=500_000)
    for i in range(records):
        while True:
            try:
                producer.produce(name, _VALUE, b"key-%d" % i)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    scene.sql(
        f"CREATE STREAM {name} (ID STRING KEY, T STRING) "
        f"WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON');"
    )


@contextmanager
def stalled_clients(url: str, sql: str, count: int) -> Iterator[None]:
    """So many that ask for a push query and never read a byte."""
    address = urlsplit(url)
    body = json.dumps({"sql": sql, "properties": _EARLIEST}).encode()
    head = f"POST /query-stream HTTP/1.1\r\nHost: {address.netloc}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with ExitStack() as open_now:
        for _ in range(count):
            client = open_now.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((address.hostname or "", address.port or 0))
            client.sendall(head.encode() + body)
        yield


def growth_by_stalled_clients(
    scene: Scene, server: int, records: int, clients: int, patience: float
) -> int:
    """MiB by which memory grows while they stall and someone else reads the whole stream twice: by
    a push query and by a pull query."""
    fill(scene, "stalled", records)
    _read(scene, "SELECT * FROM STALLED EMIT CHANGES", min(records, 100_000))  # all is warm
    _read(scene, "SELECT * FROM STALLED", min(records, 100_000))
    watch = MemoryWatch(server)
    with (
        watch.going_on(),
        stalled_clients(scene.url, "SELECT * FROM STALLED EMIT CHANGES;", clients),
    ):
        scene.wait(lambda: _pushes(scene), lambda running: running == clients, patience)
        _read(scene, "SELECT * FROM STALLED EMIT CHANGES", min(records, 200_000))
        _read(scene, "SELECT * FROM STALLED", records)
    scene.wait(lambda: _pushes(scene), lambda running: running == 0, patience)
    scene.sql("DROP STREAM STALLED DELETE TOPIC;")
    return watch.growth


def _pushes(scene: Scene) -> int:
    return sum(q["queryType"] == "PUSH" for q in scene.client.queries())


def _read(scene: Scene, sql: str, rows: int) -> None:
    with (
        Client(scene.url, properties=_EARLIEST, timeout=600) as client,
        client.stream(f"{sql} LIMIT {rows};") as stream,
    ):
        assert sum(1 for _ in stream) == rows
