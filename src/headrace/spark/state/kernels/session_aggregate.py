"""GROUP BY over a stream in session windows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, ClassVar

from headrace.spark.state.kernels.aggregate import default_grace
from headrace.spark.state.kernels.expiry import Expiry, in_key_order
from headrace.spark.state.kernels.kernel import KernelSpec, Key, Output, Row, Store, Values
from headrace.spark.state.kernels.steps import Accumulator, Call

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
class SessionAggregate(KernelSpec):
    """Aggregates a stream's rows by key and session.

    A row that extends or connects sessions replaces them: a tombstone for each, then the session
    they became. A result's time is the session's end. With `coalesce` that is told once a batch:
    what sessions became, and which are gone; of one that came and went in between, nothing. The
    other fields are as in StreamAggregate.
    """

    calls: tuple[Call, ...]
    window: SessionWindow
    carried: int = 0
    final: bool = False
    coalesce: bool = False

    tables: ClassVar[int] = 1
    whole_keys: ClassVar[bool] = True
    ignores_keyless: ClassVar[bool] = True
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
        self._coalesce = spec.coalesce and not spec.final
        self._eager = not spec.coalesce and not spec.final
        self._accumulator = accumulator
        self._store = store
        self._table = store.tables[0]
        self._sessions: dict[Key, list[tuple[int, int]]] = {}  # (end, start) of each, in order
        self._expiry: Expiry[Place] = Expiry()
        # By key, the number of its latest row. Its rows are counted, and not timed, so that a batch
        # that runs again, wherever and whenever, comes to the same.
        self._arrivals: dict[Key, int] = {}
        # Of this batch: sessions that were not there before it, and the row that last changed or
        # ended a session.
        self._born: set[Place] = set()
        self._changed: dict[Place, int] = {}
        self._gone: dict[Place, int] = {}

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
        if self._coalesce:
            self._tell(out)

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
        if self._accumulator.is_in_order:
            for place in entries:
                arrived = self._accumulator.newest(data[place]) if place in data else 0
                self._arrivals[place[0]] = max(arrived, self._arrivals.get(place[0], 0))

    def _add(self, at: int, key: Key, values: Values, time: int, closed: int, out: Output) -> None:
        accumulator, table = self._accumulator, self._table
        spans = self._sessions.get(key, [])
        low, high = self._near(spans, time, closed)
        first, last = time, time
        if low < high:
            first, last = min(time, spans[low][1]), max(time, spans[high - 1][0])
        if last < closed:
            out.late += 1
            return
        entry = None
        moved = first != time or last != time
        for end, start in spans[low:high]:
            place = (key, start, end)
            if entry is None:
                entry = table.data[place]  # merging it with nothing would change nothing
            else:
                accumulator.merge(entry, table.data[place])
            table.remove(place)
            if self._eager and moved:
                out.rows.append((at, place, None, end))
            elif self._coalesce:
                self._changed.pop(place, None)
                if place not in self._born:
                    self._gone[place] = at
        if entry is None:
            entry = accumulator.start(last)
        if accumulator.is_in_order:
            arrival = self._arrivals[key] = self._arrivals.get(key, 0) + 1
            accumulator.number(arrival)
        failure = accumulator.add(entry, values)
        if failure is not None:
            out.failures.append((at, failure))
        entry[0] = last
        place = (key, first, last)
        if self._coalesce:
            self._changed[place] = at
            if self._gone.pop(place, None) is None and place not in table.changed:
                self._born.add(place)
        table.put(place, entry)
        if low == high or spans[low:high] != [(last, first)]:
            spans[low:high] = [(last, first)]
            self._sessions[key] = spans
            self._expiry.add(last + 1, place)
        if self._eager:
            out.rows.append((at, place, accumulator.result(entry), last))

    def _tell(self, out: Output) -> None:
        """What a batch's rows came to, in their order."""
        data, result = self._table.data, self._accumulator.result
        rows: list[Any] = [(at, place, None, place[2]) for place, at in self._gone.items()]
        rows += [(at, p, result(data[p]), p[2]) for p, at in self._changed.items()]
        out.rows += sorted(rows, key=itemgetter(0))
        for of_this_batch in (self._born, self._changed, self._gone):
            of_this_batch.clear()

    def _near(self, spans: list[tuple[int, int]], time: int, closed: int) -> tuple[int, int]:
        """Where in a key's sessions the open ones are that a row belongs to."""
        low = high = bisect_left(spans, (max(time - self._gap, closed),))
        while high < len(spans) and spans[high][1] <= time + self._gap:
            high += 1
        return low, high

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
                self._arrivals.pop(key, None)

    def _close(self, at: int, closed: int, out: Output) -> None:
        for _, places in self._expiry.due(closed):
            if self._final and len(places) > 1:
                places = in_key_order(places, by=lambda place: (place[1], place[0]))
            for place in places:
                entry = self._table.data.get(place)
                if entry is not None:
                    changed = self._changed.pop(place, None)
                    if self._final or changed is not None:
                        result = self._accumulator.result(entry)
                        out.rows.append(
                            (at if changed is None else changed, place, result, place[2])
                        )
                    self._table.remove(place)
                self._unindex(place)
