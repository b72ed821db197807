"""Runs pull queries: the rows that a table or stream holds now.

A table's rows are at hand in a `RowStore`; lookups by key, ranges and scans read there. Plain
columns and comparisons are answered in Python, everything else by Spark over the rows found. A
stream is read by Spark, from its topic's beginning to its end as of now.

Either is done piece by piece, as the client reads: no answer is ever held whole.
"""

from __future__ import annotations

import logging
import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame

from headrace.engine.environment import Environment
from headrace.engine.queries import row_buffer
from headrace.engine.queries.program import Read, bounded, context_for
from headrace.engine.tables.follower import TableTails, Tail
from headrace.engine.tables.row_expressions import Evaluate, evaluator
from headrace.engine.tables.row_store import StoredRecord, headers_of
from headrace.engine.tables.rows import RowReader, tail_name
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.requests import LIMIT_REACHED, QUERY_COMPLETED, QueryKind, ResultRow
from headrace.model.schema import Schema
from headrace.model.settings import Settings
from headrace.model.sources import Source, SourceKind
from headrace.model.types import quote
from headrace.plan import nodes as n
from headrace.plan.pull import PullPlan
from headrace.spark.jobs import JobGroup
from headrace.spark.lower.program import lower_node
from headrace.spark.runtime.kafka_source import Offsets
from headrace.spark.sink.answers import packed_answer, result_rows
from headrace.spark.sink.packed_rows import PackedRows

LOG = logging.getLogger(__name__)

# What one batch of an answer holds: so many rows, or what was made of so many bytes.
BATCH_ROWS = 1000
BATCH_BYTES = 256 * 1024
# What is carried to Spark at a time, and what it reads of a topic at a time: first a little, for
# who wants few rows, then more.
CARRIED_ROWS, CARRIED_BYTES = 50_000, 8 * 1024 * 1024
FIRST_RECORDS, MOST_RECORDS = 50_000, 400_000

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


class PullAnswer:
    """The rows of a pull query, batch by batch. `over` is set when they are not wanted any more."""

    kind = QueryKind.PULL

    def __init__(
        self,
        schema: Schema,
        batches: Iterable[Sequence[ResultRow]],
        limit: int | None = None,
        messages: tuple[str, str] | None = None,
        over: Callable[[], None] = lambda: None,
    ) -> None:
        """`messages`: what is said at the end, if the limit was reached and if it was not."""
        self.id = f"query_{random.getrandbits(80):020x}"
        self.schema = schema
        self.final_message: str | None = None
        self._batches: Iterator[Sequence[ResultRow]] | None = iter(batches)
        self._left = limit
        self._messages = messages
        self._over = over

    def next_batch(self, timeout: float) -> Sequence[ResultRow] | None:
        batches = self._batches
        if batches is None:
            return None
        batch = None if self._left == 0 else self._next(batches)
        if batch is None:
            if self._messages is not None:
                self.final_message = self._messages[0 if self._left == 0 else 1]
            self.close()
            return None
        if self._left is not None:
            batch = batch[: self._left]
            self._left -= len(batch)
        return batch

    def _next(self, batches: Iterator[Sequence[ResultRow]]) -> Sequence[ResultRow] | None:
        try:
            return next(batches, None)
        except sqlite3.Error as e:
            raise HeadraceError(f"The table's rows are no longer there: {e}") from e
        except OSError as e:
            if self._batches is None:
                return None  # closed meanwhile, and what was not read is deleted
            raise HeadraceError(f"The rows cannot be read: {e.strerror}") from e

    def close(self) -> None:
        """A scan that is left unfinished frees its resources when its rows are forgotten."""
        if self._batches is not None:
            self._batches = None
            self._over()


