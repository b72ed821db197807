"""COUNT and SUM by key, 1M records: ours, by hand in PySpark, and Kafka Streams, in one run.

    python bench/aggregates.py [RECORDS] [KEYS …]

Prints records/s of each and the ratios: at least 0.9 of by hand, 1.3 of Kafka Streams are wanted.
The clock runs from the start of a job until all its output is written. Spark is warm (one small
run before), the JVM of Kafka Streams is new, as it is in use.
"""

from __future__ import annotations

import sys

import kafka_streams
from ground import Ground, ground, show
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headrace.spark.topics import consumer_options, stream_topic


def record(i: int, keys: int) -> tuple[bytes, bytes]:
    # A prime step visits all keys in an order that is none.
    return b"key%d" % (i * 7919 % keys), b'{"N":%d,"WORD":"word %d"}' % (i, i % 100)


def by_hand(at: Ground, topic: str) -> DataFrame:
    options = consumer_options(at.kafka.settings)
    records = stream_topic(at.spark, topic, options, "earliest", 500_000, False)
    value = F.from_json(F.col("value").cast("string"), "N BIGINT, WORD STRING")
    totals = (
        records.select(F.col("key"), value.alias("v"))
        .groupBy("key")
        .agg(F.count("*").alias("C"), F.sum("v.N").alias("S"))
    )
    return totals.select("key", F.to_json(F.struct("C", "S")).alias("value"))


def ours(at: Ground, topic: str, name: str, **properties: object) -> float:
    return at.ours(
        f"CREATE TABLE {name} AS SELECT k, COUNT(*) AS c, SUM(n) AS s FROM {topic} GROUP BY k;",
        topic,
        **properties,
    )


def declare(at: Ground, topic: str) -> None:
    at.client.execute(
        f"CREATE STREAM {topic} (k STRING KEY, n BIGINT, word STRING) "
        f"WITH (kafka_topic='{topic}', value_format='JSON', wrap_single_values=true);"
    )


def figures(at: Ground, count: int, keys: int, kernel: bool = False) -> dict[str, float]:
    """Records/s and ratios; with `kernel` also of the way that Spark's aggregate does not go."""
    topic = f"numbers_{keys}"
    at.fill(topic, count, lambda i: record(i, keys))
    declare(at, topic)
    took = {
        "ours": ours(at, topic, f"ours_{keys}"),
        "by hand": at.by_hand(by_hand(at, topic), f"hand_{keys}", topic),
    }
    if kernel:
        every = {"ksql__streams__cache__max__bytes__buffering": 0}
        took["kernel, each change"] = ours(at, topic, f"kernel_{keys}", **every)
    if kafka_streams.available():
        took["Kafka Streams"] = kafka_streams.seconds(
            "aggregate", at.server.kafka, count, _sink(at, f"streams_{keys}"), topic
        )
    rates = {f"aggregate, {keys} keys, {who}: records/s": count / t for who, t in took.items()}
    ratios = {
        f"aggregate, {keys} keys, ours / {who}": t / took["ours"]
        for who, t in took.items()
        if who in ("by hand", "Kafka Streams")
    }
    return rates | ratios


def _sink(at: Ground, name: str) -> str:
    from headrace.topics.admin import TopicSpec

    at.admin.create(TopicSpec(name, 2))
    return name


def warm_up(at: Ground) -> None:
    at.fill("warm", 20_000, lambda i: record(i, 100))
    declare(at, "warm")
    ours(at, "warm", "warm_ours")
    at.by_hand(by_hand(at, "warm"), "warm_hand", "warm")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with ground() as at:
        warm_up(at)
        for keys in map(int, sys.argv[2:] or ("100", "1000000")):
            show(figures(at, count, keys, kernel=True))


if __name__ == "__main__":
    main()
