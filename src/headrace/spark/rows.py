"""What every row of a pipeline carries beside its columns, and how failures ride along."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.model.types import quote
from headrace.spark.casts import coalesce_errors

TIME = "$time"  # the record's time: ROWTIME
NULL = "$null"  # the value as a whole is null: a tombstone in a table
PARTITION = "$partition"  # of the source record
OFFSET = "$offset"
ERRORS = "$errors"  # processing log entries so far, as JSON texts
DEAD = "$dead"  # only here for its log entries
ORDER = "$order"  # behind a stateful step: the place of the row that caused this one
WINDOW_START = "$windowstart"  # of rows whose key carries a window
WINDOW_END = "$windowend"
CARRIED = (TIME, NULL, PARTITION, OFFSET, ERRORS, DEAD)
FAILED = "$failed"  # of a group: this micro-batch brought log entries to it
_SOMETIMES = (ORDER, WINDOW_START, WINDOW_END, FAILED)

_ENTRIES = "array<string>"


def column(name: str) -> Column:
    return F.col(quote(name))


def carried(rows: DataFrame) -> list[Column]:
    """What these rows carry: everything always, some things only behind some steps."""
    there = rows.columns
    return [column(name) for name in (*CARRIED, *_SOMETIMES) if name in there]


def no_entries() -> Column:
    return F.lit(None).cast(_ENTRIES)


@dataclass(frozen=True)
class EntryWriter:
    """Makes processing log entries for one query, in ksqlDB's schema."""

    query: str
    include_rows: bool = False

    def deserialization(
        self, source: str, side: str, error: Column, data: Column, topic: str
    ) -> Column:
        """An entry for a record that cannot be read, or null where there is no error."""
        record = F.base64(data) if self.include_rows else F.lit(None).cast("string")
        detail = F.struct(
            F.lit(side).alias("target"),
            error.alias("errorMessage"),
            record.alias("recordB64"),
            F.array(error).alias("cause"),
            F.lit(topic).alias("topic"),
            column(PARTITION).alias("partition"),
            column(OFFSET).alias("offset"),
        )
        return self._entry(f"{source}.Source", error, 0, "deserializationError", detail)

    def processing(self, step: str, error: Column, what: str) -> Column:
        """An entry for an expression that failed, named after it."""
        detail = F.struct(
            F.concat(F.lit(f"Error computing expression {what}: "), error).alias("errorMessage"),
            F.lit(None).cast("string").alias("record"),
            F.array(error).alias("cause"),
        )
        return self._entry(step, error, 1, "recordProcessingError", detail)

    def serialization(self, error: Column, side: str, topic: str) -> Column:
        detail = F.struct(
            F.lit(side).alias("target"),
            error.alias("errorMessage"),
            F.lit(None).cast("string").alias("record"),
            F.array(error).alias("cause"),
            F.lit(topic).alias("topic"),
        )
        return self._entry("Sink", error, 3, "serializationError", detail)

    def _entry(self, step: str, error: Column, kind: int, name: str, detail: Column) -> Column:
        entry = F.to_json(
            F.struct(
                F.lit("ERROR").alias("level"),
                F.lit(f"processing.{self.query}.{step}").alias("logger"),
                F.unix_millis(F.current_timestamp()).alias("time"),
                F.struct(F.lit(kind).alias("type"), detail.alias(name)).alias("message"),
            ),
            {"ignoreNullFields": "false"},
        )
        return F.when(error.isNotNull(), entry)


@dataclass(frozen=True)
class KernelEntry:
    """Makes an entry from a message inside a worker; travels there as plain values."""

    query: str
    step: str

    def __call__(self, message: str) -> str:
        detail = {"errorMessage": message, "record": None, "cause": [message]}
        return json.dumps(
            {
                "level": "ERROR",
                "logger": f"processing.{self.query}.{self.step}",
                "time": int(time.time() * 1000),
                "message": {"type": 1, "recordProcessingError": detail},
            }
        )


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
