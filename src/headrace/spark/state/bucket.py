"""Runs kernels on Spark: one shared stateful operator for everything Spark has no own form of.

Rows are grouped by a hash of their key into a fixed number of buckets. A bucket's rows of a batch,
in order, are one call of the kernel; its state is one log-structured store (see `log`) in
Spark's state store, so durability and recovery are Spark's own.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.stateful_processor import (
    MapState,
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

from headrace.spark.internals.worker_pools import worker_pool
from headrace.spark.rows import columns
from headrace.spark.rows.optimistic import require_native
from headrace.spark.state import wire as wires
from headrace.spark.state.kernel_step import (
    DEFAULT_MEMORY,
    KernelInput,
    KernelStep,
    SideLayout,
    StepLayout,
)
from headrace.spark.state.kernels.kernel import LEFT, RIGHT, CarryingKernel, Output
from headrace.spark.state.log import Bucket, Cells, Memory
from headrace.spark.state.wire import Inbox, Parcel


def apply_kernel(
    step: KernelStep, inputs: Sequence[KernelInput], run: RunKernel | None = None
) -> DataFrame:
    """The kernel's output as rows.

    They have the columns of the key, then ($windowstart, $windowend) if the kernel's output is
    windowed, then the values, $time, $null, and $errors and $dead (if the inputs have them, or the
    step makes entries). If they are to be placed, they have $partition, $offset and $order of the
    record that caused them too. Rows of one key leave in order. Inputs' log entries leave on dead
    rows of their own. `run` is who runs it; Spark, unless told.
    """
    sides = [_side(step, each, number) for number, each in enumerate(inputs)]
    output = _output_type(step, inputs)
    schema = to_arrow_schema(output, timezone="UTC")
    layout = StepLayout(step, tuple(side.layout for side in sides), schema)
    return (run or as_operator)([side.rows for side in sides], layout, output)


# Runs a kernel over the rows of its sides; `StructType` is the type of its output.
RunKernel = Callable[[Sequence[DataFrame], StepLayout, StructType], DataFrame]


def as_operator(sides: Sequence[DataFrame], layout: StepLayout, output: StructType) -> DataFrame:
    """On streaming rows: as a stateful operator of Spark."""
    # Each side for itself, so that none carries nulls for the columns of the other.
    packed = reduce(
        DataFrame.unionAll,
        (rows.mapInArrow(wires.packer(layout, i), wires.PARCEL) for i, rows in enumerate(sides)),
    )
    # Kernels stay among themselves: what their workers remember is remembered in few processes.
    with worker_pool("state"):
        run = packed.groupBy("bucket").transformWithState(
            statefulProcessor=BucketProcessor(layout),
            outputStructType=StructType([StructField("data", BinaryType())]),
            outputMode="Append",
            timeMode="None",
        )
    return run.mapInArrow(wires.unpacker(layout.output), output)


def in_order_by(rows: DataFrame, key: Sequence[Column], placed: bool = True) -> DataFrame:
    """A kernel's output with the rows of each `key` in the order of the rows that caused them,
    which they still name if they are to be `placed`.

    Needed where that key is not the one by which the kernel had its buckets.
    """
    kept = [f for f in rows.schema if placed or f.name not in wires.PLACE]
    spread = rows.repartition(*key)
    return spread.mapInArrow(wires.sorter([f.name for f in kept]), StructType(kept))


@dataclass(frozen=True)
class _Side:
    rows: DataFrame
    layout: SideLayout


def _side(step: KernelStep, input: KernelInput, number: int) -> _Side:
    """Every column costs, even if it holds nothing: those that packing can do without stay out."""
    kernel, buckets = step.kernel, step.buckets
    there = input.rows.columns
    ordered, has_entries = columns.ORDER in there, columns.ERRORS in there
    # Of rows straight from a topic, one that has something to log then fails the batch.
    assumed = has_entries and step.decoding.native and not ordered
    has_errors = has_entries and not assumed
    keys = [c.alias(f"k{i}") for i, c in enumerate(input.key)]
    values = [c.alias(f"v{number}_{i}") for i, c in enumerate(input.values)]
    whole = kernel.ignores_keyless and not has_errors  # then no row is without values
    named = (columns.TIME, *(() if whole else (columns.NULL,)), columns.PARTITION, columns.OFFSET)
    named += (columns.ORDER,) if ordered else ()
    named += (columns.ERRORS, columns.DEAD) if has_errors else ()
    tail = [F.col(f"`{n}`") for n in named]
    bucket = F.pmod(F.hash(*input.key), F.lit(buckets)) if buckets > 1 else F.lit(0)
    source, counts = input.rows, F.lit(True)
    if kernel.ignores_keyless:
        counts = _counts(input, has_errors)
    if assumed:
        alive = ~F.col(f"`{columns.DEAD}`") & F.col(f"`{columns.ERRORS}`").isNull()
        counts = require_native(alive, counts)
    if assumed or kernel.ignores_keyless:
        source = source.where(counts)
    rows = source.select(bucket.alias(wires.BUCKET), *keys, *values, *tail)
    types = {f.name: f for f in rows.schema.fields}
    parcel = [
        *rows.schema.fields[1 : 1 + len(keys) + len(values)],
        StructField(columns.NULL, BooleanType()),
        types[columns.TIME],
        StructField(columns.ORDER, LongType()),
        StructField(wires.NOW, LongType()),
        types[columns.PARTITION],
        types[columns.OFFSET],
    ]
    schema = to_arrow_schema(StructType(parcel), timezone="UTC")
    layout = SideLayout(schema, len(keys), len(values), kernel.whole_keys, input.latest, ordered)
    return _Side(rows, layout)


def _counts(input: KernelInput, has_errors: bool) -> Column:
    """Whether a row has a key and values, or at least something to say."""
    counts = ~F.coalesce(F.col(f"`{columns.NULL}`"), F.lit(False))
    for key in input.key:
        counts = counts & key.isNotNull()
    if has_errors:
        dead, errors = F.col(f"`{columns.DEAD}`"), F.col(f"`{columns.ERRORS}`")
        counts = counts | F.coalesce(dead | errors.isNotNull(), F.lit(False))
    return counts


def _output_type(step: KernelStep, inputs: Sequence[KernelInput]) -> StructType:
    window = [
        StructField(columns.WINDOW_START, LongType()),
        StructField(columns.WINDOW_END, LongType()),
    ]
    place = [
        StructField(columns.PARTITION, IntegerType()),
        StructField(columns.OFFSET, LongType()),
        StructField(columns.ORDER, LongType()),
    ]
    given = [f.dataType for i in inputs for f in i.rows.schema.fields if f.name == columns.ERRORS]
    entries = [
        StructField(columns.ERRORS, given[0] if given else StringType()),
        StructField(columns.DEAD, BooleanType()),
    ]
    return StructType(
        [
            *step.key,
            *(window if step.kernel.windowed else []),
            *step.values,
            StructField(columns.TIME, LongType()),
            StructField(columns.NULL, BooleanType()),
            *(entries if given or step.entry is not None else []),
            *(place if step.placed else []),
        ]
    )


_CELL_KEY = StructType([StructField("run", LongType()), StructField("part", IntegerType())])
_CELL_VALUE = StructType([StructField("data", BinaryType())])

# What this process remembers of the buckets it has worked on, across batches and queries.
_memory = Memory(DEFAULT_MEMORY)


class BucketProcessor(StatefulProcessor):
    """Runs a kernel on the parcels of a bucket."""

    def __init__(self, layout: StepLayout) -> None:
        self._layout = layout

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._cells = _MapCells(handle.getMapState("bucket", _CELL_KEY, _CELL_VALUE))
        _memory.limit = self._layout.step.memory

    def handleInputRows(
        self, key: object, rows: Iterator[Row], timerValues: object
    ) -> Iterator[Row]:
        parcels = [Parcel(*row) for row in rows]
        with _uncollected():
            results = run_bucket(self._layout, self._cells, _memory, parcels)
        for data in results:
            yield Row(data=data)

    def close(self) -> None:
        """Nothing is held beyond the batch but the worker's memory."""


def run_bucket(
    layout: StepLayout, cells: Cells, memory: Memory, parcels: list[Parcel]
) -> list[bytes]:
    """Runs a kernel on a bucket's parcels of one batch; what it says, in parcels."""
    kernel = layout.step.kernel
    bucket = Bucket.open(cells, kernel, memory)
    inbox = Inbox(layout, parcels, bucket.store.times)
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

    def __init__(self, state: MapState) -> None:
        self._state = state

    def get(self, run: int, part: int) -> bytes | None:
        found = self._state.getValue((run, part))
        return None if found is None else bytes(found[0])

    def put(self, run: int, part: int, data: bytes) -> None:
        self._state.updateValue((run, part), (data,))

    def remove(self, run: int, part: int) -> None:
        self._state.removeKey((run, part))
