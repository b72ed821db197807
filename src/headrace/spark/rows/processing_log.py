"""Entries of the processing log, in ksqlDB's schema, and records that were skipped, as JSON texts.

Both ride along with rows (`$errors`) until the sink writes them to their topics. In a pipeline
they are made by Spark's own columns, in workers by plain Python.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.spark.rows.columns import OFFSET, PARTITION, RAW, Entries, column

# Kinds of messages, by ksqlDB's numbers.
_KINDS = {
    "deserializationError": 0,
    "recordProcessingError": 1,
    "productionError": 2,
    "serializationError": 3,
    "kafkaStreamsThreadError": 4,
}

# A skipped record is an object with this one member, which no entry has.
_SKIPPED = "skipped"
_SKIPPED_START = f'{{"{_SKIPPED}":'

# Headers of a skipped record begin so; `query`, `step`, `reason`, `topic`, … come behind.
HEADER_PREFIX = "__headrace.errors."

# A message that names an expression, and why it failed (null where it did not).
Failure = tuple[str, Column]

# What of an entry can be too long for the log's topic.
_SHORT = 1000


@dataclass(frozen=True)
class EntryWriter:
    """Makes the entries of one query.

    `include_rows`: entries hold the record or row. `keep_skipped`: records that are skipped before
    the first stateful step are kept whole. `only_marks`: entries only show that there is one, for
    rows of which nobody will read them.
    """

    query: str
    include_rows: bool = False
    keep_skipped: bool = False
    only_marks: bool = False

    def marking(self) -> EntryWriter:
        return EntryWriter(self.query, only_marks=True)

    def deserialization(
        self, step: str, side: str, error: Column, data: Column, topic: str
    ) -> Entries:
        """For a record that cannot be read."""

        def line() -> Column:
            detail = F.struct(
                F.lit(side).alias("target"),
                error.alias("errorMessage"),
                self._shown(lambda: _base64(data)).alias("recordB64"),
                F.array(error).alias("cause"),
                F.lit(topic).alias("topic"),
                column(PARTITION).alias("partition"),
                column(OFFSET).alias("offset"),
            )
            return self._entry(step, "deserializationError", detail)

        return self._entries(error.isNotNull(), line)

    def processing(self, step: str, failures: Sequence[Failure], row: Sequence[Column]) -> Entries:
        """For expressions that failed: one entry each, with the message that names it."""

        def lines() -> Column:
            shown = self._shown(lambda: _row_text(row))

            def entry(message: Column, error: Column) -> Column:
                detail = F.struct(
                    message.alias("errorMessage"),
                    shown.alias("record"),
                    F.array(error).alias("cause"),
                )
                return self._entry(step, "recordProcessingError", detail)

            if len(failures) == 1:  # without a lambda, Spark compiles it
                ((message, error),) = failures
                return entry(F.lit(message), error)
            every = (F.struct(F.lit(m).alias("message"), e.alias("error")) for m, e in failures)
            found = F.filter(F.array(*every), lambda failure: failure["error"].isNotNull())
            texts = F.transform(found, lambda failure: entry(failure["message"], failure["error"]))
            return F.array_join(texts, "\n")

        return self._entries(F.coalesce(*(e for _, e in failures)).isNotNull(), lines)

    def serialization(
        self, step: str, side: str, error: Column, topic: str, row: Sequence[Column]
    ) -> Entries:
        """For a row that cannot be written."""

        def line() -> Column:
            detail = F.struct(
                F.lit(side).alias("target"),
                error.alias("errorMessage"),
                self._shown(lambda: _row_text(row)).alias("record"),
                F.array(error).alias("cause"),
                F.lit(topic).alias("topic"),
            )
            return self._entry(step, "serializationError", detail)

        return self._entries(error.isNotNull(), line)

    def _entries(self, failed: Column, lines: Callable[[], Column]) -> Entries:
        return Entries(failed) if self.only_marks else Entries(failed, lines())

    def skipped(self, step: str, reason: Column, there: Sequence[str]) -> list[Entries]:
        """The source record of a row that is skipped, if it is kept and still `there`."""
        if not self.keep_skipped or RAW not in there:
            return []
        letter = F.struct(
            F.lit(self.query).alias("query"),
            F.lit(step).alias("step"),
            reason.alias("reason"),
            column(RAW).alias("record"),
        )
        return [Entries(reason.isNotNull(), F.to_json(F.struct(letter.alias(_SKIPPED))))]

    def _shown(self, text: Callable[[], Column]) -> Column:
        return text() if self.include_rows else F.lit(None).cast("string")

    def _entry(self, step: str, name: str, detail: Column) -> Column:
        return F.to_json(
            F.struct(
                F.lit("ERROR").alias("level"),
                F.lit(_logger(self.query, step)).alias("logger"),
                F.lit(None).cast("bigint").alias("time"),
                F.struct(F.lit(_KINDS[name]).alias("type"), detail.alias(name)).alias("message"),
            ),
            {"ignoreNullFields": "false"},
        )


def dated(entry: str) -> str:
    """An entry from a pipeline, which has no time, with that of now.

    The time of a micro-batch is a number in the code that Spark generates for it: with that in a
    plan, Spark would generate and compile its code anew for every batch.
    """
    return entry.replace('"time":null', f'"time":{int(time.time() * 1000)}', 1)


def unread_topics(entry: str) -> list[str]:
    """The topic of the record that an entry is about, if the entry says that it cannot be read."""
    detail = json.loads(entry).get("message", {}).get("deserializationError")
    return [] if detail is None else [detail["topic"]]


def _logger(query: str, step: str) -> str:
    return f"processing.{query}.{step}"


def _base64(data: Column) -> Column:
    """Spark breaks the lines of long ones."""
    return F.replace(F.base64(data), F.lit("\r\n"), F.lit(""))


def _row_text(row: Sequence[Column]) -> Column:
    """The row's values as a JSON array."""
    texts = [F.to_json(F.struct(c.alias("v")), {"ignoreNullFields": "false"}) for c in row]
    values = [F.substring(t, F.lit(6), F.length(t) - 6) for t in texts]  # without `{"v":` and `}`
    return F.concat(F.lit("["), F.concat_ws(",", *values), F.lit("]"))


