"""Memory and CPU of a process and its descendants, as Linux reports them."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

PROC = Path("/proc")


def available() -> bool:
    return (PROC / "self" / "smaps_rollup").exists()


def family(pid: int, without: frozenset[int] = frozenset()) -> set[int]:
    """A process and its descendants, without the given ones and their descendants."""
    children: dict[int, list[int]] = {}
    for process, fields in _stats().items():
        children.setdefault(int(fields[1]), []).append(process)
    found: set[int] = set()
    todo = [pid]
    while todo:
        next_ = todo.pop()
        if next_ not in without:
            found.add(next_)
            todo += children.get(next_, [])
    return found


def megabytes(pids: set[int]) -> float:
    """Memory of processes together; what they share counts once."""
    kilobytes = 0
    for pid in pids:
        with suppress(OSError):
            for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    kilobytes += int(line.split()[1])
    return kilobytes / 1024


class Peak:
    """The peak memory of a process and its descendants while a `with` block runs, by sampling."""

    def __init__(self, pid: int, without: frozenset[int], seconds: float = 0.5) -> None:
        self.megabytes = 0.0
        self._pid, self._without = pid, without
        self._seconds = seconds
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.megabytes = max(self.megabytes, megabytes(family(self._pid, self._without)))
            if self._done.wait(self._seconds):
                return


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and its descendants, including those that have ended."""
    stats = _stats()
    ticks = sum(sum(map(int, stats[p][11:15])) for p in family(pid) if p in stats)
    return ticks / os.sysconf("SC_CLK_TCK")


def percent_of_core(pid: int, seconds: float) -> float:
    """What a process and its descendants take of one core, in the next so many seconds."""
    before, began = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_seconds(pid) - before) / (time.monotonic() - began)


def _stats() -> dict[int, list[str]]:
    """The fields after the name of all processes: state, parent, …"""
    found = {}
    for stat in PROC.glob("[0-9]*/stat"):
        with suppress(OSError):
            pid, rest = stat.read_text().split(" ", 1)
            found[int(pid)] = rest.rsplit(")", 1)[1].split()
    return found
