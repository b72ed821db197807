"""What every row of a pipeline carries beside its columns."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.model.types import quote
from headrace.spark.casts import coalesce_errors

TIME = "$time"  # the record's time: ROWTIME
NULL = "$null"  # the value as a whole is null: a tombstone in a table
PARTITION = "$partition"  # of the source record
OFFSET = "$offset"
ERRORS = "$errors"  # processing log entries so far, and skipped records, as JSON texts
DEAD = "$dead"  # only here for its log entries
ORDER = "$order"  # behind a stateful step: the place of the row that caused this one
WINDOW_START = "$windowstart"  # of rows whose key carries a window
WINDOW_END = "$windowend"
CARRIED = (TIME, NULL, PARTITION, OFFSET, ERRORS, DEAD)
FAILED = "$failed"  # of a group: this micro-batch brought log entries to it
RAW = "$raw"  # before the first stateful step, if skipped records are kept: the source record
_SOMETIMES = (ORDER, WINDOW_START, WINDOW_END, FAILED, RAW)

_ENTRIES = "array<string>"


def column(name: str) -> Column:
    return F.col(quote(name))


def carried(rows: DataFrame) -> list[Column]:
    """What these rows carry: everything always, some things only behind some steps."""
    there = rows.columns
    return [column(name) for name in (*CARRIED, *_SOMETIMES) if name in there]


def no_entries() -> Column:
    return F.lit(None).cast(_ENTRIES)


def with_entries(entries: list[Column]) -> Column:
    """The row's entries so far and these, of which the null ones do not count."""
    if not entries:
        return column(ERRORS)
    some = coalesce_errors(*entries)
    assert some is not None
    added = F.filter(F.array(*entries), lambda x: x.isNotNull())
    before = F.coalesce(column(ERRORS), F.array().cast(_ENTRIES))
    return F.when(some.isNotNull(), F.concat(before, added)).otherwise(column(ERRORS))


def select(rows: DataFrame, columns: list[Column], **carried_as: Column) -> DataFrame:
    """New columns, and what rows carry: as it was, or as given by name without the `$`."""
    there = rows.columns
    kept = [
        carried_as[name[1:]].alias(name) if name[1:] in carried_as else column(name)
        for name in (*CARRIED, *_SOMETIMES)
        if name in there
    ]
    return rows.select(*columns, *kept)
