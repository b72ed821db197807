"""An HTTP/2 request to `/inserts-stream` whose body is sent piece by piece."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import h2.connection
import h2.events

HEADERS = [
    (":method", "POST"),
    (":path", "/inserts-stream"),
    (":scheme", "http"),
    (":authority", "localhost"),
]


class InsertsStream:
    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._connection = h2.connection.H2Connection()
        self._connection.initiate_connection()
        self._connection.send_headers(1, HEADERS)

    def send(self, data: bytes) -> None:
        self._connection.send_data(1, data)
        self._link.sendall(self._connection.data_to_send())

    def receive(self) -> list[h2.events.Event]:
        return self._connection.receive_data(self._link.recv(65535))

    def reset(self) -> None:
        self._connection.reset_stream(1)
        self._link.sendall(self._connection.data_to_send())


@contextmanager
def inserts_stream(url: str) -> Iterator[InsertsStream]:
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as link:
        yield InsertsStream(link)
