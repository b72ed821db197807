"""A websocket client of a few lines: what a server says, frame by frame."""

import base64
import json
import os
import socket
import struct
from urllib.parse import quote


def query_path(body):
    return "/ws/query" + (f"?request={quote(json.dumps(body))}" if body is not None else "")


class Socket:
    """Reads the frames of a server: (opcode, payload)."""

    def __init__(self, url, path, headers="", timeout=5, host=None):
        name = host or url.removeprefix("http://")
        host, port = url.removeprefix("http://").split(":")
        self.link = socket.create_connection((host, int(port)), timeout=timeout)
        key = base64.b64encode(os.urandom(16)).decode()
        self.link.sendall(
            f"GET {path} HTTP/1.1\r\nhost: {name}\r\nupgrade: websocket\r\n"
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
