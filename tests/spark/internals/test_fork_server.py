"""The process that is forked where Spark would start one."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

from headrace.spark.internals.fork_server import MODULE

# A server's part in it: it names the path, and lives until it is told to end.
OWNER = """
import sys
from headrace.spark.internals.fork_server import fork_server_path
print(fork_server_path(), flush=True)
sys.stdin.read()
"""


def test_a_stateful_operators_process_is_forked_and_others_are_started():
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        path = Path(owner.stdout.readline().strip())
        usual = {**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{os.environ['PYTHONPATH']}"}
        started = subprocess.run(
            [sys.executable, "-c", "print(1)"], capture_output=True, text=True, env=usual
        )
        assert started.stdout == "1\n"
        until(lambda: (path / "socket").exists())
        with socket.create_server(("127.0.0.1", 0)) as spark:
            spark.settimeout(20)
            asked = subprocess.Popen(
                [sys.executable, "-m", MODULE], env={**usual, **told_by(spark)}
            )
            connection, _ = spark.accept()
            with connection, connection.makefile("rb") as file:
                (length,) = struct.unpack("!i", file.read(4))
                assert file.read(length) == b"secret"
                connection.sendall(struct.pack("!i", 2) + b"ok")
                (pid,) = struct.unpack("!i", file.read(4))
                assert pid != asked.pid
                assert parent(pid) != asked.pid
            assert asked.wait(20) is not None  # with the process that it asked for
    finally:
        owner.stdin.close()
        owner.wait(20)
    until(lambda: not path.exists())


def told_by(spark: socket.socket) -> dict[str, str]:
    return {
        "PYTHON_WORKER_FACTORY_PORT": str(spark.getsockname()[1]),
        "PYTHON_WORKER_FACTORY_SECRET": "secret",
    }


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def until(check) -> None:
    deadline = time.monotonic() + 30
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.05)
