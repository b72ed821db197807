"""A bucket's state as a small log-structured store, and the worker's memory of it.

Durable state is a few cells of bytes that Spark keeps and versions for each bucket: a *head*, and
*runs*. A run holds the entries that changed over a span of versions; the first run is a snapshot of
everything. A commit adds a run with what it changed, and first merges it with the runs before it
that are not much larger. So there are few runs, and the cost of a commit follows what changed.
Small changes wait in the head, which every commit writes anyway, until together they make a run: a
round trip to Spark's state costs far more than some kilobytes.

A worker process keeps decoded buckets in memory between batches. The head's lineage tells which
version that memory is of, by a nonce that is new with every commit: an attempt that failed after
it changed the memory is never taken for the committed one. Memory that is behind reads only the
runs since; no memory, or memory older than the snapshot, reads all of them.
"""

from __future__ import annotations

import io
import os
import pickle
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from headrace.spark.state.kernels.kernel import Kernel, KernelSpec, Key, Store, Table

# Of the head and the runs. Newer code refuses state of a format that it does not know.
FORMAT = 2

# How many commits back a worker's memory may be and still only read what it missed.
LINEAGE = 64

# Changes up to this size stay in the head.
RECENT_BYTES = 8 * 1024

# One cell stays well below what a state value may measure.
PART_BYTES = 16 * 1024 * 1024

# Decoded state takes about this much more room than its bytes.
_EXPANSION = 5


class StateMismatchError(Exception):
    """Durable state was written for something else than what now runs on it."""


class Cells(Protocol):
    """The durable cells of one bucket."""

    def get(self, run: int, part: int) -> bytes | None: ...

    def put(self, run: int, part: int, data: bytes) -> None: ...

    def remove(self, run: int, part: int) -> None: ...


@dataclass(frozen=True)
class Run:
    """Versions up to `last` (from where the run before it ends), in `parts` cells."""

    last: int
    parts: int
    size: int


