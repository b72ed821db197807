"""Rows of an answer on their way from Spark's tasks to a client, who may read slowly or not at all.

A task's rows travel with its result if they are few. If they are many it writes them to a file, of
which one small chunk at a time is read: neither the JVM nor Python ever holds a whole batch.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

# So many bytes of a task go without a file; and so many are handed on at a time.
CARRIED_BYTES = 64 * 1024
CHUNK_BYTES = 64 * 1024

_SCHEMA = "rows binary, file string, size bigint"
_Batches = Iterator[pa.RecordBatch]


def pack(rows: DataFrame, directory: str | None) -> DataFrame:
    """The same rows, packed. `directory` is on a disk that all tasks and the driver see; where
    there is none, all rows travel with the tasks' results."""
    return rows.mapInArrow(_packer(directory), _SCHEMA)


def _packer(directory: str | None) -> Callable[[_Batches], _Batches]:
    def packed(batches: _Batches) -> _Batches:
        task = _Task(directory)
        try:
            for batch in batches:
                for chunk in _chunks(batch):
                    task.add(chunk)
            found = task.finish()
        except BaseException:  # whatever it is, the task's file is removed
            task.abort()
            raise
        if found is not None:
            yield pa.RecordBatch.from_pylist([found], _ARROW)

    return packed


_ARROW = pa.schema([("rows", pa.binary()), ("file", pa.string()), ("size", pa.int64())])


def _chunks(batch: pa.RecordBatch) -> _Batches:
    rows = batch.num_rows
    if not rows:
        return
    each = max(1, rows * CHUNK_BYTES // max(batch.nbytes, 1))
    for start in range(0, rows, each):
        yield batch.slice(start, each)


class _Task:
    """The rows of one task: in memory as long as they are few, then in a file."""

    def __init__(self, directory: str | None) -> None:
        self._directory = directory
        self._path: Path | None = None
        self._memory = pa.BufferOutputStream()
        self._sink: pa.NativeFile = self._memory
        self._writer: pa.RecordBatchStreamWriter = None  # until there are rows

    def add(self, chunk: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._sink, chunk.schema)
        self._writer.write_batch(chunk)
        if self._path is None and self._directory and self._sink.tell() > CARRIED_BYTES:
            self._move(self._directory, chunk.schema)

    def _move(self, directory: str, schema: pa.Schema) -> None:
        self._writer.close()
        Path(directory).mkdir(parents=True, exist_ok=True)
        self._path = Path(directory, f"{uuid.uuid4().hex}.rows")
        self._sink = pa.OSFile(str(self._path), "wb")
        self._writer = pa.ipc.new_stream(self._sink, schema)
        with pa.ipc.open_stream(self._memory.getvalue()) as so_far:
            for chunk in so_far:
                self._writer.write_batch(chunk)

    def finish(self) -> dict[str, object] | None:
        if self._writer is None:
            return None
        self._writer.close()
        if self._path is None:
            carried = self._memory.getvalue()
            return {"rows": carried.to_pybytes(), "file": None, "size": carried.size}
        size = self._sink.tell()
        self._sink.close()
        return {"rows": None, "file": self._path.name, "size": size}

    def abort(self) -> None:
        if self._path is not None:
            with suppress(OSError, pa.ArrowException):
                self._sink.close()
            self._path.unlink(missing_ok=True)


@dataclass(frozen=True)
class PackedRows:
    """The rows of one evaluation; `size` in bytes, of which few are in memory. `token` says where
    to go on after them, if anybody wants to know."""

    size: int
    _parts: tuple[tuple[bytes | None, str | None], ...]
    _directory: str | None
    token: str | None = None

    @staticmethod
    def of(packed: DataFrame, directory: str | None) -> PackedRows:
        """Evaluates what `pack` made."""
        found = packed.collect()
        parts = tuple((None if r.rows is None else bytes(r.rows), r.file) for r in found)
        return PackedRows(sum(row.size for row in found), parts, directory)

    def chunks(self) -> _Batches:
        """In their order, once: a file is deleted when it has been read."""
        # Arrow's own pool keeps for each thread what was freed: a MiB for each client.
        pool = pa.system_memory_pool()
        for rows, file in self._parts:
            if file is None:
                yield from pa.ipc.open_stream(pa.py_buffer(rows), memory_pool=pool)
                continue
            path = Path(self._directory or "", file)
            with pa.OSFile(str(path), memory_pool=pool) as source:
                yield from pa.ipc.open_stream(source, memory_pool=pool)
            path.unlink(missing_ok=True)

    def discard(self) -> None:
        for _, file in self._parts:
            if file is not None:
                with suppress(OSError):
                    Path(self._directory or "", file).unlink()
