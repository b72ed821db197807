"""What every kernel is: a state machine that turns the rows of one bucket into output rows.

A kernel knows keys, rows, times and sides; never SQL. It runs in a Python worker, on all rows that
a micro-batch has for its bucket, in order. What it must remember it keeps in a `Store`, which
records what changed; whoever runs the kernel makes those changes durable. Anything else a kernel
holds (say, which window closes next) is an index that it can rebuild from the store's entries.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any, ClassVar, Protocol

# A key is opaque to kernels: one hashable value, or a tuple of them if the key has more columns.
Key = Hashable
# A row's values, in the order of the input's value columns. None instead is a tombstone.
Values = tuple[Any, ...]

# (at, side, key, values, time, now): `at` is the row's place in its batch, `time` its timestamp
# and `now` its side's stream time: the highest timestamp so far among all rows of that side, in
# whatever bucket, this row included. The rows come in such an order that `now` never falls much
# behind the other side's.
Row = tuple[int, int, Key, Values | None, int, int]

LEFT, RIGHT = 0, 1

# Before the first row.
BEGINNING = -(2**63)


def freeze(value: Any) -> Any:
    """A value that can be a key, and still be written as the Arrow type it came from."""
    if isinstance(value, list | tuple):
        return tuple(freeze(v) for v in value)
    if isinstance(value, dict):
        return tuple(freeze(v) for v in value.values())
    return value


class Output:
    """What a kernel has to say about a batch: rows, rows it dropped as late, and failures.

    `rows` holds (at, key, values, time): the place of the input row that caused it, then the row.
    Kernels whose output is windowed give (key, start, end) as the key. `matches`, if there are any,
    stand for the rows of a side that is carried: what each of its keys met, or None.
    """

    __slots__ = ("failures", "late", "matches", "rows")

    def __init__(self) -> None:
        self.rows: list[tuple[int, Key, Values | None, int]] = []
        self.matches: Sequence[Values | None] | None = None
        self.late = 0
        self.failures: list[tuple[int, str]] = []


class Table:
    """Entries by key, and which of them changed since the last commit.

    Entries may be changed in place, if `changed` is told.
    """

    __slots__ = ("changed", "data")

    def __init__(self) -> None:
        self.data: dict[Key, Any] = {}
        self.changed: set[Key] = set()

    def put(self, key: Key, entry: Any) -> None:
        self.data[key] = entry
        self.changed.add(key)

    def remove(self, key: Key) -> None:
        if self.data.pop(key, None) is not None:
            self.changed.add(key)


class Store:
    """A bucket's state: some tables, and the stream time of each side as of the last batch."""

    __slots__ = ("tables", "times")

    def __init__(self, tables: int) -> None:
        self.tables = tuple(Table() for _ in range(tables))
        self.times = [BEGINNING, BEGINNING]

    @property
    def now(self) -> int:
        return max(self.times)


class Kernel(Protocol):
    """A running kernel, bound to its store."""

    def run(self, rows: Iterable[Row], out: Output) -> None:
        """Handles a batch's rows, in order."""

    def advance(self, side: int, now: int, out: Output) -> None:
        """After a batch: a side's rows, in whatever bucket, have come as far as `now`, which is
        the stream time. Only asked of kernels that are timed."""

    def restored(self, table: int, entries: Collection[Key]) -> None:
        """Entries with these keys came from durable state: index them."""


class CarryingKernel(Kernel, Protocol):
    """A kernel of which a left row asks no more than what its key meets."""

    def matches(self, keys: Iterable[Key | None]) -> list[Values | None]:
        """What a left row of each of these keys would meet now; of None it does not leave."""


class KernelSpec(Protocol):
    """What to run: a description that travels to the workers.

    `layout` says what the stored entries mean. State written under another layout is refused.
    With `whole_keys` a key of which any column is null is no key. With `ignores_keyless` rows
    without a key or without values are kept away, so that they do not even move stream time.
    With `carries` every output row is a row of the left side with more values behind its own: the
    kernel says only these, and of a left row's values sees no more than whether there are any. Such
    a kernel is a `CarryingKernel`. With `right_first` rows of the right go first among those of the
    same time. One that `keeps_rows` of its input cannot go on with rows of other columns.
    """

    tables: ClassVar[int]
    whole_keys: ClassVar[bool] = False
    ignores_keyless: ClassVar[bool] = False
    carries: ClassVar[bool] = False
    right_first: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = False

    @property
    def timed(self) -> bool:
        """Whether the kernel must hear of stream time even where its bucket has no rows."""
        return False

    @property
    def windowed(self) -> bool:
        """Whether output keys are (key, start, end)."""
        return False

    @property
    def layout(self) -> str: ...

    def open(self, store: Store) -> Kernel: ...
