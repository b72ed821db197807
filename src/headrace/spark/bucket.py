"""Runs kernels on Spark: one shared stateful operator for everything Spark has no own form of.

Rows are grouped by a hash of their key into a fixed number of buckets. A bucket's rows of a batch,
in order, are one call of the kernel; its state is one log-structured store (see `bucket_log`) in
Spark's state store, so durability and recovery are Spark's own.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from typing import Any, cast

from pyspark import SparkContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
)
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    Row,
    StringType,
    StructField,
    StructType,
)

from headrace.spark import bucket_wire as wires
from headrace.spark.bucket_log import Bucket, Cells, Memory
from headrace.spark.bucket_wire import Inbox, Parcel, SideWire, Wire
from headrace.spark.hope import must
from headrace.spark.kernels.kernel import LEFT, RIGHT, CarryingKernel, KernelSpec, Output

DEFAULT_BUCKETS = 16
DEFAULT_MEMORY = 1024**3


@dataclass(frozen=True)
class Input:
    """One side of a kernel: its rows, their key, and the values the kernel gets to see.

    `rows` has the columns every row has: $time, $null, $partition, $offset, and $errors and $dead
    if rows may carry log entries, and $order if they come from another kernel. With `latest` the
    kernel sees no more than a batch's last row of each key. If `hopeful`, a row straight from a
    topic that has something to log fails the batch.
    """

    rows: DataFrame
    key: Sequence[Column]
    values: Sequence[Column]
    latest: bool = False
    hopeful: bool = False


def apply_kernel(
    inputs: Sequence[Input],
    kernel: KernelSpec,
    key: Sequence[StructField],
    values: Sequence[StructField],
    *,
    buckets: int = DEFAULT_BUCKETS,
    coalesce: bool = False,
    precedence: Sequence[int] | None = None,
    entry: Callable[[str], Any] | None = None,
    memory: int = DEFAULT_MEMORY,
    depth: int = 0,
    small: bool = False,
    placed: bool = True,
    run: RunKernel | None = None,
) -> DataFrame:
    """The kernel's output as rows.

    They have the columns `key`, then ($windowstart, $windowend) if the kernel's output is
    windowed, then `values`, $time, $null, and $errors and $dead (if the inputs have them, or there
    is `entry`). If they are to be `placed`, for a kernel behind this one, they have $partition,
    $offset and $order of the record that caused them too. Rows of one key leave in order. Inputs'
    log entries leave on dead rows of their own.

    `coalesce` keeps only a batch's last row for each key. `precedence` says which side goes first
    among rows of the same time (as given, unless told). `entry` makes a log entry, a line of
    $errors, from a message. `depth` is how many kernels are below this one. If `small`, large
    rows fail the batch. `run` is who runs it; Spark, unless told.
    """
    has_errors = entry is not None or any(wires.ERRORS in i.rows.columns for i in inputs)
    sides = [_side(each, number, kernel, buckets) for number, each in enumerate(inputs)]
    output = _output_type(kernel, key, values, inputs, has_errors, placed)
    wire = Wire(
        sides=tuple(side.wire for side in sides),
        precedence=tuple(precedence or range(len(sides))),
        output=to_arrow_schema(output, timezone="UTC"),
        keys=len(key),
        windowed=kernel.windowed,
        buckets=buckets,
        timed=kernel.timed,
        coalesce=coalesce,
        carries=kernel.carries,
        entry=entry,
        small=small,
        depth=depth,
    )
    return (run or as_operator)([side.rows for side in sides], kernel, wire, output, memory)


# Runs a kernel over the rows of its sides; `StructType` is the type of its output, the number
# bounds its memory.
RunKernel = Callable[[Sequence[DataFrame], KernelSpec, Wire, StructType, int], DataFrame]


def as_operator(
    sides: Sequence[DataFrame], kernel: KernelSpec, wire: Wire, output: StructType, memory: int
) -> DataFrame:
    """On streaming rows: as a stateful operator of Spark."""
    # Each side for itself, so that none carries nulls for the columns of the other.
    packed = reduce(
        DataFrame.unionAll,
        (rows.mapInArrow(wires.packer(wire, i), wires.PARCEL) for i, rows in enumerate(sides)),
    )
    with _worker_pool("state"):
        run = packed.groupBy("bucket").transformWithState(
            statefulProcessor=BucketProcessor(kernel, wire, memory),
            outputStructType=StructType([StructField("data", BinaryType())]),
            outputMode="Append",
            timeMode="None",
        )
    return run.mapInArrow(wires.unpacker(wire.output), output)


def in_order_by(rows: DataFrame, key: Sequence[Column], placed: bool = True) -> DataFrame:
    """A kernel's output with the rows of each `key` in the order of the rows that caused them,
    which they go on telling if they are to be `placed`.

    Needed where that key is not the one by which the kernel had its buckets.
    """
    kept = [f for f in rows.schema if placed or f.name not in wires.PLACE]
    spread = rows.repartition(*key)
    return spread.mapInArrow(wires.sorter([f.name for f in kept]), StructType(kept))


@dataclass(frozen=True)
class _Side:
    rows: DataFrame
    wire: SideWire


def _side(input: Input, number: int, kernel: KernelSpec, buckets: int) -> _Side:
    """Every column costs, even if it holds nothing: those that packing can do without stay out."""
    speaks = wires.ERRORS in input.rows.columns
    hopes = speaks and input.hopeful and wires.ORDER not in input.rows.columns
    has_errors = speaks and not hopes
    keys = [c.alias(f"k{i}") for i, c in enumerate(input.key)]
    values = [c.alias(f"v{number}_{i}") for i, c in enumerate(input.values)]
    whole = kernel.ignores_keyless and not has_errors  # then no row is without values
    named = (wires.TIME, *(() if whole else (wires.NULL,)), wires.PARTITION, wires.OFFSET)
    ordered = wires.ORDER in input.rows.columns
    named += (wires.ORDER,) if ordered else ()
    named += (wires.ERRORS, wires.DEAD) if has_errors else ()
    tail = [F.col(f"`{n}`") for n in named]
    bucket = F.pmod(F.hash(*input.key), F.lit(buckets)) if buckets > 1 else F.lit(0)
    source, counts = input.rows, F.lit(True)
    if kernel.ignores_keyless:
        counts = _counts(input, has_errors)
    if hopes:
        counts = must(~F.col(f"`{wires.DEAD}`") & F.col(f"`{wires.ERRORS}`").isNull(), counts)
    if hopes or kernel.ignores_keyless:
        source = source.where(counts)
    rows = source.select(bucket.alias(wires.BUCKET), *keys, *values, *tail)
    types = {f.name: f for f in rows.schema.fields}
    parcel = [
        *rows.schema.fields[1 : 1 + len(keys) + len(values)],
        StructField(wires.NULL, BooleanType()),
        types[wires.TIME],
        StructField(wires.ORDER, LongType()),
        StructField(wires.NOW, LongType()),
        types[wires.PARTITION],
        types[wires.OFFSET],
    ]
    schema = to_arrow_schema(StructType(parcel), timezone="UTC")
    wire = SideWire(schema, len(keys), len(values), kernel.whole_keys, input.latest, ordered)
    return _Side(rows, wire)


def _counts(input: Input, has_errors: bool) -> Column:
    """Whether a row has a key and values, or at least something to say."""
    counts = ~F.coalesce(F.col(f"`{wires.NULL}`"), F.lit(False))
    for key in input.key:
        counts = counts & key.isNotNull()
    if has_errors:
        dead, errors = F.col(f"`{wires.DEAD}`"), F.col(f"`{wires.ERRORS}`")
        counts = counts | F.coalesce(dead | errors.isNotNull(), F.lit(False))
    return counts


def _output_type(
    kernel: KernelSpec,
    key: Sequence[StructField],
    values: Sequence[StructField],
    inputs: Sequence[Input],
    has_errors: bool,
    placed: bool,
) -> StructType:
    window = [
        StructField(wires.WINDOW_START, LongType()),
        StructField(wires.WINDOW_END, LongType()),
    ]
    place = [
        StructField(wires.PARTITION, IntegerType()),
        StructField(wires.OFFSET, LongType()),
        StructField(wires.ORDER, LongType()),
    ]
    errors = [
        next(
            (f for i in inputs for f in i.rows.schema.fields if f.name == wires.ERRORS),
            StructField(wires.ERRORS, StringType()),
        )
        for _ in range(has_errors)
    ]
    return StructType(
        [
            *key,
            *(window if kernel.windowed else []),
            *values,
            StructField(wires.TIME, LongType()),
            StructField(wires.NULL, BooleanType()),
            *(StructField(e.name, e.dataType) for e in errors),
            *([StructField(wires.DEAD, BooleanType())] if has_errors else []),
            *(place if placed else []),
        ]
    )


_pool_lock = threading.Lock()


@contextmanager
def _worker_pool(name: str) -> Iterator[None]:
    """Python functions made inside run in worker processes of their own.

    Spark shares worker processes between functions that have the same environment. Kernels stay
    among themselves, so that what their workers remember is remembered in few processes.
    """
    context = SparkContext._active_spark_context
    assert context is not None
    with _pool_lock:
        usual = context.environment
        # Another one, not the same one changed: someone else may be reading it just now.
        context.environment = {**usual, "HEADRACE_WORKERS": name}
        try:
            yield
        finally:
            context.environment = usual


_CELL_KEY = StructType([StructField("run", LongType()), StructField("part", IntegerType())])
_CELL_VALUE = StructType([StructField("data", BinaryType())])

# What this process remembers of the buckets it has worked on, across batches and queries.
_memory = Memory(DEFAULT_MEMORY)


class BucketProcessor(StatefulProcessor):
    """Runs a kernel on the parcels of a bucket."""

    def __init__(self, kernel: KernelSpec, wire: Wire, memory: int) -> None:
        self._kernel = kernel
        self._wire = wire
        self._limit = memory

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._cells = _MapCells(handle.getMapState("bucket", _CELL_KEY, _CELL_VALUE))
        _memory.limit = self._limit

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        parcels = [Parcel(*row) for row in rows]
        with _uncollected():
            results = run_bucket(self._kernel, self._wire, self._cells, _memory, parcels)
        for data in results:
            yield Row(data=data)

    def close(self) -> None:
        """Nothing is held beyond the batch but the worker's memory."""


