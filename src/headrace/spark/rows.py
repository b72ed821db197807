"""What every row of a pipeline carries beside its columns."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.model.types import quote

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


def with_entries(entries: Sequence[Column], before: Column | None = None) -> Column:
    """The row's entries so far (or `before`) and these: arrays, the null ones do not count."""
    so_far = column(ERRORS) if before is None else before
    if not entries:
        return so_far
    none = F.array().cast(_ENTRIES)
    if len(entries) == 1:  # named once only: with its expressions it can be large
        return F.coalesce(F.concat(F.coalesce(so_far, none), entries[0]), so_far)
    together = F.concat(*(F.coalesce(e, none) for e in (so_far, *entries)))
    return F.when(F.coalesce(*entries).isNotNull(), together).otherwise(so_far)


def select(rows: DataFrame, columns: list[Column], **carried_as: Column) -> DataFrame:
    """New columns, and what rows carry: as it was, or as given by name without the `$`."""
    there = rows.columns
    kept = [
        carried_as[name[1:]].alias(name) if name[1:] in carried_as else column(name)
        for name in (*CARRIED, *_SOMETIMES)
        if name in there
    ]
    return rows.select(*columns, *kept)
