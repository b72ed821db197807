"""A fork server for stateful operators: their first process is forked instead of started.

When a query starts, Spark runs a Python process of its own for each stateful operator, to ask what
state it will keep, and gives it ten seconds. It spends a second of CPU on imports alone; with many
queries at once, as when a server starts, they would run out of time. So the Python processes that
the driver's JVM starts find a module in their path that Python runs before all else: in such a
process it asks a server that has imported everything to fork. All others run as usual.

On a cluster, the Python of executors need not have anything installed here for that.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

MODULE = "pyspark.sql.streaming.transform_with_state_driver_worker"

# Python runs it at start, wherever it is in the path. It waits until the forked process has ended,
# which closes the connection.
_CUSTOMIZE = """\
import sys
if {module!r} in sys.orig_argv:
    import json, os, socket
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect({socket!r})
        except OSError:
            pass  # not yet, or no more: this process does the work itself
        else:
            server.sendall(json.dumps(dict(os.environ)).encode())
            server.shutdown(socket.SHUT_WR)
            server.recv(1)
            os._exit(0)
"""

# The JVM closes its end within milliseconds; if not, the process is not to stay for it.
CLOSE_SECONDS = 5.0

_path: Path | None = None


def fork_server_path() -> Path:
    """The directory to be put in Python's path; its server lives as long as this process."""
    global _path
    if _path is None:
        # Not below the data directory: the path of a socket must be short.
        _path = Path(tempfile.mkdtemp(prefix="headrace-"))
        atexit.register(shutil.rmtree, _path, ignore_errors=True)
        listening = _path / "socket"
        command = [sys.executable, "-m", __name__, str(listening)]
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # closed when this process is gone
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # what goes wrong there is told to Spark
            start_new_session=True,
        )
        text = _CUSTOMIZE.format(module=MODULE, socket=str(listening))
        (_path / "sitecustomize.py").write_text(text)
    return _path


def serve(listening: Path) -> None:
    """Forks for everyone who asks, until whoever started this is gone."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(listening))
    listener.listen(128)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    try:
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _run(connection)
            connection.close()
    finally:
        shutil.rmtree(listening.parent, ignore_errors=True)


def _run(connection: socket.socket) -> None:
    """What `python -m` of the module would do, in the environment of the one who asked."""
    from pyspark.sql.streaming.transform_with_state_driver_worker import main
    from pyspark.worker_util import get_sock_file_to_executor

    from headrace.spark.internals import state_sockets

    state_sockets.let_jvm_close_first()
    failed = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with connection.makefile("rb") as told:
            os.environ.clear()
            os.environ.update(json.load(told))
        with get_sock_file_to_executor() as file:
            main(file, file)
            file.flush()
        state_sockets.await_jvm(CLOSE_SECONDS)
        failed = 0
    finally:
        os._exit(failed)


if __name__ == "__main__":
    for imported in (
        MODULE,
        "headrace.spark.state.bucket",
        "headrace.spark.internals.state_sockets",
        "headrace.functions.aggregates",
    ):
        import_module(imported)
    serve(Path(sys.argv[1]))
