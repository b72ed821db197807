"""A server under a supervisor, and the processes that it consists of."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from headrace.client import Client
from headrace.kafka.ports import free_port
from scene import Scene
from server_process import ServerProcess


class Supervised:
    """A server that is started again whenever it ends, as a service manager does it."""

    def __init__(self, directory: Path, kafka: str, settings: Mapping[str, str]) -> None:
        self._arguments = (directory, (free_port(), free_port(), free_port()), kafka, settings)
        self.endings: list[int] = []  # the status of each process that ended
        self._retired = threading.Event()
        self.server = ServerProcess(*self._arguments)
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    @property
    def pid(self) -> int:
        return self.server.process.pid

    @property
    def url(self) -> str:
        return self.server.url

    def scene(self, patience: float = 180) -> Scene:
        """Waits until the server answers, whichever process it is by then."""
        deadline = time.monotonic() + patience
        while True:
            try:
                with Client(self.server.url, timeout=10) as client:
                    client.info()
                return Scene(self.server.url, self.server.kafka)
            except Exception:
                assert time.monotonic() < deadline, self.server.told()[-4000:]
                time.sleep(0.2)

    def kill(self, *, everything: bool) -> None:
        """`kill -9`: of the server, whose JVM then notices; or of both in the same moment."""
        with suppress(ProcessLookupError):
            (os.killpg if everything else os.kill)(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """A clean end; the supervisor starts the next."""
        process = self.server.process
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        process.wait(timeout=90)

    def retire(self) -> int | None:
        """A clean end for good; its status, or None if it had to be killed."""
        self._retired.set()
        self._watcher.join()
        try:
            return self.server.stop()
        except subprocess.TimeoutExpired:
            jvm = jvm_of(self.pid)
            if jvm is not None:
                os.kill(jvm, signal.SIGQUIT)  # where it hangs is then in the server's output
            return None
        finally:
            self.server.close()

    def close(self) -> None:
        """Ends it, however the test ended."""
        self._retired.set()
        self._watcher.join()
        self.server.close()

    def _watch(self) -> None:
        while not self._retired.wait(0.1):
            status = self.server.process.poll()
            if status is not None:
                self.endings.append(status)
                self.server = ServerProcess(*self._arguments)


def descendants(pid: int) -> Iterator[int]:
    """The processes that one has started, and those that they have."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.parent.name))
    todo = list(children.get(pid, ()))
    while todo:
        one = todo.pop()
        yield one
        todo += children.get(one, ())


def program(pid: int) -> str:
    """The name of the program that a process runs; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/exe").resolve().name
    except OSError:
        return ""


def jvm_of(pid: int) -> int | None:
    """Spark's JVM, which a server has started."""
    return next((p for p in descendants(pid) if program(p) == "java"), None)


def workers_of(pid: int) -> list[int]:
    """The Python processes that Spark's JVM has started, directly or not."""
    jvm = jvm_of(pid)
    found = descendants(jvm) if jvm is not None else ()
    return [p for p in found if program(p).startswith("python")]
