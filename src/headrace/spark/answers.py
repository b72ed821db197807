"""A batch's rows as plain values, for a person who is looking at them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, Row

from headrace.model.requests import ResultRow
from headrace.model.schema import WINDOW_BOUNDS, Namespace, Schema
from headrace.spark.entries import dated
from headrace.spark.rows import DEAD, ERRORS, NULL, column


def result_rows(
    batch: DataFrame, schema: Schema, log: Callable[[Sequence[str]], None] | None = None
) -> list[ResultRow]:
    """The live rows. A tombstone shows its key only, with the window that is part of it. Log
    entries that rows carry go to `log`."""
    columns = [column(c.name) for c in schema]
    found = batch.where(~column(DEAD)) if log is None else batch
    keys = [c.namespace is Namespace.KEY or c.name in WINDOW_BOUNDS for c in schema]
    rows: list[ResultRow] = []
    entries: list[str] = []
    for row in found.select(*columns, column(NULL), column(DEAD), column(ERRORS)).collect():
        *values, null, dead, errors = row
        entries += map(dated, errors.split("\n")) if errors else ()
        if dead:
            continue
        shown = [plain(v) for v in values]
        if null:
            shown = [v if is_key else None for v, is_key in zip(shown, keys, strict=True)]
        rows.append(ResultRow(shown, bool(null)))
    if entries and log is not None:
        log(entries)
    return rows


def plain(value: object) -> object:
    match value:
        case Row():
            return {name: plain(v) for name, v in value.asDict().items()}
        case list():
            return [plain(v) for v in value]
        case dict():
            return {k: plain(v) for k, v in value.items()}
        case bytearray():
            return bytes(value)
    return value
