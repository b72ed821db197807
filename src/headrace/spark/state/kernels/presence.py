"""Keeps a table's tombstones to keys that had a row.

A table's filter turns rows that fail into tombstones; those for keys that never passed would tell
nobody anything, and Kafka Streams does not send them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar

from headrace.spark.state.kernels.kernel import KernelSpec, Key, Output, Row, Store


@dataclass(frozen=True)
class Presence(KernelSpec):
    """Rows pass as they are; a tombstone only if its key's last row was not one."""

    tables: ClassVar[int] = 1
    layout: ClassVar[str] = "presence 1"

    def open(self, store: Store) -> Watching:
        return Watching(store)


class Watching:
    """Entries: key → True."""

    def __init__(self, store: Store) -> None:
        self._table = store.tables[0]

    def run(self, rows: Iterable[Row], out: Output) -> None:
        table, emit = self._table, out.rows.append
        for at, _, key, values, time, _ in rows:
            if key in table.data:
                if values is None:
                    table.remove(key)
            elif values is None:
                continue
            else:
                table.put(key, True)
            emit((at, key, values, time))

    def advance(self, side: int, now: int, out: Output) -> None:
        raise AssertionError("presence has no use for stream time")

    def restored(self, table: int, entries: Collection[Key]) -> None:
        """There is no index."""
