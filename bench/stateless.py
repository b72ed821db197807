"""Stateless work: round trip of one record, and throughput against the same job by hand.

    python bench/stateless.py [RECORDS]

One run, one broker, one Spark session; the sides take turns, the first turn does not count. Prints
the median round trip through a filter and a projection, and the ratio of throughputs.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from typing import Any

from ground import ground
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headrace.client import Client
from headrace.spark.sink import SinkTarget, write_to_kafka
from headrace.spark.topics import consumer_options, stream_topic
from headrace.topics.admin import TopicAdmin, TopicSpec
from headrace.topics.client import KafkaConnection
from headrace.topics.records import NewRecord, RecordWriter
from headrace.topics.settings import client_settings

REPEATS, WARM_UP, ROUND_TRIPS = 3, 20, 100
BATCH = 20_000


def order(i: int) -> bytes:
    return b'{"ID":%d,"NAME":"name-%d","AMOUNT":%d.5,"CITY":"berlin"}' % (i, i % 1000, i % 500)


def fill(kafka: KafkaConnection, topic: str, count: int) -> None:
    TopicAdmin(kafka).create(TopicSpec(topic, 2))
    with RecordWriter(kafka, linger_ms=50) as writer:
        for start in range(0, count, BATCH):
            rows = range(start, min(start + BATCH, count))
            writer.write_all(NewRecord(topic, str(i).encode(), order(i)) for i in rows)


def wait_for(admin: TopicAdmin, topic: str, count: int) -> None:
    while sum(admin.end_offsets(topic).values()) < count:
        time.sleep(0.02)


def ours(client: Client, admin: TopicAdmin, name: str, expected: int) -> float:
    admin.create(TopicSpec(name, 2))
    began = time.monotonic()
    client.execute(
        f"CREATE STREAM {name} WITH (kafka_topic='{name}') AS SELECT key, id, name, amount * 2 AS twice "
        "FROM orders WHERE amount > 100 EMIT CHANGES;"
    )
    wait_for(admin, name, expected)
    took = time.monotonic() - began
    client.execute(f"DROP STREAM {name};")
    return took


def by_hand(kafka: KafkaConnection, admin: TopicAdmin, name: str, expected: int) -> float:
    """The same filter and projection in PySpark, with the same source options and sink."""
    admin.create(TopicSpec(name, 2))
    spark: Any = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    began = time.monotonic()
    options = consumer_options(kafka.settings)
    records = stream_topic(spark, "orders", options, "earliest", 500_000, False)
    parsed = records.select(
        "key",
        "timestamp",
        F.from_json(
            F.col("value").cast("string"), "ID INT, NAME STRING, AMOUNT DOUBLE, CITY STRING"
        ).alias("v"),
    ).where("v.AMOUNT > 100")
    rows = parsed.select(
        F.col("key").alias("$key"),
        F.to_json(F.struct("v.ID", "v.NAME", (F.col("v.AMOUNT") * 2).alias("TWICE")))
        .cast("binary")
        .alias("$value"),
        F.unix_millis("timestamp").alias("$time"),
    )
    client = tuple(sorted(client_settings(kafka.settings).for_producer().items()))
    with tempfile.TemporaryDirectory() as checkpoint:
        query = (
            write_to_kafka(rows, SinkTarget("by_hand", name, client))
            .writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .start()
        )
        wait_for(admin, name, expected)
        took = time.monotonic() - began
        query.stop()
    return took


def round_trips(client: Client, kafka: KafkaConnection, admin: TopicAdmin) -> list[float]:
    admin.create(TopicSpec("one", 1))
    client.execute(
        "CREATE STREAM one (id INT, amount DOUBLE) WITH (kafka_topic='one', value_format='JSON');"
        "CREATE STREAM one_out AS SELECT id, amount * 2 AS twice FROM one WHERE amount > 1;"
    )
    from confluent_kafka import TopicPartition

    consumer = kafka.consumer(fetch_wait_max_ms=5)
    consumer.assign([TopicPartition("ONE_OUT", 0, 0)])
    took = []
    with RecordWriter(kafka, linger_ms=0) as writer:
        for i in range(WARM_UP + ROUND_TRIPS):
            began = time.monotonic()
            writer.write(NewRecord("one", value=b'{"ID":%d,"AMOUNT":2.5}' % i))
            while (message := consumer.poll(30)) is None or message.error():
                continue
            took.append(time.monotonic() - began)
    consumer.close()
    client.execute("DROP STREAM one_out;")
    return took[WARM_UP:]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    expected = sum(1 for i in range(count) if i % 500 + 0.5 > 100)
    with ground() as on:
        client, kafka, admin = on.client, on.kafka, on.admin
        took = sorted(round_trips(client, kafka, admin))
        print(
            f"round trip: p50 {statistics.median(took) * 1000:.0f} ms, "
            f"p99 {took[int(len(took) * 0.99)] * 1000:.0f} ms ({len(took)} records)"
        )
        fill(kafka, "orders", count)
        client.execute(
            "CREATE STREAM orders (key STRING KEY, id INT, name STRING, amount DOUBLE, city STRING)"
            " WITH (kafka_topic='orders', value_format='JSON');"
        )
        ratios = []
        for i in range(REPEATS + 1):
            a = ours(client, admin, f"ours_{i}", expected)
            b = by_hand(kafka, admin, f"hand_{i}", expected)
            if i == 0:  # Java compiles what it runs often
                continue
            ratios.append(b / a)
            print(
                f"{count} records: ours {count / a:,.0f}/s, by hand {count / b:,.0f}/s, "
                f"ratio {b / a:.2f}"
            )
        print(
            f"ratio: median {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f}), wanted at least 0.90"
        )


if __name__ == "__main__":
    main()
