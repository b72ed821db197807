"""The rows of an answer as plain values, for a person who is looking at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from headrace.model.requests import ResultRow
from headrace.model.schema import WINDOW_BOUNDS, Namespace, Schema
from headrace.spark.rows.columns import DEAD, ERRORS, NULL, column
from headrace.spark.rows.processing_log import dated
from headrace.spark.sink.packed_rows import PackedRows, pack


def packed_answer(rows: DataFrame, schema: Schema, directory: str | None) -> DataFrame:
    """What `result_rows` needs of the rows, packed to be read piece by piece."""
    columns = [column(c.name) for c in schema]
    return pack(rows.select(*columns, column(NULL), column(DEAD), column(ERRORS)), directory)


def result_rows(
    packed: PackedRows, schema: Schema, log: Callable[[Sequence[str]], None] | None = None
) -> Iterator[list[ResultRow]]:
    """The live rows, a few at a time. A tombstone shows its key only, with the window that is part
    of it. Log entries that rows carry go to `log`.

    Rows that were handed over are not kept: the next ones may be asked for much later."""
    keys = [c.namespace is Namespace.KEY or c.name in WINDOW_BOUNDS for c in schema]
    return filter(None, map(partial(_live_rows, keys, log), packed.chunks()))


def _live_rows(
    keys: Sequence[bool], log: Callable[[Sequence[str]], None] | None, chunk: pa.RecordBatch
) -> list[ResultRow]:
    *columns, nulls, deads, errors = map(_values, chunk.columns)
    entries = [dated(e) for told in errors if told for e in told.split("\n")]
    if entries and log is not None:
        log(entries)
    rows = []
    for i, (null, dead) in enumerate(zip(nulls, deads, strict=True)):
        if dead:
            continue
        if null:
            shown = [c[i] if is_key else None for c, is_key in zip(columns, keys, strict=True)]
        else:
            shown = [c[i] for c in columns]
        rows.append(ResultRow(shown, bool(null)))
    return rows


def _values(column: pa.Array) -> list[Any]:
    found: list[Any] = column.to_pylist(maps_as_pydicts="lossy")
    return found
