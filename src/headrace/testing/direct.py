"""Evaluates queries directly, batch by batch, without a broker, streaming or extra processes.

The plan, its lowering and the kernels are the ones that a server runs. What differs is who drives
them: records are a local table instead of a topic, Spark evaluates the plan as a plain query, and
kernels run in this process, with their state in memory. A batch takes a fraction of the time that
a streaming query takes to start.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from headrace.engine.environment import Environment
from headrace.engine.queries.program import context_for
from headrace.engine.statements.changes import NewQuery
from headrace.kafka.records import NewRecord, Record
from headrace.model.settings import Settings
from headrace.plan import nodes as n
from headrace.plan.replace import starts_anew
from headrace.spark.lower.program import lower_node
from headrace.spark.rows.columns import DEAD, KEY, LOG, TIME, VALUE
from headrace.spark.rows.processing_log import SkippedRecord, dated
from headrace.spark.state.bucket import run_bucket
from headrace.spark.state.kernel_step import StepLayout
from headrace.spark.state.log import Memory
from headrace.spark.state.wire import (
    Parcel,
    packer,
    unpacker,
)
from headrace.testing.flows import PROCESSING_LOG

# Spark's columns of a topic's records.
_RECORDS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


class DirectExecutor:
    """Keeps topics as lists, and evaluates queries on their new records."""

    def __init__(self, world: Environment) -> None:
        self.world = world
        self._topics: dict[str, list[Record]] = {}
        self._queries: dict[str, _Progress] = {}

    def topic(self, name: str) -> None:
        self._topics.setdefault(name, [])

    def write(self, topic: str, records: Sequence[NewRecord]) -> None:
        held = self._topics[topic]
        for r in records:
            time = r.timestamp if r.timestamp is not None else int(clock.time() * 1000)
            held.append(Record(topic, 0, len(held), time, r.key, r.value, r.headers))

    def read(self, topic: str) -> list[Record]:
        return self._topics[topic]

    def query(self, new: NewQuery, node: n.Write) -> DirectQuery:
        """One that replaces another goes on with its state, from where it was."""
        progress = self._queries.setdefault(new.id, _Progress(node, _Steps(self.world.spark)))
        if starts_anew(progress.node, node):
            progress.steps = _Steps(self.world.spark)
        progress.node = node
        return DirectQuery(self, new.id, node, Settings(new.settings), progress)

    def close(self) -> None:
        """Does nothing: there is nothing outside of this process."""


@dataclass
class _Progress:
    """How far a query is: the state of its steps, and what it has read of each topic."""

    node: n.Write
    steps: _Steps
    read: dict[str, int] = field(default_factory=dict)


class DirectQuery:
    """One query: its plan, and how far it is."""

    def __init__(
        self,
        executor: DirectExecutor,
        id_: str,
        node: n.Write,
        settings: Settings,
        progress: _Progress,
    ) -> None:
        self._executor = executor
        self._id = id_
        self._node = node
        self._settings = settings
        self._progress = progress

    def drain(self) -> None:
        rows = self._run(self._new())
        self._executor.topic(PROCESSING_LOG)
        self._executor.write(PROCESSING_LOG, [e for row in rows for e in _entries(row[LOG])])
        self._executor.write(self._node.topic, [self._record(row) for row in rows if not row[DEAD]])

    def _new(self) -> dict[str, Sequence[Record]]:
        read = self._progress.read
        new: dict[str, Sequence[Record]] = {}
        for source in n.sources(self._node):
            held = self._executor.read(source.topic)
            new[source.topic] = held[read.get(source.topic, 0) :]
        read.update({topic: len(self._executor.read(topic)) for topic in new})
        return new

    def _run(self, records: Mapping[str, Sequence[Record]]) -> list[Row]:
        world = self._executor.world

        def read(source: n.ReadSource, headers: bool) -> DataFrame:
            return _frame(world.spark, records[source.topic])

        context = context_for(world, self._id, self._settings, read)
        steps = self._progress.steps
        steps.begin()
        lowered = lower_node(self._node, replace(context, run_kernel=steps.run))
        return lowered.rows.collect()

    def _record(self, row: Row) -> NewRecord:
        key, value = _bytes(row[KEY]), _bytes(row[VALUE])
        return NewRecord(self._node.topic, key, value, timestamp=row[TIME])

    def stop(self) -> None:
        """Does nothing: queries run only in `drain`."""

    def close(self) -> None:
        """Does nothing: there is nothing outside of this process."""


def _entries(texts: str | None) -> list[NewRecord]:
    """What a row has for the processing log."""
    lines = texts.split("\n") if texts else []
    entries = [dated(line) for line in lines if SkippedRecord.read(line) is None]
    return [NewRecord(PROCESSING_LOG, None, entry.encode()) for entry in entries]


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


def _frame(spark: SparkSession, records: Sequence[Record]) -> DataFrame:
    headers = [[{"key": k, "value": v} for k, v in r.headers] for r in records]
    columns: list[list[object]] = [
        [r.key for r in records],
        [r.value for r in records],
        [r.topic for r in records],
        [r.partition for r in records],
        [r.offset for r in records],
        [r.timestamp for r in records],
        [*headers],
    ]
    arrays = [pa.array(c, type=f.type) for c, f in zip(columns, _RECORDS, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=_RECORDS))


class _Steps:
    """The kernels of one query, in the order in which its lowering asks for them."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._states: list[_Cells] = []
        self._at = 0

    def begin(self) -> None:
        self._at = 0

    def run(self, sides: Sequence[DataFrame], layout: StepLayout, output: StructType) -> DataFrame:
        """Runs the kernel on the rows; the result is a local table again."""
        if self._at == len(self._states):
            self._states.append(_Cells())
        cells = self._states[self._at]
        self._at += 1
        parcels = [
            parcel
            for i, rows in enumerate(sides)
            for parcel in _parcels(packer(layout, i), rows.toArrow().to_batches())
        ]
        results = run_bucket(layout, cells, Memory(0), parcels) if parcels else []
        packed = pa.RecordBatch.from_pydict({"data": pa.array(results, pa.binary())})
        batches = list(unpacker(layout.output)(iter([packed])))
        table = pa.Table.from_batches(batches) if batches else layout.output.empty_table()
        return self._spark.createDataFrame(table, output)


def _parcels(
    pack: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    batches: Iterable[pa.RecordBatch],
) -> list[Parcel]:
    packed = pack(iter(batches))
    return [Parcel(**row) for batch in packed for row in batch.to_pylist()]


class _Cells:
    """A bucket's cells, kept in memory."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], bytes] = {}

    def get(self, run: int, part: int) -> bytes | None:
        return self._cells.get((run, part))

    def put(self, run: int, part: int, data: bytes) -> None:
        self._cells[run, part] = data

    def remove(self, run: int, part: int) -> None:
        self._cells.pop((run, part), None)
