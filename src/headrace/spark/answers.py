"""A batch's rows as plain values, for a person who is looking at them."""

from __future__ import annotations

from pyspark.sql import DataFrame, Row

from headrace.model.requests import ResultRow
from headrace.model.schema import Namespace, Schema
from headrace.spark.rows import DEAD, NULL, column


def result_rows(batch: DataFrame, schema: Schema) -> list[ResultRow]:
    """The live rows. A tombstone shows its key only."""
    live = batch.where(~column(DEAD)).select(*(column(c.name) for c in schema), column(NULL))
    keys = [c.namespace is Namespace.KEY for c in schema]
    rows = []
    for row in live.collect():
        *values, null = row
        shown = [plain(v) for v in values]
        if null:
            shown = [v if is_key else None for v, is_key in zip(shown, keys, strict=True)]
        rows.append(ResultRow(shown, bool(null)))
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
