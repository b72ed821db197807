"""How rows travel between Spark and kernels: whole Arrow batches, one parcel per bucket.

Spark hands rows to a stateful Python function one by one, at several microseconds each. So before
that a `mapInArrow` step packs each task's rows, bucket by bucket, into binary parcels, and after
it another unpacks the results; in between there are only a few parcels to carry. Packing also sees
all rows of a task in order, whatever their key: there it finds the stream time of each row, and
tells every bucket how far time has come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark import TaskContext

from headrace.spark.rows.columns import (
    DEAD,
    ERRORS,
    NULL,
    OFFSET,
    ORDER,
    PARTITION,
    TIME,
)
from headrace.spark.rows.optimistic import require_small
from headrace.spark.state.kernel_step import SideLayout, StepLayout
from headrace.spark.state.kernels.kernel import LEFT, Key, Output, Row, Values, freeze

# Columns of every row that goes into a kernel, beside key and values.
BUCKET = "$bucket"
# The place of a row in the order of all rows; `ORDER` is the stream time when its record was read.
PLACE = (PARTITION, OFFSET, ORDER)
NOW = "$now"

# What a parcel is.
ROWS, PASSED, TICK = 0, 1, 2
PARCEL = "bucket int, sequence int, number int, kind int, side int, data binary"

_OUTPUT_ROWS = 50_000

# A row's partition tells also on which side of each kernel its cause came in, a bit for each.
_PARTITION_BITS = 20
_RANKS = 31 - _PARTITION_BITS


# A parcel's columns.
_ParcelRow = tuple[int, int, int, int, int, bytes]

# Numbers of rows, and a column on its way to Arrow.
_Places = NDArray[np.int64]
_Column: TypeAlias = "pa.Array | Sequence[object] | NDArray[np.bool_]"

# The columns of a parcel after key and values.
TAIL = (NULL, TIME, ORDER, NOW, PARTITION, OFFSET)


Step = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def packer(layout: StepLayout, side: int) -> Step:
    """Packs the rows of one side."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        packing = _Packing(layout, side)
        if layout.step.decoding.small_rows:
            batches = _small(batches)
        if layout.sides[side].ordered:
            batches = in_order(batches)
        for batch in batches:
            if batch.num_rows:
                yield _parcels(packing.rows(batch))
        if layout.step.kernel.timed:
            yield _parcels(packing.ticks())

    return pack


