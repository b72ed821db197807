"""A stream's row meets what the table holds at that time."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar

from headrace.spark.state.kernels.kernel import RIGHT, KernelSpec, Key, Output, Row, Store, Values


@dataclass(frozen=True)
class StreamTableJoin(KernelSpec):
    """Left is the stream, right the table.

    It says the right row's values (`right_width` nulls where there is none and `left_outer` keeps
    the row). A stream's row without values never joins; without a key it does
    in a left join. The result has the stream row's time.
    """

    left_outer: bool
    right_width: int

    tables: ClassVar[int] = 1
    keeps_rows: ClassVar[bool] = True
    whole_keys: ClassVar[bool] = True
    carries: ClassVar[bool] = True
    right_first: ClassVar[bool] = True
    layout: ClassVar[str] = "stream-table join 1"

    def open(self, store: Store) -> StreamTableJoining:
        return StreamTableJoining(self, store)


class StreamTableJoining:
    """Entries: key → the table's row."""

    def __init__(self, spec: StreamTableJoin, store: Store) -> None:
        self._missing = (None,) * spec.right_width if spec.left_outer else None
        self._table = store.tables[0]

    def run(self, rows: Iterable[Row], out: Output) -> None:
        table = self._table
        for at, side, key, values, time, _ in rows:
            if side == RIGHT:
                if key is None:
                    continue
                if values is None:
                    table.remove(key)
                else:
                    table.put(key, values)
            elif values is not None:
                (match,) = self.matches((key,))
                if match is not None:
                    out.rows.append((at, key, match, time))

    def matches(self, keys: Iterable[Key | None]) -> list[Values | None]:
        find, missing = self._table.data.get, self._missing
        return [missing if key is None else find(key, missing) for key in keys]

    def advance(self, side: int, now: int, out: Output) -> None:
        raise AssertionError("a stream-table join has no use for stream time")

    def restored(self, table: int, entries: Collection[Key]) -> None:
        """There is no index."""
