"""Two streams joined on their keys, within a span of time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from headrace.model.types import MILLIS_PER_DAY
from headrace.spark.state.kernels.expiry import Expiry, in_key_order
from headrace.spark.state.kernels.kernel import (
    LEFT,
    RIGHT,
    KernelSpec,
    Key,
    Output,
    Row,
    Store,
    Values,
)

# A row's place in its side's table: key, time, and a number that tells equals apart.
Place = tuple[Key, int, int]
# A row that waits for a match: time, side, key, and such a number.
Waiting = tuple[int, int, Key, int]


@dataclass(frozen=True)
class StreamStreamJoin(KernelSpec):
    """A left row meets right rows from `before` ms before it to `after` ms after it.

    `left_outer` and `right_outer` say which side's rows are kept without a match. If `eager`
    (ksqlDB's behaviour if the statement has no grace period) such a result leaves at once, and
    matches may still follow; else it leaves when no match can come any more. Rows are remembered
    for the span and the grace period, by the stream time of their own side.
    """

    left_width: int
    right_width: int
    left_outer: bool
    right_outer: bool
    before: int
    after: int
    grace: int
    eager: bool

    tables: ClassVar[int] = 3
    keeps_rows: ClassVar[bool] = True
    whole_keys: ClassVar[bool] = True
    timed: ClassVar[bool] = True

    @cached_property
    def layout(self) -> str:
        return f"stream-stream join 1: {self.left_width} + {self.right_width}"

    @classmethod
    def of(
        cls,
        join_type: Literal["INNER", "LEFT", "RIGHT", "OUTER"],
        widths: tuple[int, int],
        before: int,
        after: int,
        grace: int | None,
    ) -> StreamStreamJoin:
        """As ksqlDB's WITHIN (before, after) GRACE PERIOD grace means it.

        There a RIGHT join is a left join with its sides exchanged, and the span is not: it is then
        the right row that looks back by `before`. Without a grace period rows stay for a day.
        """
        span = (after, before) if join_type == "RIGHT" else (before, after)
        return cls(
            *widths,
            left_outer=join_type in ("LEFT", "OUTER"),
            right_outer=join_type in ("RIGHT", "OUTER"),
            before=span[0],
            after=span[1],
            grace=max(MILLIS_PER_DAY - 2 * before, 0) if grace is None else grace,
            eager=grace is None,
        )

    def open(self, store: Store) -> StreamStreamJoining:
        return StreamStreamJoining(self, store)


class StreamStreamJoining:
    """Entries: (key, time, number) → values, one table for each side; and a third table of rows
    that wait for a match: (time, side, key, number) → values."""

    def __init__(self, spec: StreamStreamJoin, store: Store) -> None:
        self._store = store
        self._sides = store.tables[:2]
        self._waiting = store.tables[2]
        self._keeps = (spec.left_outer, spec.right_outer)
        self._waits = not spec.eager and any(self._keeps)
        self._nothing = ((None,) * spec.left_width, (None,) * spec.right_width)
        # How far back and forward in time each side looks for the other's rows.
        self._back = (spec.before, spec.after)
        self._forward = (spec.after, spec.before)
        self._grace = spec.grace
        self._retention = spec.before + spec.after + spec.grace
        self._rows: tuple[dict[Key, list[tuple[int, int]]], ...] = ({}, {})
        self._expiry: tuple[Expiry[Place], Expiry[Place]] = (Expiry(), Expiry())
        self._queues: tuple[Expiry[Waiting], Expiry[Waiting]] = (Expiry(), Expiry())
        self._number = 0

    def run(self, rows: Iterable[Row], out: Output) -> None:
        seen = list(self._store.times)
        now = max(seen)
        for at, side, key, values, time, reached in rows:
            seen[side] = max(seen[side], reached)
            now = max(now, reached)
            if values is None:
                continue
            if key is None:
                if self._keeps[side]:
                    out.rows.append((at, None, self._joined(side, values, None), time))
                continue
            if self._waits and time == now:
                self._release(at, side, now, out)
            self._number += 1
            self._meet(at, side, key, values, time, now, seen, out)
            if time > seen[side] - self._retention:
                self._keep(side, key, values, time)
            else:
                out.late += 1
        self._drop(seen)

    def advance(self, side: int, now: int, out: Output) -> None:
        if self._waits:
            self._release(-1, side, now, out)
        self._drop(self._store.times)

    def restored(self, table: int, entries: Collection[Any]) -> None:
        if table == 2:
            for place in entries:
                self._queues[place[1]].add(place[0], place)
                self._number = max(self._number, place[3])
            return
        for place in entries:
            self._index(table, place)
            self._number = max(self._number, place[2])

    def _meet(
        self,
        at: int,
        side: int,
        key: Key,
        values: Values,
        time: int,
        now: int,
        seen: list[int],
        out: Output,
    ) -> None:
        """Joins a row with all it finds on the other side, earliest first."""
        other = 1 - side
        first = max(0, time - self._back[side], seen[other] - self._retention + 1)
        last = max(0, time + self._forward[side])
        there = self._rows[other].get(key, [])
        found = there[bisect_left(there, (first, -1)) : bisect_right(there, (last, self._number))]
        table = self._sides[other].data
        for when, number in found:
            match = table[key, when, number]
            out.rows.append((at, key, self._joined(side, values, match), max(time, when)))
            if self._waits and self._keeps[other]:
                self._waiting.remove((when, other, key, number))
        if not found and self._keeps[side]:
            if not self._waits or last < now:
                out.rows.append((at, key, self._joined(side, values, None), time))
            else:
                place = (time, side, key, self._number)
                self._waiting.put(place, values)
                self._queues[side].add(time, place)

    def _keep(self, side: int, key: Key, values: Values, time: int) -> None:
        place = (key, time, self._number)
        self._sides[side].put(place, values)
        self._index(side, place)

    def _index(self, side: int, place: Place) -> None:
        key, time, number = place
        times = self._rows[side].setdefault(key, [])
        spot = bisect_left(times, (time, number))
        if spot == len(times) or times[spot] != (time, number):
            times.insert(spot, (time, number))
        self._expiry[side].add(time, place)

    def _release(self, at: int, side: int, now: int, out: Output) -> None:
        """Rows whose span and grace period are over leave without a match."""
        waiting = [first for first in (q.first() for q in self._queues) if first is not None]
        if not waiting or min(waiting) + self._forward[side] + self._grace >= now:
            return
        leaving: list[Waiting] = []
        for each in (LEFT, RIGHT):
            limit = now - self._forward[each] - self._grace - 1
            for _, places in self._queues[each].due(limit):
                leaving += [p for p in dict.fromkeys(places) if p in self._waiting.data]
        # By time; among equals the right side's first, then by key.
        for place in in_key_order(leaving, by=lambda p: (p[0], -p[1], p[2], p[3])):
            time, of, key, _ = place
            values = self._waiting.data[place]
            out.rows.append((at, key, self._joined(of, values, None), time))
            self._waiting.remove(place)

    def _drop(self, seen: list[int]) -> None:
        for side in (LEFT, RIGHT):
            rows, table = self._rows[side], self._sides[side]
            limit = seen[side] - self._retention
            for _, places in self._expiry[side].due(limit):
                for place in places:
                    table.remove(place)
                    times = rows.get(place[0])
                    if times is not None:
                        del times[: bisect_right(times, (place[1], place[2]))]
                        if not times:
                            del rows[place[0]]

    def _joined(self, side: int, mine: Values, theirs: Values | None) -> Values:
        if theirs is None:
            theirs = self._nothing[1 - side]
        return mine + theirs if side == LEFT else theirs + mine
