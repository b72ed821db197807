"""`/ws/query` with a websocket client of a few lines."""

import base64
import json
import os
import socket
import struct
from urllib.parse import quote

import pytest


class Socket:
    """Reads the frames of a server: (opcode, payload)."""

    def __init__(self, url, path, headers=""):
        host, port = url.removeprefix("http://").split(":")
        self.link = socket.create_connection((host, int(port)), timeout=5)
        key = base64.b64encode(os.urandom(16)).decode()
        self.link.sendall(
            f"GET {path} HTTP/1.1\r\nhost: {host}:{port}\r\nupgrade: websocket\r\n"
            f"connection: upgrade\r\nsec-websocket-version: 13\r\n{headers}"
            f"sec-websocket-key: {key}\r\n\r\n".encode()
        )
        self.data = self.link.makefile("rb")
        self.status = int(self.data.readline().split()[1])
        while self.data.readline().strip():
            pass

    def frame(self):
        first, length = self.data.read(2)
        if length == 126:
            (length,) = struct.unpack(">H", self.data.read(2))
        return first & 0x0F, self.data.read(length)

    def message(self):
        opcode, payload = self.frame()
        assert opcode == 1, payload
        return json.loads(payload)

    def closing(self):
        opcode, payload = self.frame()
        assert opcode == 8
        return struct.unpack(">H", payload[:2])[0], payload[2:].decode()

    def close(self):
        self.data.close()
        self.link.close()


@pytest.fixture
def connect(url):
    opened = []

    def connect(body, headers=""):
        path = "/ws/query" + (f"?request={quote(json.dumps(body))}" if body is not None else "")
        opened.append(Socket(url, path, headers))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


def test_schema_rows_and_end(connect, engine):
    ws = connect({"ksql": "SELECT * FROM S EMIT CHANGES LIMIT 2;", "streamsProperties": {"a": "b"}})
    assert ws.status == 101
    assert [field["name"] for field in ws.message()] == ["ID", "N", "PRICE", "X"]
    assert ws.message() == {"row": {"columns": ["a", 1, 1.5, 0.5]}}
    assert ws.message() == {"row": {"columns": ["b", 2, None, "NaN"]}}
    assert ws.message() == {"error": "done"}
    assert ws.closing() == (1000, "done")
    assert engine.requests[-1].properties == {"a": "b"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (None, "Error parsing request: missing request parameter"),
        ({}, 'Error parsing request: "ksql" field of "request" must be populated'),
        ([], "Error parsing request: Invalid JSON in request: expected an object"),
        ({"ksql": "SELECT * FROM NO_SUCH;"}, "NO_SUCH does not exist."),
    ],
)
def test_refusals(connect, engine, body, message):
    ws = connect(body)
    assert ws.message() == {"error": message}
    assert ws.closing() == (1003, message)


def test_client_that_leaves_ends_its_query(connect, engine):
    before = set(engine.queries)
    ws = connect({"ksql": "SELECT * FROM S EMIT CHANGES;"})
    ws.message()
    ws.close()
    (new,) = set(engine.queries) - before
    assert engine.queries[new].closed.wait(3)


def test_pages_of_other_sites_are_refused(connect, engine):
    assert connect({"ksql": "x"}, "origin: http://evil.example\r\n").status == 403
