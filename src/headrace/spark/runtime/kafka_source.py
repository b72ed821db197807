"""Topics as DataFrames: Spark's own Kafka source, tuned for latency."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

# Where to start in each partition of a topic.
Offsets = Mapping[int, int]

# Spark's source passes everything that begins with `kafka.` to the Java consumer.
_PASSED = ("security.", "ssl.", "sasl.", "client.", "max.partition.", "fetch.", "request.")

# What a consumer of a passing query fetches ahead of each partition. Kafka's default is 1 MiB.
PASSING_FETCH_BYTES = 256 * 1024


def consumer_options(
    settings: Mapping[str, str], read_committed: bool = False, *, passing: bool = False
) -> dict[str, str]:
    """`passing`: for a query that comes and goes. Those use one another's consumers: Spark keeps
    each for minutes, with its connections and what it fetched ahead, for whoever has the same
    group. There may be hundreds, whose clients read slowly or not at all."""
    options = {
        f"kafka.{name}": value
        for name, value in settings.items()
        if name == "bootstrap.servers" or name.startswith(_PASSED)
    }
    # The default lets the broker wait half a second for more records.
    options.setdefault("kafka.fetch.max.wait.ms", "5")
    if read_committed:
        options["kafka.isolation.level"] = "read_committed"
    if passing:
        told = json.dumps(options, sort_keys=True).encode()
        options.setdefault("kafka.max.partition.fetch.bytes", str(PASSING_FETCH_BYTES))
        options["kafka.group.id"] = f"headrace-answers-{hashlib.sha256(told).hexdigest()[:12]}"
    return options


def stream_topic(
    spark: SparkSession,
    topic: str,
    options: Mapping[str, str],
    start: str | Offsets,
    max_per_trigger: int,
    headers: bool,
    strict: bool = False,
) -> DataFrame:
    """The records of a topic from `start` on ('earliest', or offsets by partition), as they come.

    Records that the broker has already deleted are passed over, not waited for; if that is
    `strict`, the query fails.
    """
    return (
        spark.readStream.format("kafka")
        .options(**options)
        .option("subscribe", topic)
        .option("startingOffsets", _offsets(topic, start))
        .option("maxOffsetsPerTrigger", max_per_trigger)
        .option("failOnDataLoss", str(strict).lower())
        .option("includeHeaders", str(headers).lower())
        .load()
    )


def read_topic(
    spark: SparkSession,
    topic: str,
    options: Mapping[str, str],
    start: str | Offsets,
    end: Offsets,
    headers: bool,
) -> DataFrame:
    """The records of a topic between two points."""
    return (
        spark.read.format("kafka")
        .options(**options)
        .option("subscribe", topic)
        .option("startingOffsets", _offsets(topic, start))
        .option("endingOffsets", _offsets(topic, end))
        .option("failOnDataLoss", "false")
        .option("includeHeaders", str(headers).lower())
        .load()
    )


def _offsets(topic: str, at: str | Offsets) -> str:
    return at if isinstance(at, str) else json.dumps({topic: {str(p): o for p, o in at.items()}})
