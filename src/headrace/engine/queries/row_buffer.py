"""Buffers of result rows for clients that read slowly: their limits, and their files on disk."""

from __future__ import annotations

import shutil
import threading
import uuid
from collections import deque
from pathlib import Path

from headrace.engine.environment import Environment
from headrace.spark.runtime.session import is_local
from headrace.spark.runtime.torn_checkpoints import local_path
from headrace.spark.sink.packed_rows import PackedRows

# So much of what was computed waits for its reader, and of a larger batch nothing else beside it.
BUFFERED_BYTES = 1024 * 1024


class RowBuffer:
    """Batches that wait for their reader; a writer blocks while the buffer is full."""

    def __init__(self, most: int = BUFFERED_BYTES) -> None:
        self._most = most
        self._batches: deque[PackedRows] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, batch: PackedRows) -> None:
        """Returns when there is room, or when nobody reads any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._fits(batch.size))
            if self._closed:
                batch.discard()
                return
            self._batches.append(batch)
            self._changed.notify_all()

    @property
    def size(self) -> int:
        return sum(batch.size for batch in list(self._batches))

    def _fits(self, size: int) -> bool:
        return not self._batches or size + self.size <= self._most

    def get(self, timeout: float) -> PackedRows | None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._batches, timeout)
            if self._closed or not self._batches:
                return None
            self._changed.notify_all()
            return self._batches.popleft()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def new_place(env: Environment) -> str | None:
    """A directory of its own for one answer, which is made when it is needed: below the data
    directory, or where all executors find it; None if they share no disk with this server."""
    if is_local(str(env.spark.sparkContext.master)):
        return str(_all(env) / uuid.uuid4().hex)
    shared = local_path(f"{env.state_dir}/waiting/{uuid.uuid4().hex}")
    return None if shared is None else str(shared)


def leave(place: str | None) -> None:
    if place is not None:
        shutil.rmtree(place, ignore_errors=True)


def sweep(env: Environment) -> None:
    """Deletes the files that a killed server has left."""
    shutil.rmtree(_all(env), ignore_errors=True)


def _all(env: Environment) -> Path:
    return env.data_dir.absolute() / "waiting"
