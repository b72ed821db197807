"""GROUP BY over a table: a changed row leaves its old group and joins its new one.

Two kernels do it. `GroupChanges`, by the table's key, remembers each row and says which group gains
and which loses; `TableAggregate`, by group, adds and undoes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from headrace.spark.state.kernels.kernel import KernelSpec, Key, Output, Row, Store, Values
from headrace.spark.state.kernels.steps import Accumulator, Call

# What a message to a group says of its two rows, the old one and the new one.
UNDO, ADD, REPLACE = 0, 1, 2


@dataclass(frozen=True)
class GroupChanges(KernelSpec):
    """Turns a table's rows into messages to groups.

    A row's values are the group's `group_width` key columns, then what the aggregate needs. A
    message's key is the group; its values are what it says (UNDO, ADD or REPLACE), the old row's
    values and the new one's, nulls where there is none. A row whose group is null is in no group.
    """

    group_width: int
    value_width: int

    tables: ClassVar[int] = 1
    keeps_rows: ClassVar[bool] = True

    @cached_property
    def layout(self) -> str:
        return f"group changes 1: {self.group_width} + {self.value_width}"

    def open(self, store: Store) -> GroupChanging:
        return GroupChanging(self, store)


class GroupChanging:
    """Entries: the table's key → (group, values)."""

    def __init__(self, spec: GroupChanges, store: Store) -> None:
        self._width = spec.group_width
        self._nothing = (None,) * spec.value_width
        self._table = store.tables[0]

    def run(self, rows: Iterable[Row], out: Output) -> None:
        table, nothing, emit = self._table, self._nothing, out.rows.append
        for at, _, key, values, time, _ in rows:
            if key is None:
                continue
            old = table.data.get(key)
            new = None
            if values is not None:
                group = self._group(values)
                if group is not None:
                    new = (group, values[self._width :])
            if new is not None:
                table.put(key, new)
            elif old is not None:
                table.remove(key)
            if old is not None and new is not None and old[0] == new[0]:
                emit((at, new[0], (REPLACE, *old[1], *new[1]), time))
                continue
            if old is not None:
                emit((at, old[0], (UNDO, *old[1], *nothing), time))
            if new is not None:
                emit((at, new[0], (ADD, *nothing, *new[1]), time))

    def _group(self, values: Values) -> Key | None:
        """The group's key as kernels hold keys; a group with any null column is none."""
        group = values[: self._width]
        if any(part is None for part in group):
            return None
        return group[0] if self._width == 1 else group

    def advance(self, side: int, now: int, out: Output) -> None:
        raise AssertionError("group changes have no use for stream time")

    def restored(self, table: int, entries: Collection[Key]) -> None:
        """There is no index."""


@dataclass(frozen=True)
class TableAggregate(KernelSpec):
    """Aggregates the messages of GroupChanges by group.

    A group stays when its last row has left: it then shows what its functions make of nothing. The
    result's time is the highest of the changes so far. `carried` is as in StreamAggregate.
    """

    calls: tuple[Call, ...]
    value_width: int
    carried: int = 0
    coalesce: bool = False

    tables: ClassVar[int] = 1
    whole_keys: ClassVar[bool] = True

    @cached_property
    def layout(self) -> str:
        calls = ", ".join(call.layout for call in self.calls)
        return f"table aggregate 1: {self.carried} carried, {calls}"

    def open(self, store: Store) -> TableAggregation:
        return TableAggregation(self, Accumulator(self.calls, self.carried), store)


class TableAggregation:
    """Entries: group → [time, carried values, state of each call…]."""

    def __init__(self, spec: TableAggregate, accumulator: Accumulator, store: Store) -> None:
        self._old = slice(1, 1 + spec.value_width)
        self._new = slice(1 + spec.value_width, 1 + 2 * spec.value_width)
        self._coalesce = spec.coalesce
        self._accumulator = accumulator
        self._table = store.tables[0]

    def run(self, rows: Iterable[Row], out: Output) -> None:
        table, accumulator = self._table, self._accumulator
        latest: dict[Key, int] = {}
        for at, _, group, message, time, _ in rows:
            if group is None or message is None:
                continue
            entry = table.data.get(group)
            failures = []
            if entry is not None:
                entry[0] = max(entry[0], time)
                if message[0] != ADD:
                    failures.append(accumulator.undo(entry, message[self._old]))
            elif message[0] == UNDO:
                continue
            else:
                entry = accumulator.start(time)
            if message[0] != UNDO:
                failures.append(accumulator.add(entry, message[self._new]))
            out.failures += [(at, failure) for failure in failures if failure is not None]
            table.put(group, entry)
            if self._coalesce:
                latest[group] = at
            else:
                out.rows.append((at, group, accumulator.result(entry), entry[0]))
        for group, at in latest.items():
            entry = table.data[group]
            out.rows.append((at, group, accumulator.result(entry), entry[0]))

    def advance(self, side: int, now: int, out: Output) -> None:
        raise AssertionError("an unwindowed aggregate has no use for stream time")

    def restored(self, table: int, entries: Collection[Key]) -> None:
        """There is no index."""
