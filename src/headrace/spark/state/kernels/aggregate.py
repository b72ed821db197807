"""GROUP BY over a stream: unwindowed, or in tumbling and hopping windows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from headrace.model.types import MILLIS_PER_DAY
from headrace.spark.state.kernels.expiry import Expiry, in_key_order
from headrace.spark.state.kernels.kernel import KernelSpec, Key, Output, Row, Store
from headrace.spark.state.kernels.steps import Accumulator, Call


@dataclass(frozen=True)
class TimeWindow:
    """Windows of `size` that start every `advance`; they close `grace` after their end."""

    size: int
    advance: int
    grace: int

    @classmethod
    def of(cls, size: int, advance: int | None = None, grace: int | None = None) -> TimeWindow:
        """Without a grace period windows stay open for a day, as in ksqlDB."""
        return cls(size, advance or size, default_grace(size) if grace is None else grace)

    def starts(self, time: int) -> range:
        """The starts of the windows that hold `time`; no window starts before the epoch."""
        first = max(0, time - self.size + self.advance) // self.advance * self.advance
        return range(first, time + 1, self.advance)


def default_grace(size: int) -> int:
    return max(MILLIS_PER_DAY - size, 0)


@dataclass(frozen=True)
class StreamAggregate(KernelSpec):
    """Aggregates a stream's rows by key.

    A row's values are the `carried` columns, which the result shows as of the latest row, and
    then whatever the calls take as arguments. With `final` a window's result leaves once, when the
    window closes. With `coalesce` a group's result leaves once a batch. Rows without a key or
    without values are left out.

    Kafka Streams forgets final results that a jump of stream time carries beyond its window store's
    retention. `retention` does the same, exactly if there is one bucket; None keeps all results.
    """

    calls: tuple[Call, ...]
    carried: int = 0
    window: TimeWindow | None = None
    final: bool = False
    coalesce: bool = False
    retention: int | None = None

    tables: ClassVar[int] = 1
    whole_keys: ClassVar[bool] = True
    ignores_keyless: ClassVar[bool] = True

    @property
    def timed(self) -> bool:
        return self.window is not None

    @property
    def windowed(self) -> bool:
        return self.window is not None

    @cached_property
    def layout(self) -> str:
        window = f" in {self.window.size}/{self.window.advance}" if self.window else ""
        calls = ", ".join(call.layout for call in self.calls)
        return f"aggregate 1: {self.carried} carried, {calls}{window}"

    def open(self, store: Store) -> UnwindowedAggregation | WindowedAggregation:
        accumulator = Accumulator(self.calls, self.carried)
        if self.window is None:
            return UnwindowedAggregation(self, accumulator, store)
        return WindowedAggregation(self, self.window, accumulator, store)


class UnwindowedAggregation:
    """Entries: key → [time, carried values, state of each call…]."""

    def __init__(self, spec: StreamAggregate, accumulator: Accumulator, store: Store) -> None:
        self._coalesce = spec.coalesce
        self._accumulator = accumulator
        self._table = store.tables[0]

    def run(self, rows: Iterable[Row], out: Output) -> None:
        data, changed = self._table.data, self._table.changed
        start, add, result = (
            self._accumulator.start,
            self._accumulator.add,
            self._accumulator.result,
        )
        emit, is_single = out.rows.append, self._accumulator.is_single
        coalesce = self._coalesce
        latest: dict[Key, int] = {}
        for at, _, key, values, time, _ in rows:
            if key is None or values is None:
                continue
            entry = data.get(key)
            if entry is None:
                entry = data[key] = start(time)
            elif time > entry[0]:
                entry[0] = time
            failure = add(entry, values)
            changed.add(key)
            if failure is not None:
                out.failures.append((at, failure))
                if is_single:
                    continue
            if coalesce:
                latest[key] = at
            else:
                emit((at, key, result(entry), entry[0]))
        for key, at in latest.items():
            entry = data[key]
            emit((at, key, result(entry), entry[0]))

    def advance(self, side: int, now: int, out: Output) -> None:
        raise AssertionError("an unwindowed aggregate has no use for stream time")

    def restored(self, table: int, entries: Collection[Key]) -> None:
        """There is no index."""


class WindowedAggregation:
    """Entries: (key, window start) → [time, carried values, state of each call…].

    A window's entries go when it closes: no later row can change them.
    """

    def __init__(
        self, spec: StreamAggregate, window: TimeWindow, accumulator: Accumulator, store: Store
    ) -> None:
        self._coalesce = spec.coalesce
        self._final = spec.final
        self._retention = spec.retention
        self._window = window
        self._accumulator = accumulator
        self._store = store
        self._table = store.tables[0]
        self._expiry: Expiry[tuple[Key, int]] = Expiry()

    def run(self, rows: Iterable[Row], out: Output) -> None:
        data, changed = self._table.data, self._table.changed
        accumulator, expiry, window = self._accumulator, self._expiry, self._window
        size, grace = window.size, window.grace
        closed = self._store.now - grace
        tumbling = window.advance == size
        begin, add = accumulator.start, accumulator.add
        emit = out.rows.append
        eager = not self._final and not self._coalesce
        latest: dict[tuple[Key, int], int] = {}
        starts: Iterable[int]
        for at, _, key, values, time, now in rows:
            if now - grace > closed:
                # Late rows of this very instant are judged before the windows are let go.
                closed = now - grace
            if key is not None and values is not None:
                starts = (time - time % size,) if tumbling and time >= 0 else window.starts(time)
                for start in starts:
                    if start + size <= closed:
                        out.late += 1
                        continue
                    place = (key, start)
                    entry = data.get(place)
                    if entry is None:
                        entry = data[place] = begin(time)
                        expiry.add(start + size, place)
                    elif time > entry[0]:
                        entry[0] = time
                    failure = add(entry, values)
                    changed.add(place)
                    if failure is not None:
                        out.failures.append((at, failure))
                        if accumulator.is_single:
                            continue
                    if eager:
                        key_out = (key, start, start + size)
                        emit((at, key_out, accumulator.result(entry), entry[0]))
                    elif self._coalesce:
                        latest[place] = at
            if self._final:
                self._close(at, closed, now, out)
        if not self._final:
            for place, at in latest.items():
                entry = data[place]
                key_out = (place[0], place[1], place[1] + size)
                emit((at, key_out, accumulator.result(entry), entry[0]))
            self._close(-1, closed, None, out)

    def advance(self, side: int, now: int, out: Output) -> None:
        self._close(-1, now - self._window.grace, None, out)

    def restored(self, table: int, entries: Collection[Any]) -> None:
        size, add = self._window.size, self._expiry.add
        for place in entries:
            add(place[1] + size, place)

    def _close(self, at: int, closed: int, now: int | None, out: Output) -> None:
        data, size = self._table.data, self._window.size
        forgotten = self._forgotten(now)
        for end, places in self._expiry.due(closed):
            # A place may be indexed more than once: by this worker and from what others wrote.
            live = [p for p in dict.fromkeys(places) if p in data]
            if self._final and end - size >= forgotten:
                for place in in_key_order(live):
                    entry = data[place]
                    key_out = (place[0], end - size, end)
                    out.rows.append((at, key_out, self._accumulator.result(entry), entry[0]))
            for place in live:
                self._table.remove(place)

    def _forgotten(self, now: int | None) -> int:
        """Windows that start before this are beyond retention when a row of time `now` is in."""
        if now is None or self._retention is None:
            return 0
        return now // self._window.advance * self._window.advance - self._retention