def run_bucket(
    kernel: KernelSpec, wire: Wire, cells: Cells, memory: Memory, parcels: list[Parcel]
) -> list[bytes]:
    """Runs a kernel on a bucket's parcels of one batch; what it says, in parcels."""
    bucket = Bucket.open(cells, kernel, memory)
    inbox = Inbox(wire, parcels, bucket.store.times)
    out = Output()
    if inbox.count and kernel.carries:
        carry(cast(CarryingKernel, bucket.kernel), inbox, out)
    elif inbox.count:
        bucket.kernel.run(inbox.rows(), out)
    if kernel.timed:
        bucket.store.times = inbox.times
        for side, reached in inbox.ticks.items():
            if reached == bucket.store.now:
                bucket.kernel.advance(side, reached, out)
    bucket.commit(cells, memory)
    return list(inbox.results(out))


def carry(kernel: CarryingKernel, inbox: Inbox, out: Output) -> None:
    """Rows of the left are asked for key by key, not row by row, where that is the same: if no row
    of the right comes between rows of its key."""
    first = inbox.first(LEFT)
    changes = list(inbox.rows(RIGHT))
    kernel.run((row for row in changes if row[0] < first), out)
    later = [row for row in changes if row[0] > first]
    keys = inbox.asked()
    if {row[2] for row in later}.isdisjoint(keys):
        out.matches = kernel.matches(keys)
        kernel.run(later, out)
    else:
        kernel.run(islice(inbox.rows(), first, None), out)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Rows make many objects and no cycles: looking for cycles would take half the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class _MapCells:
    """A bucket's cells in Spark's map state; Spark knows which bucket is meant."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def get(self, run: int, part: int) -> bytes | None:
        found = self._state.getValue((run, part))
        return None if found is None else bytes(found[0])

    def put(self, run: int, part: int, data: bytes) -> None:
        self._state.updateValue((run, part), (data,))

    def remove(self, run: int, part: int) -> None:
        self._state.removeKey((run, part))
