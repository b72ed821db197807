"""GROUP BY over a stream in session windows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from headrace.spark.kernels.aggregate import default_grace
from headrace.spark.kernels.expiry import Expiry, in_key_order
from headrace.spark.kernels.kernel import Key, Output, Row, Store
from headrace.spark.kernels.steps import Accumulator, Call

# A session's place in the table: its key, start and end, both inclusive.
Place = tuple[Key, int, int]


@dataclass(frozen=True)
class SessionWindow:
    """Rows of a key belong together when they are at most `gap` apart."""

    gap: int
    grace: int

    @classmethod
    def of(cls, gap: int, grace: int | None = None) -> SessionWindow:
        return cls(gap, default_grace(gap) if grace is None else grace)


@dataclass(frozen=True)
class SessionAggregate:
    """Aggregates a stream's rows by key and session.

    A row that extends or connects sessions replaces them: a tombstone for each, then the session
    they became. A result's time is the session's end. The other fields are as in StreamAggregate.
    """

    calls: tuple[Call, ...]
    window: SessionWindow
    carried: int = 0
    final: bool = False

    tables: ClassVar[int] = 1
    whole_keys: ClassVar[bool] = True
    ignores_keyless: ClassVar[bool] = True
    carries: ClassVar[bool] = False
    timed: ClassVar[bool] = True
    windowed: ClassVar[bool] = True

    @cached_property
    def layout(self) -> str:
        calls = ", ".join(call.layout for call in self.calls)
        return f"session aggregate 1: {self.carried} carried, {calls} with gap {self.window.gap}"

    def open(self, store: Store) -> SessionAggregation:
        return SessionAggregation(self, Accumulator(self.calls, self.carried), store)


class SessionAggregation:
    """Entries: (key, start, end) → [end, carried values, state of each call…]."""

    def __init__(self, spec: SessionAggregate, accumulator: Accumulator, store: Store) -> None:
        self._gap = spec.window.gap
        self._grace = spec.window.grace
        self._final = spec.final
        self._accumulator = accumulator
        self._store = store
        self._table = store.tables[0]
        self._sessions: dict[Key, list[tuple[int, int]]] = {}  # (end, start) of each, in order
        self._expiry = Expiry()

    def run(self, rows: Iterable[Row], out: Output) -> None:
        wait = self._grace + self._gap
        closed = self._store.now - wait
        for at, _, key, values, time, now in rows:
            closed = max(closed, now - wait)
            if key is not None and values is not None:
                self._add(at, key, values, time, closed, out)
            if self._final:
                self._close(at, closed, out)
        self._close(-1, closed, out)

    def advance(self, side: int, now: int, out: Output) -> None:
        self._close(-1, now - self._grace - self._gap, out)

    def restored(self, table: int, entries: Collection[Any]) -> None:
        data = self._table.data
        for place in entries:
            self._index(place)
        # What another worker merged into these is no longer there.
        for key in {place[0] for place in entries}:
            spans = self._sessions[key]
            spans[:] = [(end, start) for end, start in spans if (key, start, end) in data]

    def _add(self, at: int, key: Key, values: Any, time: int, closed: int, out: Output) -> None:
        accumulator, table = self._accumulator, self._table
        near = self._near(key, time, closed)
        first = min(time, near[0][1]) if near else time
        last = max(time, near[-1][0]) if near else time
        if last < closed:
            out.late += 1
            return
        entry = None
        moved = first != time or last != time
        for end, start in near:
            place = (key, start, end)
            if entry is None:
                entry = table.data[place]  # merging it with nothing would change nothing
            else:
                accumulator.merge(entry, table.data[place])
            table.remove(place)
            self._unindex(place)
            if moved and not self._final:
                out.rows.append((at, place, None, end))
        if entry is None:
            entry = accumulator.start(last)
        failure = accumulator.add(entry, values)
        if failure is not None:
            out.failures.append((at, failure))
        entry[0] = last
        place = (key, first, last)
        table.put(place, entry)
        self._index(place)
        if not self._final:
            out.rows.append((at, place, accumulator.result(entry), last))

    def _near(self, key: Key, time: int, closed: int) -> list[tuple[int, int]]:
        """(end, start) of the open sessions that a row belongs to, earliest first."""
        spans = self._sessions.get(key)
        if spans is None:
            return []
        at = bisect_left(spans, (max(time - self._gap, closed),))
        found = []
        while at < len(spans) and spans[at][1] <= time + self._gap:
            found.append(spans[at])
            at += 1
        return found

    def _index(self, place: Place) -> None:
        key, start, end = place
        spans = self._sessions.setdefault(key, [])
        at = bisect_left(spans, (end, start))
        if at == len(spans) or spans[at] != (end, start):
            spans.insert(at, (end, start))
            self._expiry.add(end + 1, place)

    def _unindex(self, place: Place) -> None:
        key, start, end = place
        spans = self._sessions.get(key)
        if spans is None:
            return
        at = bisect_left(spans, (end, start))
        if at < len(spans) and spans[at] == (end, start):
            del spans[at]
            if not spans:
                del self._sessions[key]

    def _close(self, at: int, closed: int, out: Output) -> None:
        for _, places in self._expiry.due(closed):
            if self._final and len(places) > 1:
                places = in_key_order(places, by=lambda place: (place[1], place[0]))
            for place in places:
                entry = self._table.data.get(place)
                if entry is not None:
                    if self._final:
                        result = self._accumulator.result(entry)
                        out.rows.append((at, place, result, place[2]))
                    self._table.remove(place)
                self._unindex(place)
