"""What header columns cost: the same query with a header selected, without, and over records
that have none.

    python bench/headers.py [RECORDS]

One run, one broker, one Spark session; the queries take turns. Records have three headers each.
Prints two ratios of throughputs: selecting one header against not selecting it, and reading
records that have headers through a source with header columns, none selected, against the same
through a source without them.
"""

from __future__ import annotations

import statistics
import sys
import time

from ground import ground

from headrace.client import Client
from headrace.topics.admin import TopicAdmin, TopicSpec
from headrace.topics.client import KafkaConnection
from headrace.topics.records import NewRecord, RecordWriter

REPEATS = 5
BATCH = 20_000

QUERIES = {
    "plain": "SELECT k, id, name, amount * 2 AS twice FROM plain",
    "unused": "SELECT k, id, name, amount * 2 AS twice FROM traced",
    "used": "SELECT k, id, name, amount * 2 AS twice, trace FROM traced",
}


def fill(kafka: KafkaConnection, count: int) -> None:
    TopicAdmin(kafka).create(TopicSpec("orders", 2))
    with RecordWriter(kafka, linger_ms=50) as writer:
        for start in range(0, count, BATCH):
            rows = range(start, min(start + BATCH, count))
            writer.write_all(order(i) for i in rows)


def order(i: int) -> NewRecord:
    value = b'{"ID":%d,"NAME":"name-%d","AMOUNT":%d.5,"CITY":"berlin"}' % (i, i % 1000, i % 500)
    headers = (("trace", b"trace-%d" % i), ("source", b"web"), ("version", b"\x00\x00\x00\x02"))
    return NewRecord("orders", b"%d" % i, value, headers)


def seconds(client: Client, admin: TopicAdmin, name: str, query: str, count: int) -> float:
    """How long a new query takes to write everything."""
    admin.create(TopicSpec(name, 2))
    began = time.monotonic()
    client.execute(f"CREATE STREAM {name} WITH (kafka_topic='{name}') AS {query};")
    while sum(admin.end_offsets(name).values()) < count:
        time.sleep(0.02)
    took = time.monotonic() - began
    client.execute(f"DROP STREAM {name} DELETE TOPIC;")
    return took


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    took: dict[str, list[float]] = {kind: [] for kind in QUERIES}
    with ground() as on:
        client, admin = on.client, on.admin
        fill(on.kafka, count)
        columns = "k STRING KEY, id INT, name STRING, amount DOUBLE, city STRING"
        declared = "WITH (kafka_topic='orders', value_format='JSON')"
        client.execute(
            f"CREATE STREAM plain ({columns}) {declared};"
            f"CREATE STREAM traced ({columns}, trace BYTES HEADER('trace')) {declared};"
        )
        seconds(client, admin, "warm_up", QUERIES["used"], count)
        for i in range(REPEATS):
            for kind, query in QUERIES.items():
                took[kind].append(seconds(client, admin, f"{kind}_{i}", query, count))
            print(", ".join(f"{k} {count / t[-1]:,.0f}/s" for k, t in took.items()))
    middle = {kind: statistics.median(times) for kind, times in took.items()}
    used, unused = middle["unused"] / middle["used"], middle["plain"] / middle["unused"]
    print(f"one header selected: {used:.2f} of the throughput without (wanted at least 0.75)")
    print(f"no header selected: {unused:.2f} of the throughput without (wanted at least 0.97)")


if __name__ == "__main__":
    main()
