"""What a Java process tells of itself, by HotSpot's attach protocol: `jcmd` without a JDK."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from pathlib import Path

_PATIENCE = 10.0


def live_mib(process: int) -> int:
    """MiB of objects and classes that are left after a full garbage collection."""
    _ask(process, "GC.run")
    spaces = "ParOldGen|PSYoungGen|tenured generation|def new generation|Metaspace"
    kib = re.findall(rf"(?:{spaces}) .*?used (\d+)K", _ask(process, "GC.heap_info"))
    assert len(kib) == 3, "the JVM uses neither the parallel nor the serial collector"
    return sum(map(int, kib)) // 1024


def _ask(process: int, command: str) -> str:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_PATIENCE)
        connection.connect(str(_socket(process)))
        words = ("1", "jcmd", command, "", "")  # the protocol's version, and three arguments
        connection.sendall(b"".join(word.encode() + b"\0" for word in words))
        pieces = list(iter(lambda: connection.recv(65536), b""))
    status, _, answer = b"".join(pieces).decode().partition("\n")
    assert status == "0", answer
    return answer


def _socket(process: int) -> Path:
    """The socket on which it answers, once it was asked to open one."""
    path = Path(f"/tmp/.java_pid{process}")
    if not path.exists():
        request = Path(f"/proc/{process}/cwd/.attach_pid{process}")
        request.touch()
        try:
            os.kill(process, signal.SIGQUIT)
            deadline = time.monotonic() + _PATIENCE
            while not path.exists():
                assert time.monotonic() < deadline, f"process {process} does not let us attach"
                time.sleep(0.05)
        finally:
            request.unlink()
    return path