# ------------------------------------------------------------------------------- in workers


@dataclass(frozen=True)
class KernelEntry:
    """Makes an entry from a message inside a worker; travels there as plain values."""

    query: str
    step: str

    def __call__(self, message: str) -> str:
        detail = {"errorMessage": message, "record": None, "cause": [message]}
        return _entry_text(self.query, self.step, "recordProcessingError", detail)


def production_entry(query: str, step: str, message: str) -> str:
    """An entry for a record that the broker refuses."""
    return _entry_text(query, step, "productionError", {"errorMessage": message})


def loss_entry(
    query: str, topic: str, message: str, partition: int, first: int, last: int | None
) -> str:
    """An entry for records that were deleted before the query read them. ksqlDB has no kind of its
    own for it, so the place is told besides."""
    detail = {
        "errorMessage": message,
        "threadName": query,
        "cause": [message],
        "topic": topic,
        "partition": partition,
        "firstOffset": first,
        "lastOffset": last,
    }
    return _entry_text(query, f"{topic}.DataLoss", "kafkaStreamsThreadError", detail)


def _entry_text(query: str, step: str, name: str, detail: Mapping[str, object]) -> str:
    return json.dumps(
        {
            "level": "ERROR",
            "logger": _logger(query, step),
            "time": int(time.time() * 1000),
            "message": {"type": _KINDS[name], name: detail},
        }
    )


def shortened(entry: str) -> str:
    """An entry that was too large for its topic: without the record, its texts cut off."""
    body = json.loads(entry)
    for name, detail in body["message"].items():
        if name in _KINDS:
            for field in ("record", "recordB64"):
                if field in detail:
                    detail[field] = None
            detail["errorMessage"] = str(detail["errorMessage"])[:_SHORT]
            if "cause" in detail:
                detail["cause"] = [str(text)[:_SHORT] for text in detail["cause"]]
    return json.dumps(body)


class SourceRecord(TypedDict):
    """A record as it stands in its topic, carried by the row that was made of it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[dict[str, Any]] | None


@dataclass(frozen=True)
class SkippedRecord:
    """A source record that was left out, as it was, and why."""

    query: str
    step: str
    reason: str
    record: Mapping[str, Any]  # bytes in base64

    @staticmethod
    def of_row(query: str, step: str, reason: str, raw: SourceRecord) -> SkippedRecord:
        """From the source record that a row carries."""
        headers = [{**h, "value": _text(h["value"])} for h in raw["headers"] or ()]
        texts = {"key": _text(raw["key"]), "value": _text(raw["value"]), "headers": headers}
        return SkippedRecord(query, step, reason, {**raw, **texts})

    @staticmethod
    def read(text: str) -> SkippedRecord | None:
        """None for the text of an entry."""
        if not text.startswith(_SKIPPED_START):
            return None
        found = json.loads(text)[_SKIPPED]
        return SkippedRecord(found["query"], found["step"], found["reason"], found["record"])

    @property
    def key(self) -> bytes | None:
        return _bytes(self.record.get("key"))

    @property
    def value(self) -> bytes | None:
        return _bytes(self.record.get("value"))

    @property
    def timestamp(self) -> int:
        return int(self.record["timestamp"])

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """Its own, then those that tell what happened."""
        own = [(h["key"], _bytes(h.get("value"))) for h in self.record.get("headers", ())]
        facts = {
            "query": self.query,
            "step": self.step,
            "reason": self.reason,
            **{name: self.record[name] for name in ("topic", "partition", "offset")},
        }
        return [*own, *((HEADER_PREFIX + k, str(v).encode()) for k, v in facts.items())]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
