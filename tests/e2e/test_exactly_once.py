"""`processing.guarantee=exactly_once_v2`: killed at random, and yet each output is there once."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from headrace.kafka.broker import EmbeddedBroker
from headrace.kafka.ports import free_port
from headrace.kafka.records import NewRecord, RecordReader, RecordWriter
from scene import Scene
from server_process import ServerProcess, batches, eventually, unfinished

pytestmark = pytest.mark.heavy

RECORDS = int(os.environ.get("RECORDS", "200000"))
KILLS = int(os.environ.get("KILLS", "4"))
KEYS = 100

# A stream, a chain of two behind it, and a kernel that says something for every record.
STATEMENTS = """
CREATE STREAM numbers (k STRING KEY, n BIGINT)
  WITH (kafka_topic='numbers', value_format='JSON', wrap_single_values=true);
CREATE TABLE names (k STRING PRIMARY KEY, name STRING)
  WITH (kafka_topic='names', value_format='JSON', wrap_single_values=true);
CREATE STREAM doubled AS SELECT k, n, n * 2 AS twice FROM numbers;
CREATE TABLE totals AS SELECT k, COUNT(*) AS c, SUM(n) AS s FROM doubled GROUP BY k;
CREATE STREAM named AS SELECT d.k AS k, d.n AS n, m.name AS name
  FROM doubled d JOIN names m ON d.k = m.k;
CREATE TABLE few WITH (partitions=1) AS SELECT k, COUNT(*) AS c, LATEST_BY_OFFSET(n) AS l
  FROM numbers GROUP BY k;
SET 'ksql.streams.cache.max.bytes.buffering' = '0';
CREATE TABLE steps AS SELECT k, COUNT(*) AS c, SUM(n) AS s FROM numbers GROUP BY k;
"""


def key(i: int) -> str:
    return f"k{i % KEYS}"


def numbers(first: int, last: int) -> Iterator[NewRecord]:
    for i in range(first, last):
        yield NewRecord("numbers", key(i).encode(), b'{"N":%d}' % i, timestamp=2 + i)


def committed(scene: Scene, topic: str) -> list[tuple[str, dict[str, int]]]:
    return [(r.key.decode(), json.loads(r.value)) for r in RecordReader(scene.kafka).read(topic)]


def test_killed_servers_write_everything_once(tmp_path, seed):
    writes_once(tmp_path, RECORDS, KILLS, seed)


def test_brief_a_killed_server_writes_everything_once(tmp_path, seed):
    writes_once(tmp_path, 20_000, 1, seed)


def writes_once(tmp_path: Path, records: int, kills: int, seed: int) -> None:
    """The records come in as many parts as there are kills."""
    settings = {
        "processing.guarantee": "exactly_once_v2",
        "ksql.streams.max.offsets.per.trigger": "12000",
        "ksql.query.retry.backoff.initial.ms": "500",
    }
    data_dir, ports = tmp_path / "server", (free_port(), free_port(), free_port())
    chance = random.Random(seed)
    with EmbeddedBroker(tmp_path / "kafka", free_port()) as broker:
        kafka = broker.bootstrap_servers

        def start() -> ServerProcess:
            return ServerProcess(data_dir, ports, kafka, settings)

        server = start()
        try:
            scene = server.scene()
            scene.topic("numbers", 3)
            scene.topic("names", 3)
            # A table's topic is compacted, unless it was there before: here each row is looked at.
            scene.topic("STEPS", 3, cleanup_policy="delete")
            with RecordWriter(scene.kafka, linger_ms=50) as writer:
                writer.write_all(
                    NewRecord("names", key(i).encode(), b'{"NAME":"n%d"}' % i, timestamp=1)
                    for i in range(KEYS)
                )
                scene.sql(STATEMENTS)
                for number in range(kills):
                    before = batches(data_dir)
                    first, last = (records * part // kills for part in (number, number + 1))
                    writer.write_all(numbers(first, last))
                    eventually(lambda: batches(data_dir) > before)  # noqa: B023
                    time.sleep(chance.uniform(0, 2))
                    server.kill(everything=number % 2 == 0)
                    print(f"kill {number + 1} interrupted {unfinished(data_dir)} micro-batches")
                    server = start()
                    scene = server.scene()
            finish(scene)
            # Each record of the streams once; of the table without a cache each count, in order.
            for topic in ("DOUBLED", "NAMED"):
                found = [row["N"] for _, row in committed(scene, topic)]
                assert_each_once(topic, found, records)
            counts: dict[str, list[int]] = {}
            for k, row in committed(scene, "STEPS"):
                counts.setdefault(k, []).append(row["C"])
            each = list(range(1, records // KEYS + 1))
            assert {k: c == each for k, c in counts.items()} == {key(i): True for i in range(KEYS)}
            totals = dict(committed(scene, "TOTALS"))
            sums = {
                key(i): {"C": records // KEYS, "S": sum(range(i, records, KEYS))}
                for i in range(KEYS)
            }
            assert totals == sums
            few = {k: row["C"] for k, row in committed(scene, "FEW")}
            assert few == {key(i): records // KEYS for i in range(KEYS)}
            assert server.stop() == 0
        finally:
            server.close()


def assert_each_once(topic: str, found: list[int], records: int) -> None:
    counts = Counter(found)
    missing = [n for n in range(records) if n not in counts]
    repeated = [n for n, count in counts.items() if count > 1]
    assert not missing, f"{topic} lacks {len(missing)}: {missing[:10]}…"
    assert not repeated, f"{topic} has {len(repeated)} more than once: {repeated[:10]}…"


def finish(scene: Scene) -> None:
    """Waits until every query has read its topics, one behind the other, to their ends."""
    ids = {q["sinks"][0]: q["id"] for q in scene.client.queries()}
    for sink, *topics in (
        ("DOUBLED", "numbers"),
        ("STEPS", "numbers"),
        ("FEW", "numbers"),
        ("TOTALS", "DOUBLED"),
        ("NAMED", "DOUBLED", "names"),
    ):
        scene.drained(ids[sink], *topics, patience=300)
    eventually(lambda: all(visible(scene, sink) for sink in ids))


def visible(scene: Scene, topic: str) -> bool:
    """Whether no transaction is open any more: committed readers get to the end."""
    consumer = scene.kafka.consumer()
    try:
        for partition, end in scene.admin.end_offsets(topic).items():
            _, stable = consumer.get_watermark_offsets(TopicPartition(topic, partition), 10)
            if stable < end:
                return False
    finally:
        consumer.close()
    return True
