"""Two tables joined on an expression over the left row and the right table's primary key.

Two kernels do it. `References`, by the left key, remembers whom each left row refers to and tells
the right side of changes; `ForeignKeyJoin`, by the right key, keeps right rows and their referrers.
Results have the left key, so those of one key may come out of several buckets: put them back in
order (`bucket.in_order_by`) before anything depends on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from headrace.spark.state.kernels.expiry import in_key_order
from headrace.spark.state.kernels.kernel import (
    LEFT,
    KernelSpec,
    Key,
    Output,
    Row,
    Store,
    Values,
    freeze,
)

# What a message tells the right side of a left row:
# that it no longer refers to it, silently (it now refers to another) or for good (it is gone);
# that it refers to it (the result is to be told in any case), or does so for the first time.
MOVED, GONE, REFERS, APPEARED = 0, 1, 2, 3


@dataclass(frozen=True)
class References(KernelSpec):
    """Turns left rows into messages to right keys.

    A row's values are the `foreign_width` columns of the foreign key, then the left row. The key
    of a message is the foreign key; its values are what it says, the left key's `key_width`
    columns, and the left row (nulls if it no longer refers). A null foreign key refers to nothing:
    an inner join has no result then, a left join one without a right row.
    """

    key_width: int
    foreign_width: int
    value_width: int
    left_outer: bool

    tables: ClassVar[int] = 1

    @cached_property
    def layout(self) -> str:
        return f"references 1: {self.key_width}, {self.foreign_width}"

    def open(self, store: Store) -> Referring:
        return Referring(self, store)


class Referring:
    """Entries: left key → (foreign key,)."""

    def __init__(self, spec: References, store: Store) -> None:
        self._spec = spec
        self._nothing = (None,) * spec.value_width
        self._table = store.tables[0]

    def run(self, rows: Iterable[Row], out: Output) -> None:
        spec, table = self._spec, self._table
        for at, _, key, values, time, _ in rows:
            if key is None:
                continue
            columns: Values = (key,) if spec.key_width == 1 else key  # type: ignore[assignment]
            old = table.data.get(key)
            if values is None:
                if old is not None:
                    table.remove(key)
                    self._tell(out, at, old[0], GONE, columns, None, time)
                continue
            foreign = self._foreign(values)
            row = values[spec.foreign_width :]
            if old is not None and old[0] != foreign and old[0] is not None:
                # An inner join whose row now refers to nothing takes its result back.
                word = GONE if foreign is None and not spec.left_outer else MOVED
                self._tell(out, at, old[0], word, columns, None, time)
            if foreign is not None or spec.left_outer:
                first = old is None or (old[0] is None and not spec.left_outer)
                word = APPEARED if first and not spec.left_outer else REFERS
                self._tell(out, at, foreign, word, columns, row, time)
            if old is None or old[0] != foreign:
                table.put(key, (foreign,))

    def _tell(
        self,
        out: Output,
        at: int,
        foreign: Key,
        word: int,
        columns: Values,
        row: Values | None,
        time: int,
    ) -> None:
        if foreign is None and not self._spec.left_outer:
            return
        values = (word, *columns, *(self._nothing if row is None else row))
        out.rows.append((at, foreign, values, time))

    def _foreign(self, values: Values) -> Key:
        width = self._spec.foreign_width
        foreign = values[:width]
        if any(part is None for part in foreign):
            return None
        return foreign[0] if width == 1 else foreign

    def advance(self, side: int, now: int, out: Output) -> None:
        raise AssertionError("references have no use for stream time")

    def restored(self, table: int, entries: Collection[Key]) -> None:
        """There is no index."""


@dataclass(frozen=True)
class ForeignKeyJoin(KernelSpec):
    """Joins messages of References (left) with the right table's rows.

    Output keys are left keys; output values the left row's, then the right's. A result that a left
    row causes has the later of both times, one that a right row causes has that row's time.
    """

    key_width: int
    right_width: int
    left_outer: bool

    tables: ClassVar[int] = 2
    keeps_rows: ClassVar[bool] = True
    whole_keys: ClassVar[bool] = True

    @cached_property
    def layout(self) -> str:
        return f"foreign-key join 1: {self.key_width}, {self.right_width}"

    def open(self, store: Store) -> ForeignKeyJoining:
        return ForeignKeyJoining(self, store)


class ForeignKeyJoining:
    """Entries: (foreign key, left key) → the left row; and foreign key → (right row, time)."""

    def __init__(self, spec: ForeignKeyJoin, store: Store) -> None:
        self._outer = spec.left_outer
        self._width = spec.key_width
        self._nothing = (None,) * spec.right_width
        self._left, self._right = store.tables
        self._referrers: dict[Key, dict[Key, None]] = {}

    def run(self, rows: Iterable[Row], out: Output) -> None:
        for at, side, foreign, values, time, _ in rows:
            if side == LEFT:
                if values is not None:
                    self._left_changed(at, foreign, values, time, out)
            elif foreign is not None:
                self._changed(at, foreign, values, time, out)

    def _left_changed(self, at: int, foreign: Key, values: Values, time: int, out: Output) -> None:
        word, width = values[0], self._width
        key = freeze(values[1] if width == 1 else values[1 : 1 + width])
        row = values[1 + width :]
        right = self._right.data.get(foreign) if foreign is not None else None
        later = time if right is None else max(time, right[1])
        if word in (MOVED, GONE):
            if foreign is not None:
                self._left.remove((foreign, key))
                self._forget(foreign, key)
            if word == GONE:
                out.rows.append((at, key, None, later))
            return
        if foreign is not None:
            self._left.put((foreign, key), row)
            self._referrers.setdefault(foreign, {})[key] = None
        if right is not None:
            out.rows.append((at, key, row + right[0], later))
        elif self._outer:
            out.rows.append((at, key, row + self._nothing, later))
        elif word == REFERS:
            out.rows.append((at, key, None, later))

    def _changed(
        self, at: int, foreign: Key, values: Values | None, time: int, out: Output
    ) -> None:
        if values is None:
            self._right.remove(foreign)
        else:
            self._right.put(foreign, (values, time))
        right = values if values is not None else self._nothing if self._outer else None
        for key in in_key_order(list(self._referrers.get(foreign, ()))):
            row = self._left.data.get((foreign, key))
            if row is None:  # another worker has seen it go
                self._forget(foreign, key)
                continue
            out.rows.append((at, key, None if right is None else row + right, time))

    def _forget(self, foreign: Key, key: Key) -> None:
        referrers = self._referrers.get(foreign)
        if referrers is not None:
            referrers.pop(key, None)
            if not referrers:
                del self._referrers[foreign]

    def advance(self, side: int, now: int, out: Output) -> None:
        raise AssertionError("a foreign-key join has no use for stream time")

    def restored(self, table: int, entries: Collection[Any]) -> None:
        if table == LEFT:
            for foreign, key in entries:
                self._referrers.setdefault(foreign, {})[key] = None
