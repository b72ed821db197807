"""Closes connections on which nothing was sent in either direction for a while.

Granian closes no connection of its own accord. How long a connection has been idle the system
itself knows (TCP_INFO, on Linux): no request has to be watched for it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

log = logging.getLogger(__name__)

_OPEN_FILES = Path("/dev/fd")
# Of Linux' struct tcp_info: the state, and milliseconds since data was last sent and received.
_HEAD = struct.Struct("=B7x9I I I I")
_ESTABLISHED = 1
_LONGEST_LOOK, _SHORTEST_LOOK = 30.0, 0.1


async def close_idle_connections(port: int, seconds: int) -> None:
    """Looks again and again, until it is cancelled."""
    if not hasattr(socket, "TCP_INFO"):
        log.warning("ksql.idle.connection.timeout.seconds has no effect on this system.")
        return
    while True:
        await asyncio.sleep(max(_SHORTEST_LOOK, min(_LONGEST_LOOK, seconds / 4)))
        for connection in _connections(port):
            with closing(connection), suppress(OSError):
                if _idle_seconds(connection) >= seconds:
                    connection.shutdown(socket.SHUT_RDWR)


def _connections(port: int) -> Iterator[socket.socket]:
    """The connections to a port of this process, each by a descriptor of our own."""
    for name in os.listdir(_OPEN_FILES):  # noqa: PTH208  a name need not be there any more
        with suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            connection = socket.socket(fileno=os.dup(int(name)))
            if _is_to(connection, port):
                yield connection
            else:
                connection.close()


def _is_to(connection: socket.socket, port: int) -> bool:
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    try:
        connection.getpeername()
        local: int = connection.getsockname()[1]
    except OSError:  # one that listens, or is gone
        return False
    return local == port


def _idle_seconds(connection: socket.socket) -> float:
    told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _HEAD.size)
    state, *numbers = _HEAD.unpack(told)
    if state != _ESTABLISHED:
        return 0.0
    sent, _, received = numbers[9:12]
    idle: int = min(sent, received)
    return idle / 1000
