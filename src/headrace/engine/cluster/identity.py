"""The identity of this process among servers: a new name each time, and its earlier names.

A lock on the data directory tells that the earlier processes are dead, however they ended: the
system lets go of it with the process.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from dataclasses import dataclass
from pathlib import Path

KEPT_NAMES = 20


@dataclass(frozen=True)
class Identity:
    name: str
    predecessors: tuple[str, ...] = ()
    _lock: int | None = None

    @staticmethod
    def take(directory: Path, service_id: str) -> Identity:
        """A name for this process. Only one process at a time inherits a directory's names."""
        name = uuid.uuid4().hex
        directory.mkdir(parents=True, exist_ok=True)
        file = os.open(directory / f"{service_id}.servers", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return Identity(name)
        before = os.read(file, 64 * 1024).decode(errors="replace").split()
        os.lseek(file, 0, os.SEEK_SET)
        os.truncate(file, 0)
        os.write(file, "\n".join([*before[1 - KEPT_NAMES :], name, ""]).encode())
        return Identity(name, tuple(before), file)

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
