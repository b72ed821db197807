"""What a server and its Spark's JVM hold: threads, open files, memory, disk."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from java_process import live_mib


@dataclass(frozen=True)
class Held:
    """What a server and its Spark's JVM hold at a moment; memory and disk in MiB.

    What the JVM has of the system grows until its heap's limit, whatever it holds; so what is left
    after a garbage collection is told too.
    """

    server_threads: int
    server_files: int
    server_mib: int
    jvm_threads: int
    jvm_files: int
    jvm_mib: int
    jvm_live_mib: int
    disk_mib: int

    @staticmethod
    def of(server: int, directory: Path) -> Held:
        jvm = _spark_of(server)
        return Held(
            _threads(server),
            _files(server),
            _resident(server),
            _threads(jvm),
            _files(jvm),
            _resident(jvm),
            live_mib(jvm),
            sum(f.lstat().st_blocks for f in _walk(directory)) // 2048,
        )

    @staticmethod
    def mean(several: list[Held]) -> Held:
        columns = zip(*map(astuple, several), strict=True)
        return Held(*(round(sum(column) / len(several)) for column in columns))

    @staticmethod
    def head() -> str:
        return " ".join(f"{f.name:>14}" for f in fields(Held))

    def __str__(self) -> str:
        return " ".join(f"{value:>14}" for value in astuple(self))


def open_files(server: int) -> int:
    """Of a server and of its Spark."""
    return _files(server) + _files(_spark_of(server))


def event_polls(server: int) -> int:
    """Of its Spark: each is one of the files of an open selector."""
    return sum(
        1
        for file in Path(f"/proc/{_spark_of(server)}/fd").iterdir()
        if "[eventpoll]" in _target(file)
    )


def _target(file: Path) -> str:
    try:
        return str(file.readlink())
    except OSError:  # closed meanwhile
        return ""


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # its thread has ended meanwhile
        return ""


def threads_named(server: int, name: str) -> int:
    """Of its Spark. Linux knows the first 15 letters of a name."""
    names = Path(f"/proc/{_spark_of(server)}/task").glob("*/comm")
    return sum(1 for comm in names if _text(comm).strip() == name[:15])


def _spark_of(server: int) -> int:
    """The process of Spark's JVM; the broker's is another."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
            status = (entry / "status").read_text()
        except OSError:
            continue
        if b"org.apache.spark.deploy.SparkSubmit" in command and _value(status, "PPid") == server:
            return int(entry.name)
    raise AssertionError(f"process {server} has no JVM of Spark")


def _value(status: str, name: str) -> int:
    return int(next(line for line in status.splitlines() if line.startswith(name)).split()[1])


def _threads(process: int) -> int:
    return _value(Path(f"/proc/{process}/status").read_text(), "Threads")


def _resident(process: int) -> int:
    return _value(Path(f"/proc/{process}/status").read_text(), "VmRSS") // 1024


def _files(process: int) -> int:
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())


def _walk(directory: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(directory):
        yield from (found for name in names if (found := Path(parent, name)).exists())


class MemoryWatch:
    """The most memory that a server and its Spark had, in MiB, beyond what they had at first."""

    def __init__(self, server: int) -> None:
        self._processes = (server, _spark_of(server))
        self.before = self.peak = self._now()

    @property
    def growth(self) -> int:
        return self.peak - self.before

    @contextmanager
    def going_on(self) -> Iterator[None]:
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.2):
                self.peak = max(self.peak, self._now())

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _now(self) -> int:
        return sum(map(_resident, self._processes))
