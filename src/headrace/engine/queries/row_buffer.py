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

# While so much of what was computed waits for its reader, nothing more is computed.
BUFFERED_BYTES = 1024 * 1024


class RowBuffer:
    """Batches that wait for their reader; a writer waits for room before it makes another."""

    def __init__(self, most: int = BUFFERED_BYTES) -> None:
        self._most = most
        self._batches: deque[PackedRows] = deque()
        self._changed = threading.Condition()
        self._writer_waits = False
        self._barred = False
        self._closed = False

    def wait_for_room(self) -> bool:
        """False if the writer is to end instead: it is barred, or nobody reads any more."""
        with self._changed:
            self._writer_waits = True
            self._changed.wait_for(lambda: self._closed or self._barred or self.size < self._most)
            self._writer_waits = False
            return not self._closed and not self._barred

    @property
    def is_full(self) -> bool:
        """Whether the writer waits for room."""
        return self._writer_waits

    def bar(self) -> bool:
        """Ends the wait of the writer without room; False if it does not wait."""
        with self._changed:
            self._barred = self._writer_waits
            self._changed.notify_all()
            return self._barred

    def admit(self) -> None:
        """Lets a writer in again."""
        with self._changed:
            self._barred = False

    def put(self, batch: PackedRows) -> None:
        with self._changed:
            if self._closed:
                batch.discard()
                return
            self._batches.append(batch)
            self._changed.notify_all()

    @property
    def size(self) -> int:
        return sum(batch.size for batch in list(self._batches))

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