@dataclass
class Head:
    """`recent` is what changed since the last run, as the bytes of a run; or nothing."""

    layout: str
    bucket: bytes
    version: int = 0
    lineage: list[tuple[int, bytes]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    recent: bytes = b""
    times: list[int] = field(default_factory=list)

    def dump(self) -> bytes:
        runs = [(r.last, r.parts, r.size) for r in self.runs]
        known = (self.layout, self.bucket, self.version, self.lineage)
        return pickle.dumps((FORMAT, *known, runs, self.recent, self.times), protocol=5)

    @classmethod
    def load(cls, data: bytes, layout: str) -> Head:
        version, *fields = pickle.loads(data)
        if version != FORMAT:
            raise StateMismatchError(
                f"The query's state has format {version}, but this version reads format {FORMAT}."
            )
        was, bucket, number, lineage, runs, recent, times = fields
        if was != layout:
            raise StateMismatchError(
                f"The query's state was written for '{was}' and cannot be read as '{layout}'."
            )
        return cls(was, bucket, number, lineage, [Run(*run) for run in runs], recent, times)

    @property
    def snapshot(self) -> int:
        """The version up to which all changes are in one run."""
        return self.runs[0].last if self.runs else 0

    @property
    def size(self) -> int:
        return sum(run.size for run in self.runs) + len(self.recent)


class Bucket:
    """The state of one bucket, open for one batch."""

    def __init__(self, head: Head, store: Store, kernel: Kernel) -> None:
        self.store = store
        self.kernel = kernel
        self._head = head

    @classmethod
    def open(cls, cells: Cells, spec: KernelSpec, memory: Memory) -> Bucket:
        data = cells.get(0, 0)
        if data is None:
            store = Store(spec.tables)
            head = Head(spec.layout, os.urandom(16), times=list(store.times))
            return cls(head, store, spec.open(store))
        head = Head.load(data, spec.layout)
        held = memory.take(head.bucket)
        if held is not None and held.mark in head.lineage and held.mark[0] >= head.snapshot:
            store, kernel, known = held.store, held.kernel, held.mark[0]
        else:
            store = Store(spec.tables)
            kernel, known = spec.open(store), 0
        for run in head.runs:
            if run.last > known:
                _restore(_load(cells, run), store, kernel)
        if head.recent and head.version > known:
            _restore(pickle.loads(head.recent), store, kernel)
        store.times = list(head.times)
        return cls(head, store, kernel)

    def commit(self, cells: Cells, memory: Memory) -> None:
        """Makes the batch's changes durable, if there are any."""
        head, store = self._head, self.store
        changed = any(table.changed for table in store.tables)
        if changed:
            head.version += 1
            head.lineage = [*head.lineage[1 - LINEAGE :], (head.version, os.urandom(8))]
            self._append(cells)
            for table in store.tables:
                table.changed.clear()
        if changed or store.times != head.times:
            head.times = list(store.times)
            cells.put(0, 0, head.dump())
        if head.lineage:
            held = Held(head.lineage[-1], store, self.kernel, head.size * _EXPANSION)
            memory.keep(head.bucket, held)

    def _append(self, cells: Cells) -> None:
        head = self._head
        payload = [_changes(table) for table in self.store.tables]
        if head.recent:
            payload = _overlay([pickle.loads(head.recent), payload])
        data = _dump(payload)
        if len(data) <= RECENT_BYTES:
            head.recent = data
        else:
            head.recent = b""
            self._add_run(cells, payload, data)

    def _add_run(self, cells: Cells, payload: _Payload, data: bytes) -> None:
        head, tables = self._head, self.store.tables
        merged = 0
        size = len(data)
        for run in reversed(head.runs):
            if run.size > 2 * size:
                break
            merged += 1
            size += run.size
        kept, absorbed = head.runs[: len(head.runs) - merged], head.runs[len(head.runs) - merged :]
        if not kept and not _is_everything(payload, tables):
            # Everything there is, so nothing is left to be removed.
            data = _dump([(table.data, []) for table in tables])
        elif kept and absorbed:
            layers = [_load(cells, run) for run in absorbed]
            data = _dump(_overlay([*layers, payload]))
        for run in absorbed:
            for part in range(run.parts):
                cells.remove(run.last, part)
        parts = range(0, len(data), PART_BYTES)
        for number, start in enumerate(parts):
            cells.put(head.version, number, data[start : start + PART_BYTES])
        head.runs = [*kept, Run(head.version, len(parts), len(data))]


@dataclass
class Held:
    """A bucket as a worker remembers it: `mark` is the version and its nonce."""

    mark: tuple[int, bytes]
    store: Store
    kernel: Kernel
    size: int


class Memory:
    """Decoded buckets of this process; beyond `limit` bytes the least recently used go."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held: OrderedDict[bytes, Held] = OrderedDict()
        self._size = 0

    def take(self, bucket: bytes) -> Held | None:
        """Hands a bucket over; whoever takes it changes it and gives it back when that is done."""
        held = self._held.pop(bucket, None)
        if held is not None:
            self._size -= held.size
        return held

    def keep(self, bucket: bytes, held: Held) -> None:
        self.take(bucket)
        self._held[bucket] = held
        self._size += held.size
        while self._size > self.limit and len(self._held) > 1:
            _, dropped = self._held.popitem(last=False)
            self._size -= dropped.size

    def __len__(self) -> int:
        return len(self._held)


# Of a table: entries that changed, and keys that are gone.
_Changes = tuple[dict[Key, Any], list[Key]]
_Payload = list[_Changes]


def _changes(table: Table) -> _Changes:
    """The table's entries that changed, and the keys that are gone."""
    gone = table.changed.difference(table.data)
    if len(table.changed) - len(gone) == len(table.data):
        return table.data, list(gone)
    return {key: table.data[key] for key in table.changed if key not in gone}, list(gone)


def _is_everything(payload: _Payload, tables: Sequence[Table]) -> bool:
    changes = zip(payload, tables, strict=True)
    return all(entries is table.data and not gone for (entries, gone), table in changes)


def _dump(payload: _Payload) -> bytes:
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=5)
    pickler.fast = True  # entries share nothing worth remembering, and it is twice as fast
    pickler.dump(payload)
    return buffer.getvalue()


def _load(cells: Cells, run: Run) -> _Payload:
    parts = [cells.get(run.last, part) for part in range(run.parts)]
    if any(part is None for part in parts):
        raise StateMismatchError(f"Part of the query's state (version {run.last}) is missing.")
    payload: _Payload = pickle.loads(b"".join(part for part in parts if part is not None))
    return payload


def _restore(payload: _Payload, store: Store, kernel: Kernel) -> None:
    for number, (entries, removed) in enumerate(payload):
        data = store.tables[number].data
        data.update(entries)
        for key in removed:
            data.pop(key, None)
        kernel.restored(number, entries)


def _overlay(layers: list[_Payload]) -> _Payload:
    """One payload that does what the layers do one after the other."""
    return [_overlay_table(tables) for tables in zip(*layers, strict=True)]


def _overlay_table(layers: Sequence[_Changes]) -> _Changes:
    entries: dict[Key, Any] = {}
    removed: dict[Key, None] = {}
    for puts, gone in layers:
        entries.update(puts)
        for key in puts:
            removed.pop(key, None)
        for key in gone:
            entries.pop(key, None)
            removed[key] = None
    return entries, list(removed)
