"""Two tables joined on their primary keys."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from headrace.spark.state.kernels.kernel import LEFT, KernelSpec, Key, Output, Row, Store


@dataclass(frozen=True)
class TableTableJoin(KernelSpec):
    """Output values are the left row's, then the right's, nulls for the side that has no row.

    `left_outer` keeps left rows without a match, `right_outer` right ones. What no longer has a
    result is a tombstone. The result's time is the later of the two rows'.
    """

    left_width: int
    right_width: int
    left_outer: bool
    right_outer: bool

    tables: ClassVar[int] = 2
    keeps_rows: ClassVar[bool] = True
    whole_keys: ClassVar[bool] = True

    @cached_property
    def layout(self) -> str:
        return f"table-table join 1: {self.left_width} + {self.right_width}"

    def open(self, store: Store) -> TableTableJoining:
        return TableTableJoining(self, store)


class TableTableJoining:
    """Entries: key → (values, time), one table for each side."""

    def __init__(self, spec: TableTableJoin, store: Store) -> None:
        self._keeps = (spec.left_outer, spec.right_outer)
        self._nothing = ((None,) * spec.left_width, (None,) * spec.right_width)
        self._tables = store.tables

    def run(self, rows: Iterable[Row], out: Output) -> None:
        tables, keeps, nothing = self._tables, self._keeps, self._nothing
        emit = out.rows.append
        for at, side, key, values, time, _ in rows:
            if key is None:
                continue
            mine, others = tables[side], tables[1 - side]
            had = key in mine.data
            if values is not None:
                mine.put(key, (values, time))
            else:
                mine.remove(key)
            other = others.data.get(key)
            if other is None:
                # Nothing to join: the row counts only if its own side is kept.
                if not keeps[side] or (values is None and not had):
                    continue
                theirs = nothing[1 - side]
                result = None if values is None else values
            else:
                theirs = other[0]
                time = max(time, other[1])
                result = values
                if values is None and keeps[1 - side]:
                    result = nothing[side]
            if result is None:
                emit((at, key, None, time))
            else:
                joined = result + theirs if side == LEFT else theirs + result
                emit((at, key, joined, time))

    def advance(self, side: int, now: int, out: Output) -> None:
        raise AssertionError("a table-table join has no use for stream time")

    def restored(self, table: int, entries: Collection[Key]) -> None:
        """There is no index."""
