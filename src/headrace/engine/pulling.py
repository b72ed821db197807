"""Pull queries: what a table or stream holds now, then the answer ends.

A table's rows are at hand in a `RowStore`; lookups by key, ranges and scans read there. Plain
columns and comparisons are answered in Python, everything else by Spark over the rows found. A
stream is read by Spark, from its topic's beginning to its end as of now.
"""

from __future__ import annotations

import itertools
import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headrace.engine.plain import Evaluate, plain
from headrace.engine.reading import RowReader, tail_name
from headrace.engine.rowstore import StoredRecord, headers_of
from headrace.engine.running import Starts, bounded, context_for
from headrace.engine.tailing import TableTails, Tail
from headrace.engine.world import World
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.requests import LIMIT_REACHED, QUERY_COMPLETED, QueryKind, ResultRow
from headrace.model.schema import Schema
from headrace.model.settings import Settings
from headrace.model.sources import Source, SourceKind
from headrace.model.types import quote
from headrace.plan import nodes as n
from headrace.plan.pull import PullPlan
from headrace.spark.answers import result_rows
from headrace.spark.program import lower_node

BATCH_ROWS = 1000
# More rows than this are not carried to Spark: it reads the topic itself.
MOST_CARRIED = 500_000

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
    """The rows of a pull query, batch by batch."""

    kind = QueryKind.PULL

    def __init__(
        self, schema: Schema, rows: Iterable[ResultRow], final_message: str | None = None
    ) -> None:
        self.id = f"query_{random.getrandbits(80):020x}"
        self.schema = schema
        self.final_message = final_message
        self._rows: Iterator[ResultRow] | None = iter(rows)

    def next_batch(self, timeout: float) -> Sequence[ResultRow] | None:
        if self._rows is None:
            return None
        try:
            batch = list(itertools.islice(self._rows, BATCH_ROWS))
        except sqlite3.Error as e:
            raise HeadraceError(f"The table's rows are no longer there: {e}") from e
        if not batch:
            self._rows = None
            return None
        return batch

    def close(self) -> None:
        """A scan that is left unfinished frees its resources when its rows are forgotten."""
        self._rows = None