class Evaluation:
    """The work that Spark does for one pull query, which others may end. `running` has those that
    are at work."""

    def __init__(self, context: SparkContext, running: dict[str, Evaluation]) -> None:
        self.id = f"pull_{random.getrandbits(80):020x}"
        self._jobs = JobGroup(context, self.id)
        self._running = running
        self._failure: str | None = None

    def rows(self, packed: DataFrame, place: str | None) -> PackedRows:
        self._running[self.id] = self
        try:
            with self._jobs.running():
                return PackedRows.of(packed, place)
        except Exception:  # Spark's failure of a job that was ended is of any kind
            if self._failure is not None:
                raise HeadraceError(f"The query failed: {self._failure}") from None
            raise
        finally:
            del self._running[self.id]

    def fail(self, reason: str) -> None:
        LOG.error("Pull query %s: %s", self.id, reason)
        self._failure = reason
        self._jobs.end()

    def leave(self) -> None:
        """Ends the work, because nobody wants the rows any more."""
        if self.id in self._running:
            self._jobs.end()


class PullQueries:
    """Answers pull queries of one server."""

    def __init__(self, env: Environment, tails: TableTails) -> None:
        self._env = env
        self._tails = tails
        self._readers: dict[str, RowReader] = {}
        self._running: dict[str, Evaluation] = {}

    def running(self) -> list[Evaluation]:
        """Those that Spark works for at the moment."""
        return list(self._running.values())

    def answer(self, plan: PullPlan, settings: Settings) -> PullAnswer:
        if not plan.source.is_table:
            return self._stream(plan, settings)
        check_queryable(plan.source, settings)
        if plan.limit == 0:
            return PullAnswer(plan.schema, ())
        reader = self.reader(plan.source)
        found = _found(plan, reader, self._tail(reader, settings))
        direct = direct_projection(plan)
        if direct is None:
            pieces = map(partial(_from_records, self._env, plan.source), _carried(found))
            return self._by_spark(plan, settings, pieces)
        batches = _projected(found, reader, predicate(plan), direct)
        return PullAnswer(plan.schema, batches, plan.limit)

    def reader(self, source: Source) -> RowReader:
        """The reader of a table's records; made once, because it asks the registry over HTTP."""
        reader = self._readers.get(source.name)
        if reader is None or reader.source != source:
            reader = self._readers[source.name] = RowReader(self._env, source)
        return reader

    def forget(self, source: Source) -> None:
        """Drops what was kept for a table that was dropped or replaced."""
        if source.is_table:
            self._readers.pop(source.name, None)
            self._tails.forget(tail_name(source))

    # ------------------------------------------------------------------ streams

    def _stream(self, plan: PullPlan, settings: Settings) -> PullAnswer:
        if not settings.flag("ksql.query.pull.stream.enabled"):
            raise StatementError(
                "Pull queries on streams are disabled. To create a push query on the stream, add "
                "EMIT CHANGES to the end. To enable pull queries on streams, set the "
                "ksql.query.pull.stream.enabled config to 'true'."
            )
        messages = LIMIT_REACHED, QUERY_COMPLETED
        if plan.limit == 0:
            return PullAnswer(plan.schema, (), 0, messages)
        source = plan.source
        topic = self._env.in_kafka(source.topic)
        begin, end = self._env.admin.begin_offsets(topic), self._env.admin.end_offsets(topic)
        pieces = (
            bounded(self._env, {source.topic: low}, {source.topic: high})
            for low, high in slices(begin, end)
        )
        return self._by_spark(plan, settings, pieces, messages)

    # ------------------------------------------------------------------ tables

    def _tail(self, reader: RowReader, settings: Settings) -> Tail:
        """The table's tail, as fresh as the settings ask for."""
        tail = self._tails.follow(reader.followed())
        staleness = settings.number("ksql.query.pull.max.staleness.ms") / 1000
        self._tails.await_fresh(tail, staleness)
        return tail

    # ------------------------------------------------------------------ Spark

    def _by_spark(
        self,
        plan: PullPlan,
        settings: Settings,
        pieces: Iterable[Read],
        messages: tuple[str, str] | None = None,
    ) -> PullAnswer:
        """Evaluates one piece after the other; the rows of the last one are on disk."""
        place = row_buffer.new_place(self._env)
        work = Evaluation(self._env.spark.sparkContext, self._running)

        def batches() -> Iterator[Sequence[ResultRow]]:
            for read in pieces:
                context = context_for(self._env, "pull", settings, read)
                rows = lower_node(_of_rows(plan.node), context).rows
                packed = work.rows(packed_answer(rows, plan.schema, place), place)
                for batch in result_rows(packed, plan.schema):
                    if live := [row for row in batch if not row.tombstone]:
                        yield live

        def over() -> None:
            work.leave()
            row_buffer.leave(place)

        return PullAnswer(plan.schema, batches(), plan.limit, messages, over)