def _small(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        require_small(batch)
        yield batch


class _Packing:
    def __init__(self, layout: StepLayout, side: int) -> None:
        self._layout = layout
        self._side = side
        self._sequence: int | None = None
        self._number = 0
        self._labels = np.array(labels(layout.step.buckets), dtype=np.int32)
        self._time: int | None = None

    def rows(self, batch: pa.RecordBatch) -> Iterator[_ParcelRow]:
        if self._sequence is None:
            self._sequence = _sequence(batch)
        if ERRORS in batch.schema.names:
            passed, batch = self._part_dead(batch)
            if passed is not None:
                data = passed.serialize().to_pybytes()
                yield (int(self._labels[0]), self._sequence, self._next(), PASSED, 0, data)
        if batch.num_rows:
            yield from self._split(self._clocked(batch))

    def _clocked(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """The rows' columns, with the stream time of each row."""
        now = np.maximum.accumulate(batch.column(TIME).to_numpy(zero_copy_only=False))
        if self._time is not None:
            now = np.maximum(now, self._time)
        self._time = int(now[-1])
        columns = {name: batch.column(name) for name in batch.schema.names}
        columns[NOW] = pa.array(now)
        if NULL not in columns:
            columns[NULL] = pa.array(np.zeros(batch.num_rows, dtype=bool))
        columns.setdefault(ORDER, columns[NOW])
        return columns

    def _split(self, columns: dict[str, pa.Array]) -> Iterator[_ParcelRow]:
        """A parcel for each bucket that has rows, which stay in order."""
        schema, sequence = self._layout.sides[self._side].schema, self._sequence or 0
        # Small numbers are sorted in a tenth of the time.
        small = np.min_scalar_type(self._layout.step.buckets - 1)
        buckets = columns[BUCKET].to_numpy(zero_copy_only=False).astype(small)
        by_bucket = np.argsort(buckets, kind="stable")
        rows = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
        rows = rows.take(pa.array(by_bucket))
        found, starts = np.unique(buckets[by_bucket], return_index=True)
        ends = [*starts[1:].tolist(), rows.num_rows]
        for bucket, start, end in zip(found.tolist(), starts.tolist(), ends, strict=True):
            data = rows.slice(start, end - start).serialize().to_pybytes()
            label = int(self._labels[bucket])
            yield (label, sequence, self._next(), ROWS, self._side, data)

    def ticks(self) -> Iterator[_ParcelRow]:
        """Tells every bucket how far time came."""
        if self._time is None:
            return
        data = str(self._time).encode()
        for label in self._labels.tolist():
            yield (label, self._sequence or 0, self._next(), TICK, self._side, data)

    def _part_dead(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch | None, pa.RecordBatch]:
        """Rows that have log entries leave their entries here; what is alive goes on without."""
        dead = batch.column(DEAD).to_numpy(zero_copy_only=False).astype(bool)
        noted = dead | pc.is_valid(batch.column(ERRORS)).to_numpy(zero_copy_only=False)
        if not noted.any():
            return None, batch
        said = batch.filter(pa.array(noted))
        schema = self._layout.output
        given = {TIME, PARTITION, OFFSET, ERRORS}
        arrays = [
            said.column(field.name).cast(field.type)
            if field.name in given
            else pa.array([True] * said.num_rows)
            if field.name == DEAD
            else pa.nulls(said.num_rows, field.type)
            for field in schema
        ]
        passed = pa.RecordBatch.from_arrays(arrays, schema=schema)
        return passed, batch.filter(pa.array(~dead))

    def _next(self) -> int:
        self._number += 1
        return self._number


def _sequence(batch: pa.RecordBatch) -> int:
    """The task's place among those of its side, the same whenever the batch runs.

    Spark numbers the partitions of a topic in one order when it first runs a batch and in another
    when it runs it again after a restart. Tasks behind a shuffle keep their numbers.
    """
    if ORDER not in batch.schema.names:
        return int(batch.column(PARTITION)[0].as_py() or 0)
    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def _parcels(rows: Iterable[_ParcelRow]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * 6
    types = [pa.int32()] * 5 + [pa.binary()]
    names = ["bucket", "sequence", "number", "kind", "side", "data"]
    arrays = [pa.array(c, type=t) for c, t in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def in_order(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of an earlier kernel come bucket by bucket; this puts them back in their order."""
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return
    table = pa.Table.from_batches(held)
    keys = [table.column(name).to_numpy() for name in (OFFSET, PARTITION, ORDER)]
    keys = [np.nan_to_num(k, nan=-1).astype(np.int64) for k in keys]
    table = table.take(pa.array(np.lexsort(keys)))
    yield from table.combine_chunks().to_batches()


def sorter(names: Sequence[str]) -> Step:
    """Puts rows in their order; of their columns, these are left."""

    def sort(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in in_order(batches):
            yield batch.select(names)

    return sort


@dataclass(frozen=True)
class Parcel:
    bucket: int
    sequence: int
    number: int
    kind: int
    side: int
    data: bytes


class Inbox:
    """The parcels of one bucket in one batch, opened."""

    def __init__(
        self, layout: StepLayout, parcels: Iterable[Parcel], before: Sequence[int]
    ) -> None:
        ordered = sorted(parcels, key=lambda p: (p.sequence, p.number))
        self.passed = [p.data for p in ordered if p.kind == PASSED]
        # How far each side came in this batch, in whatever bucket.
        self.ticks: dict[int, int] = {}
        for p in ordered:
            if p.kind == TICK:
                self.ticks[p.side] = max(int(p.data), self.ticks.get(p.side, int(p.data)))
        batches: list[tuple[int, pa.Table]] = []
        for side in layout.precedence:
            schema = layout.sides[side].schema
            found = [
                pa.ipc.read_record_batch(pa.py_buffer(p.data), schema)
                for p in ordered
                if p.kind == ROWS and p.side == side
            ]
            if found:
                rows = pa.Table.from_batches(found, schema)
                if layout.sides[side].latest:
                    rows = _latest(rows, layout.sides[side])
                batches.append((side, rows))
        self._layout = layout
        self._batches = batches
        self._before = before
        self.times = [max(t, self.ticks.get(side, t)) for side, t in enumerate(before)]
        self._merge()

    def _merge(self) -> None:
        """The order of all rows: by the stream time at which they were read."""
        orders = [table.column(ORDER).to_numpy() for _, table in self._batches]
        order = np.concatenate(orders) if orders else np.empty(0, dtype=np.int64)
        self._sorted = bool((order[1:] >= order[:-1]).all())
        self._permutation = None if self._sorted else np.argsort(order, kind="stable")
        self._gathered: dict[str, pa.Array] = {}
        self.count = len(order)

    def _gather(self, name: str) -> pa.Array:
        """A column of all rows, in their order."""
        if name not in self._gathered:
            chunks = [c for side, _ in self._batches for c in self._column(side, name).chunks]
            column = pa.chunked_array(chunks).combine_chunks()
            if self._permutation is not None:
                column = column.take(pa.array(self._permutation))
            self._gathered[name] = column
        return self._gathered[name]

    def _column(self, side: int, name: str | int) -> pa.ChunkedArray:
        """A column of a side's rows.

        Their partitions are such that rows of the same order, put in the order of their partitions
        by a later step, are in that of their sides: the side that goes last has the highest.
        """
        column = self._table(side).column(name)
        if name != PARTITION or side == self._layout.precedence[0]:
            return column
        rank = 1 << (_PARTITION_BITS + min(self._layout.step.depth, _RANKS - 1))
        return pc.bit_wise_or(column, pa.scalar(rank, column.type))

    def rows(self, side: int | None = None) -> Iterator[Row]:
        """What the kernel is to see: all rows in order, or those of one side."""
        at, order = self._in_order(side)
        carries = self._layout.step.kernel.carries
        sides: list[int] = []
        keys: list[Key] = []
        values: list[Values | None] = []
        times: list[int] = []
        nows: list[int] = []
        for number, table in self._batches:
            if side not in (None, number):
                continue
            layout = self._layout.sides[number]
            sides += [number] * table.num_rows
            times += table.column(TIME).to_pylist()
            nows += self._nows(number, table)
            keys += _keys(table, layout)
            # Of rows that are carried, a kernel sees whether there are values, but none of them.
            seen = 0 if carries and number == LEFT else layout.values
            values += _values(table, layout.keys, seen)
        columns: list[Sequence[Any]] = [sides, keys, values, times, nows]
        if order is not None:
            places = order.tolist()
            columns = [[column[i] for i in places] for column in columns]
        return zip(at, *columns, strict=True)

    def _in_order(self, side: int | None) -> tuple[Sequence[int], _Places | None]:
        """The places of a side's rows among all, and where these rows lie in its table, in that
        order; None: as they are there. Without a side: all rows, in all tables together."""
        if side is None:
            return range(self.count), self._permutation
        start, end = self._span(side)
        if self._permutation is None:
            return range(start, end), None
        mine = (self._permutation >= start) & (self._permutation < end)
        places = np.flatnonzero(mine)
        return places.tolist(), self._permutation[places] - start

    def _span(self, side: int) -> tuple[int, int]:
        """Where the rows of a side lie in all tables together."""
        start = 0
        for number, table in self._batches:
            if number == side:
                return start, start + table.num_rows
            start += table.num_rows
        return start, start

    def _table(self, side: int) -> pa.Table:
        for number, table in self._batches:
            if number == side:
                return table
        return self._layout.sides[side].schema.empty_table()

    def first(self, side: int) -> int:
        """The place of a side's first row among all; behind them all if it has none."""
        return next(iter(self._in_order(side)[0]), self.count)

    def asked(self) -> Sequence[Key]:
        """The keys of the left's rows, each once."""
        table, side = self._table(LEFT), self._layout.sides[LEFT]
        if not table.num_rows:
            return []
        self._asked = _codes(table, side)
        one = np.empty(int(self._asked.max()) + 1, dtype=np.int64)
        one[self._asked] = np.arange(table.num_rows)  # any row of a key will do
        return _keys(table.take(pa.array(one)), side)

    def _nows(self, side: int, table: pa.Table) -> list[int]:
        """The side's stream time at each of its rows, in the order of the rows."""
        order = np.argsort(table.column(ORDER).to_numpy(), kind="stable")
        reached = np.maximum.accumulate(table.column(NOW).to_numpy()[order])
        now = np.empty(len(order), dtype=np.int64)
        now[order] = np.maximum(reached, self._before[side])
        result: list[int] = now.tolist()
        return result

    def results(self, out: Output) -> Iterator[bytes]:
        """The kernel's output, as parcels in the output's schema."""
        yield from self.passed
        rows = out.rows
        if self._layout.step.coalesce:
            rows = list({row[1]: row for row in rows}.values())
        for start in range(0, len(rows), _OUTPUT_ROWS):
            yield self._encode(rows[start : start + _OUTPUT_ROWS])
        if out.matches:
            yield from self._encode_matches(out.matches)
        if (out.late or out.failures) and self._layout.step.entry is not None:
            yield self._entries(out)

    def _encode(self, rows: Sequence[tuple[int, Key, Values | None, int]]) -> bytes:
        step, count = self._layout.step, len(rows)
        kernel, key_width = step.kernel, len(step.key)
        at, keys, values, times = zip(*rows, strict=True)
        columns: list[_Column] = []
        if kernel.windowed:
            keys, starts, ends = zip(*keys, strict=True)
        columns += [keys] if key_width == 1 else _transposed(_filled(keys, key_width), key_width)
        if kernel.windowed:
            columns += [starts, ends]
        if kernel.carries:
            columns += self._carried(np.array(at))
        width = self._width(len(columns))
        null = [value is None for value in values]
        columns += _transposed(_filled(values, width), width)
        caused = np.array(at) if self.count else None
        return self._batch(
            columns,
            {
                TIME: lambda: times,
                NULL: lambda: null,
                **{
                    name: partial(self._caused, name, caused, count)
                    for name in (PARTITION, OFFSET, ORDER)
                },
            },
            count,
        )

    def _encode_matches(self, matches: Sequence[Values | None]) -> Iterator[bytes]:
        """The left's rows, in order, each with what its key met."""
        side, table = self._layout.sides[LEFT], self._table(LEFT)
        found = np.array([match is not None for match in matches])
        leave = found[self._asked] & ~table.column(NULL).to_numpy()
        _, order = self._in_order(LEFT)
        leaving = np.flatnonzero(leave) if order is None else order[leave[order]]
        width = self._width(side.keys + side.values)
        types = [field.type for field in self._layout.output][side.keys + side.values :]
        met = [
            pa.array(column, type=of)
            for column, of in zip(_transposed(_filled(matches, width), width), types, strict=False)
        ]
        for start in range(0, len(leaving), _OUTPUT_ROWS):
            rows = leaving[start : start + _OUTPUT_ROWS]
            taken = partial(self._taken, rows=pa.array(rows))
            columns = _whole([taken(i) for i in range(side.keys)])
            columns += [taken(side.keys + i) for i in range(side.values)]
            columns += [column.take(pa.array(self._asked[rows])) for column in met]
            tail = {name: partial(taken, name) for name in (TIME, PARTITION, OFFSET, ORDER)}
            none = np.zeros(len(rows), dtype=bool)
            yield self._batch(columns, {**tail, NULL: partial(pa.array, none)}, len(rows))

    def _taken(self, name: str | int, rows: pa.Array) -> pa.Array:
        """Some of the left's rows: a column of theirs."""
        return self._column(LEFT, name).combine_chunks().take(rows)

    def _width(self, before: int) -> int:
        """How many columns of values the kernel says, behind those before."""
        first: int = self._layout.output.get_field_index(TIME)
        return first - before

    def _batch(
        self, columns: list[_Column], fields: Mapping[str, Callable[[], _Column]], count: int
    ) -> bytes:
        """A parcel of rows: `columns`, then what else a row has."""
        output = self._layout.output
        none_said = {
            ERRORS: lambda: pa.nulls(count, output.field(ERRORS).type),
            DEAD: lambda: np.zeros(count, dtype=bool),
        }
        fields = {**fields, **none_said}
        columns = columns + [fields[name]() for name in output.names[len(columns) :]]
        arrays = [
            column if isinstance(column, pa.Array) else pa.array(column, type=field.type)
            for column, field in zip(columns, output, strict=True)
        ]
        fitted = [a.cast(f.type) for a, f in zip(arrays, output, strict=True)]
        batch = pa.RecordBatch.from_arrays(fitted, schema=output)
        data: bytes = batch.serialize().to_pybytes()
        return data

    def _carried(self, at: _Places) -> list[pa.Array]:
        """The values of left rows, by their places among all rows."""
        places = at if self._permutation is None else self._permutation[at]
        start = 0
        for side, table in self._batches:
            if side == LEFT:
                layout, rows = self._layout.sides[side], pa.array(places - start)
                values = table.select(range(layout.keys, layout.keys + layout.values))
                return [column.combine_chunks().take(rows) for column in values.columns]
            start += table.num_rows
        raise AssertionError("results without rows to carry")

    def _caused(self, name: str, at: _Places | None, count: int) -> _Column:
        """A column of the rows that caused the results; time's passing counts as the last row."""
        if at is None:
            return [max(self.times)] * count if name == ORDER else [None] * count
        return self._gather(name).take(pa.array(at % self.count))

    def _entries(self, out: Output) -> bytes:
        """Dead rows: one for each failure, one with the number of late rows."""
        output, entry = self._layout.output, self._layout.step.entry
        assert entry is not None
        said = [entry(message) for _, message in out.failures]
        if out.late:
            said.append(entry(skipping(out.late)))
        count = len(said)
        given: dict[str, Sequence[object]] = {ERRORS: said, DEAD: [True] * count}
        given[TIME] = [max(self.times)] * count
        arrays = [
            pa.array(given[field.name], type=field.type)
            if field.name in given
            else pa.nulls(count, field.type)
            for field in output
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=output)
        data: bytes = batch.serialize().to_pybytes()
        return data


def skipping(late: int) -> str:
    """What the log says of rows that came too late."""
    rows = "1 record" if late == 1 else f"{late} records"
    return f"Skipping {rows} for expired window: later than the window's end and its grace period."


def _whole(keys: list[pa.Array]) -> list[pa.Array]:
    """Key columns such that a key of which one is null is null throughout."""
    if len(keys) == 1 or not any(key.null_count for key in keys):
        return keys
    known = reduce(pc.and_, map(pc.is_valid, keys))
    return [pc.if_else(known, key, pa.scalar(None, key.type)) for key in keys]


def _filled(rows: Sequence[Any], width: int) -> Sequence[Values]:
    """The rows, with nulls for those that are None."""
    if None not in rows:
        return rows
    nothing = (None,) * width
    return [nothing if row is None else row for row in rows]


def _transposed(rows: Sequence[Values], width: int) -> list[_Column]:
    return list(zip(*rows, strict=True)) if width else []


def _keys(table: pa.Table, side: SideLayout) -> Sequence[Key]:
    columns = [_frozen(table.column(i)) for i in range(side.keys)]
    if side.keys == 1:
        return columns[0]
    keys = list(zip(*columns, strict=True))
    if all(table.column(i).null_count == 0 for i in range(side.keys)):
        return keys
    nothing = (None,) * side.keys
    if side.whole_keys:
        return [None if None in key else key for key in keys]
    return [None if key == nothing else key for key in keys]


def _latest(table: pa.Table, side: SideLayout) -> pa.Table:
    """The last row of each key, in order."""
    codes = _codes(table, side)
    order = np.argsort(table.column(ORDER).to_numpy(), kind="stable")
    last = np.empty(int(codes.max()) + 1, dtype=np.int64)
    last[codes[order]] = order  # of those that fall on one place, the last stays
    return table if len(last) == table.num_rows else table.take(pa.array(np.sort(last)))


def _codes(table: pa.Table, side: SideLayout) -> _Places:
    """A number for each row: rows of one key have the same, and none is left out."""
    codes: _Places | None = None
    for i in range(side.keys):
        column = table.column(i).combine_chunks()
        if pa.types.is_nested(column.type):
            numbers: dict[Key, int] = {}
            keys = _keys(table, side)
            return np.array([numbers.setdefault(key, len(numbers)) for key in keys])
        encoded = column.dictionary_encode(null_encoding="encode")
        found = encoded.indices.to_numpy().astype(np.int64)
        if codes is None:
            codes = found
        else:
            _, codes = np.unique(codes * len(encoded.dictionary) + found, return_inverse=True)
    assert codes is not None, "a key has columns"
    return codes


def _frozen(column: pa.ChunkedArray) -> list[Key]:
    values: list[Key] = column.to_pylist()
    if pa.types.is_nested(column.type):
        return [freeze(value) for value in values]
    return values


def _values(table: pa.Table, first: int, count: int) -> list[Values | None]:
    places = range(first, first + count)
    columns = [table.column(i).to_pylist(maps_as_pydicts="strict") for i in places]
    rows = zip(*columns, strict=True) if columns else [()] * table.num_rows
    values: list[Values | None] = list(rows)
    null = table.column(NULL)
    if null.null_count or pc.any(null).as_py():
        flags = null.to_pylist()
        return [None if n else v for n, v in zip(flags, values, strict=True)]
    return values


def unpacker(schema: pa.Schema) -> Step:
    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for data in batch.column(0):
                yield pa.ipc.read_record_batch(data.as_buffer(), schema)

    return unpack


def labels(buckets: int) -> list[int]:
    """The grouping value of each bucket.

    Spark spreads groups over tasks by Murmur3. These values spread evenly over 2, 4, … 64 tasks,
    and do not depend on how many there are, which may change.
    """
    found: list[int] = []
    candidate = 0
    for bucket in range(buckets):
        while _murmur3(candidate) % 64 != bucket % 64:
            candidate += 1
        found.append(candidate)
        candidate += 1
    return found


def _murmur3(value: int) -> int:
    """Spark's hash of an INT, seed 42, as a non-negative number."""
    k = _multiply(value & 0xFFFFFFFF, 0xCC9E2D51)
    k = _multiply(_rotate(k, 15), 0x1B873593)
    h = _multiply(_rotate(42 ^ k, 13), 5) + 0xE6546B64
    h = (h ^ 4) & 0xFFFFFFFF
    h = _multiply(h ^ (h >> 16), 0x85EBCA6B)
    h = _multiply(h ^ (h >> 13), 0xC2B2AE35)
    return h ^ (h >> 16)


def _multiply(a: int, b: int) -> int:
    return (a * b) & 0xFFFFFFFF


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & 0xFFFFFFFF