class PullQueries:
    """Answers pull queries of one server."""

    def __init__(self, world: World, tails: TableTails) -> None:
        self._world = world
        self._tails = tails
        self._readers: dict[str, RowReader] = {}

    def answer(self, plan: PullPlan, settings: Settings) -> PullAnswer:
        if not plan.source.is_table:
            return self._stream(plan, settings)
        check_queryable(plan.source, settings)
        if plan.limit == 0:
            return PullAnswer(plan.schema, ())
        return PullAnswer(plan.schema, self._table_rows(plan, settings))

    def reader(self, source: Source) -> RowReader:
        """Who reads the table's records; made once, because schemas are asked for over HTTP."""
        reader = self._readers.get(source.name)
        if reader is None or reader.source != source:
            reader = self._readers[source.name] = RowReader(self._world, source)
        return reader

    def forget(self, source: Source) -> None:
        """Drops what was kept for a table that is no more, or is another one now."""
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
        if plan.limit == 0:
            return PullAnswer(plan.schema, (), LIMIT_REACHED)
        rows = self._evaluated(plan, settings, bounded(self._world, self._ends(plan.source)))
        if plan.limit is not None and len(rows) >= plan.limit:
            return PullAnswer(plan.schema, rows[: plan.limit], LIMIT_REACHED)
        return PullAnswer(plan.schema, rows, QUERY_COMPLETED)

    # ------------------------------------------------------------------ tables

    def _tail(self, reader: RowReader, settings: Settings) -> Tail:
        """The table's tail, as fresh as the settings ask for."""
        tail = self._tails.follow(reader.followed())
        staleness = settings.number("ksql.query.pull.max.staleness.ms") / 1000
        self._tails.await_fresh(tail, staleness)
        return tail

    def _table_rows(self, plan: PullPlan, settings: Settings) -> Iterable[ResultRow]:
        reader = self.reader(plan.source)
        tail = self._tail(reader, settings)
        records = _found(plan, reader, tail)
        direct = direct_projection(plan)
        if direct is None:
            rows: Iterable[ResultRow] = self._by_spark(plan, settings, records)
        else:
            rows = _projected(records, reader, predicate(plan), direct)
        return rows if plan.limit is None else itertools.islice(rows, plan.limit)

    def _by_spark(
        self, plan: PullPlan, settings: Settings, records: Iterator[StoredRecord]
    ) -> list[ResultRow]:
        carried = list(itertools.islice(records, MOST_CARRIED + 1))
        if len(carried) > MOST_CARRIED:
            return self._evaluated(plan, settings, self._latest(plan.source))
        if not carried:
            return []
        table = _arrow(carried, plan.source.topic)
        frame = self._world.spark.createDataFrame(table)
        return self._evaluated(plan, settings, lambda source, headers: frame)

    def _latest(self, source: Source) -> Callable[[n.ReadSource, bool], DataFrame]:
        """Of a topic's records, the last of each key; a deleted row's last has no value."""
        read = bounded(self._world, self._ends(source))

        def latest(node: n.ReadSource, headers: bool) -> DataFrame:
            records = read(node, headers).where(F.col("key").isNotNull())
            rest = F.struct(*(c for c in records.columns if c != "key"))
            last = records.groupBy("key").agg(F.max_by(rest, F.col("offset")).alias("last"))
            return last.select("key", "last.*").where(F.col("value").isNotNull())

        return latest

    def _ends(self, source: Source) -> Starts:
        """Where the source's topic ends now."""
        topic = self._world.in_kafka(source.topic)
        return {source.topic: self._world.admin.end_offsets(topic)}

    def _evaluated(
        self, plan: PullPlan, settings: Settings, read: Callable[[n.ReadSource, bool], DataFrame]
    ) -> list[ResultRow]:
        context = context_for(self._world, "pull", settings, read)
        rows = result_rows(lower_node(_of_rows(plan.node), context), plan.schema)
        return [row for row in rows if not row.tombstone]


def check_queryable(source: Source, settings: Settings) -> None:
    """Only tables that Headrace keeps, or was told to, have their rows at hand."""
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
    if plan.filter is not None and plain(plan.filter.predicate) is None:
        return None
    made = [plain(selected.expression) for selected in plan.project.selected]
    found = [m for m in made if m is not None]
    return found if len(found) == len(made) else None


def predicate(plan: PullPlan) -> Evaluate | None:
    return None if plan.filter is None else plain(plan.filter.predicate)


def _projected(
    records: Iterable[StoredRecord],
    reader: RowReader,
    passes: Evaluate | None,
    columns: Sequence[Evaluate],
) -> Iterator[ResultRow]:
    for record in records:
        row = reader.row(record)
        if row is not None and (passes is None or passes(row)):
            yield ResultRow([column(row) for column in columns])


def _found(plan: PullPlan, reader: RowReader, tail: Tail) -> Iterator[StoredRecord]:
    """The records that may hold the answer's rows, each once."""
    if plan.lookups is None:
        return tail.store.scan()
    if len(plan.lookups) == 1:
        return reader.find(tail.store, plan.lookups[0])
    found = (record for lookup in plan.lookups for record in reader.find(tail.store, lookup))
    return iter({record.key: record for record in found}.values())


def _of_rows(node: n.Node) -> n.Node:
    """The plan for rows that are there, not for changes: one that fails is simply left out."""
    match node:
        case n.Answer() | n.Project() | n.Filter():
            return replace(node, kind=SourceKind.STREAM, input=_of_rows(node.input))
    return node


def _arrow(records: Sequence[StoredRecord], topic: str) -> pa.Table:
    columns: list[Any] = [
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