def slices(begin: Offsets, end: Offsets) -> Iterator[tuple[Offsets, Offsets]]:
    """The records of a topic in pieces, across all partitions."""
    low = {p: min(begin.get(p, 0), o) for p, o in end.items()}
    records = FIRST_RECORDS
    while low != end:
        each = max(records // len(low), 1)
        high = {p: min(o + each, end[p]) for p, o in low.items()}
        yield low, high
        low, records = high, min(2 * records, MOST_RECORDS)


def check_queryable(source: Source, settings: Settings) -> None:
    """Refuses tables whose rows Headrace does not keep."""
    materialized = settings.flag("ksql.source.table.materialization.enabled")
    if not (source.is_sink or (source.read_only and materialized)):
        name = source.name
        raise StatementError(
            f"The {quote(name)} table isn't queryable. To derive a queryable table, you can do "
            f"'CREATE TABLE QUERYABLE_{name} AS SELECT * FROM {name}'. See "
            "https://cnfl.io/queries for more info.\n"
            "Add EMIT CHANGES if you intended to issue a push query."
        )


def direct_projection(plan: PullPlan) -> list[Evaluate] | None:
    """How to make the answer's columns in Python; None if Spark has to."""
    source = plan.source
    if source.timestamp is not None and source.timestamp.format is not None:
        return None  # ROWTIME is a matter of parsing
    if plan.filter is not None and evaluator(plan.filter.predicate) is None:
        return None
    made = [evaluator(selected.expression) for selected in plan.project.selected]
    found = [m for m in made if m is not None]
    return found if len(found) == len(made) else None


def predicate(plan: PullPlan) -> Evaluate | None:
    return None if plan.filter is None else evaluator(plan.filter.predicate)


def _projected(
    records: Iterable[StoredRecord],
    reader: RowReader,
    passes: Evaluate | None,
    columns: Sequence[Evaluate],
) -> Iterator[Sequence[ResultRow]]:
    batch: list[ResultRow] = []
    size = 0
    for record in records:
        row = reader.row(record)
        if row is not None and (passes is None or passes(row)):
            batch.append(ResultRow([column(row) for column in columns]))
            size += len(record.value)
            if len(batch) == BATCH_ROWS or size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _found(plan: PullPlan, reader: RowReader, tail: Tail) -> Iterator[StoredRecord]:
    """The records that may hold the answer's rows, each once."""
    if plan.constraints is None:
        return tail.store.scan()
    if len(plan.constraints) == 1:
        return reader.find(tail.store, plan.constraints[0])
    return reader.find_all(tail.store, plan.constraints)


def _carried(records: Iterable[StoredRecord]) -> Iterator[list[StoredRecord]]:
    """The records in pieces that Spark is given at a time."""
    piece: list[StoredRecord] = []
    size = 0
    for record in records:
        piece.append(record)
        size += len(record.key) + len(record.value)
        if len(piece) == CARRIED_ROWS or size >= CARRIED_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _from_records(env: Environment, source: Source, records: Sequence[StoredRecord]) -> Read:
    frame = env.spark.createDataFrame(_arrow(records, source.topic))
    return lambda node, headers: frame


def _of_rows(node: n.Node) -> n.Node:
    """The plan for rows that are there, not for changes: one that fails is simply left out."""
    match node:
        case n.Answer() | n.Project() | n.Filter():
            return replace(node, kind=SourceKind.STREAM, input=_of_rows(node.input))
    return node


def _arrow(records: Sequence[StoredRecord], topic: str) -> pa.Table:
    columns: list[Sequence[object]] = [
        [r.key for r in records],
        [r.value for r in records],
        [topic] * len(records),
        [r.partition for r in records],
        [r.offset for r in records],
        [r.timestamp for r in records],
        [[{"key": k, "value": v} for k, v in headers_of(r)] for r in records],
    ]
    arrays = [pa.array(c, type=f.type) for c, f in zip(columns, _RECORDS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_RECORDS)
