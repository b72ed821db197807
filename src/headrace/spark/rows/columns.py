"""What every row of a pipeline carries beside its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.model.types import quote

TIME = "$time"  # the record's time: ROWTIME
NULL = "$null"  # the value as a whole is null: a tombstone in a table
PARTITION = "$partition"  # of the source record
OFFSET = "$offset"
ERRORS = "$errors"  # processing log entries so far, and skipped records: a line of JSON each
DEAD = "$dead"  # only here for its log entries
ORDER = "$order"  # behind a stateful step: the place of the row that caused this one
WINDOW_START = "$windowstart"  # of rows whose key carries a window
WINDOW_END = "$windowend"
CARRIED = (TIME, NULL, PARTITION, OFFSET, ERRORS, DEAD)
FAILED = "$failed"  # of a group: this micro-batch brought log entries to it
RAW = "$raw"  # before the first stateful step, if skipped records are kept: the source record
_SOMETIMES = (ORDER, WINDOW_START, WINDOW_END, FAILED, RAW)
# A record, decoded or to be written: its key and value. Of one to be written also its log entries,
# and if there, a number that all rows of a task share, also when they are read again.
KEY, VALUE, LOG, TASK = "$key", "$value", "$log", "$task"

# One text and not a list of them: Spark takes 14 µs a row to hand a list to Python, even a null.
_ENTRIES = "string"
_MARK = "failed"


def column(name: str) -> Column:
    return F.col(quote(name))


def carried(rows: DataFrame) -> list[Column]:
    """What these rows carry: everything always, some things only behind some steps."""
    there = rows.columns
    return [column(name) for name in (*CARRIED, *_SOMETIMES) if name in there]


def no_entries() -> Column:
    return F.lit(None).cast(_ENTRIES)


@dataclass(frozen=True)
class Entries:
    """What a step adds to the entries of a row that failed there.

    Most rows do not fail: that they did not is known without the lines being made. Where nobody
    will read them there are none, only a mark.
    """

    failed: Column
    lines: Column | None = None


def with_entries(entries: Sequence[Entries], before: Column | None = None) -> Column:
    """The row's entries so far (or `before`) and these."""
    so_far = column(ERRORS) if before is None else before
    if not entries:
        return so_far
    texts = [F.when(e.failed, e.lines) for e in entries if e.lines is not None]
    together = F.concat_ws("\n", so_far, *texts) if texts else F.lit(_MARK)
    return F.when(reduce(or_, (e.failed for e in entries)), together).otherwise(so_far)


def select(rows: DataFrame, columns: list[Column], **carried_as: Column) -> DataFrame:
    """New columns, and what rows carry: as it was, or as given by name without the `$`."""
    there = rows.columns
    kept = [
        carried_as[name[1:]].alias(name) if name[1:] in carried_as else column(name)
        for name in (*CARRIED, *_SOMETIMES)
        if name in there
    ]
    return rows.select(*columns, *kept)
