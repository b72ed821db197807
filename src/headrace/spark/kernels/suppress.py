"""EMIT FINAL behind a windowed table: one row per window, when it closes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from headrace.spark.kernels.expiry import Expiry
from headrace.spark.kernels.kernel import Output, Row, Store


@dataclass(frozen=True)
class Suppress:
    """Holds back each window's latest row until stream time is `wait` beyond the window's end.

    `wait` is the grace period, for sessions with the gap added. A row's values are the window's
    start and end, then the row. A tombstone (say, of a session that was merged) needs start and
    end too, so it is a row whose third value, `present`, is false.
    """

    wait: int

    tables: ClassVar[int] = 1
    whole_keys: ClassVar[bool] = True
    ignores_keyless: ClassVar[bool] = True
    timed: ClassVar[bool] = True
    windowed: ClassVar[bool] = True
    layout: ClassVar[str] = "suppress 1"

    def open(self, store: Store) -> Suppressing:
        return Suppressing(self, store)


class Suppressing:
    """Entries: (key, start, end) → (values, time)."""

    def __init__(self, spec: Suppress, store: Store) -> None:
        self._wait = spec.wait
        self._store = store
        self._table = store.tables[0]
        self._expiry = Expiry()

    def run(self, rows: Iterable[Row], out: Output) -> None:
        now = self._store.now
        for at, _, key, values, time, reached in rows:
            now = max(now, reached)
            if key is not None and values is not None:
                start, end, present, *row = values
                place = (key, start, end)
                if present:
                    if place not in self._table.data:
                        self._expiry.add(end, place)
                    self._table.put(place, (tuple(row), time))
                else:
                    self._table.remove(place)
            self._release(at, now, out)

    def advance(self, side: int, now: int, out: Output) -> None:
        self._release(-1, now, out)

    def restored(self, table: int, entries: Collection[Any]) -> None:
        for place in entries:
            self._expiry.add(place[2], place)

    def _release(self, at: int, now: int, out: Output) -> None:
        for _, places in self._expiry.due(now - self._wait):
            for place in dict.fromkeys(places):
                held = self._table.data.get(place)
                if held is not None:
                    self._table.remove(place)
                    out.rows.append((at, place, *held))
