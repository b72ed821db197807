"""Feeds rows to kernels and reads what they say, without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace.spark.state.kernels.kernel import Output, Store


class Runner:
    """A kernel over one bucket; each `feed` is a batch."""

    def __init__(self, spec: Any) -> None:
        self.spec = spec
        self.store = Store(spec.tables)
        self.kernel = spec.open(self.store)
        self.late = 0
        self.failures: list[str] = []

    def feed(self, *rows: tuple[Any, ...]) -> list[tuple[Any, Any, int]]:
        """Rows are (side, key, values, time); gives (key, values, time)."""
        out = Output()
        for table in self.store.tables:
            table.changed.clear()
        self.kernel.run(self._numbered(rows), out)
        if self.spec.carries:
            out.rows = [(at, k, rows[at][2] + values, time) for at, k, values, time in out.rows]
        if self.spec.timed:
            for side in (0, 1):
                times = [row[3] for row in rows if row[0] == side]
                self.store.times[side] = max([self.store.times[side], *times])
                if times and max(times) == self.store.now:
                    self.kernel.advance(side, self.store.now, out)
        return self._said(out)

    def tick(self, now: int, side: int = 0) -> list[tuple[Any, Any, int]]:
        """Rows of that time came, in other buckets."""
        out = Output()
        self.store.times[side] = max(self.store.times[side], now)
        if now == self.store.now:
            self.kernel.advance(side, now, out)
        return self._said(out)

    def reopen(self) -> None:
        """A kernel that knows nothing but the entries."""
        self.kernel = self.spec.open(self.store)
        for number, table in enumerate(self.store.tables):
            self.kernel.restored(number, list(table.data))

    def size(self) -> int:
        return sum(len(table.data) for table in self.store.tables)

    def _numbered(self, rows: Iterable[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
        now = list(self.store.times)
        for at, (side, key, values, time) in enumerate(rows):
            now[side] = max(now[side], time)
            yield (at, side, key, values, time, now[side])

    def _said(self, out: Output) -> list[tuple[Any, Any, int]]:
        self.late += out.late
        self.failures += [message for _, message in out.failures]
        return [(key, values, time) for _, key, values, time in out.rows]


class Count:
    def initialize(self) -> int:
        return 0

    def add(self, state: int, *args: Any) -> int:
        return state + (not args or args[0] is not None)

    def undo(self, state: int, *args: Any) -> int:
        return state - (not args or args[0] is not None)

    def merge(self, left: int, right: int) -> int:
        return left + right

    def result(self, state: int) -> int:
        return state


class Sum(Count):
    def add(self, state: int, value: int | None) -> int:
        return state + (value or 0)

    def undo(self, state: int, value: int | None) -> int:
        return state - (value or 0)


class Last:
    """Keeps a list, so that states that change in place are tried too."""

    def initialize(self) -> list[Any]:
        return []

    def add(self, state: list[Any], value: Any) -> list[Any]:
        state.append(value)
        return state

    def merge(self, left: list[Any], right: list[Any]) -> list[Any]:
        return left + right

    def result(self, state: list[Any]) -> Any:
        return list(state)


class Picky(Sum):
    def add(self, state: int, value: int | None) -> int:
        if value is not None and value < 0:
            raise ValueError("negative")
        return super().add(state, value)
