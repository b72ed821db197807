"""An aggregate that Spark keeps and one that a kernel keeps: the same tables on random records."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from headrace.engine.engine import Engine
from headrace.kafka.records import RecordReader
from headrace.spark.rows.optimistic import PESSIMISTIC
from scene import Scene, record

pytestmark = pytest.mark.heavy

RECORDS = 3000
LOG = "default_ksql_processing_log"

AGGREGATES = (
    "COUNT(*)",
    *(f"COUNT({c})" for c in ("I", "D", "S", "A")),
    *(f"{f}({c})" for f in ("MIN", "MAX") for c in ("I", "B", "D", "N", "S")),
    *(f"SUM({c})" for c in ("I", "B", "D")),
    "SUM_LIST(A)",
    *(f"AVG({c})" for c in ("I", "D")),
)
TEXTS = ["", "a", "Z", "é", "\ufb01", "\U0001f600", "日本"]


def some(chance: random.Random, value: object) -> object:
    return None if chance.random() < 0.15 else value


def random_records(chance: random.Random):
    for _ in range(RECORDS):
        row = {
            "I": some(chance, chance.choice((2**31 - 1, -(2**31), chance.randrange(1000)))),
            "B": some(chance, chance.choice((2**63 - 1, -5, chance.randrange(10**12)))),
            # Sums of these are exact, in whatever order.
            "D": some(chance, chance.randrange(-(2**20), 2**20) / 64),
            "N": some(chance, chance.randrange(-(10**6), 10**6) / 100),
            "S": some(chance, chance.choice(TEXTS)),
            "A": some(chance, [some(chance, chance.randrange(100)) for _ in range(3)]),
            "G": some(chance, chance.randrange(40)),
        }
        value = {0: b"not json", 1: None}.get(chance.randrange(60), row)
        key = None if chance.randrange(20) == 0 else f"k{chance.randrange(30)}"
        yield record(value, key, at=1_700_000_000_000 + chance.randrange(10**6))


def final_table(scene: Scene, topic: str) -> dict[bytes | None, tuple[object, int]]:
    rows = RecordReader(scene.kafka).read(topic)
    return {r.key: (r.value and json.loads(r.value), r.timestamp) for r in rows}


def told(scene: Scene, query_id: str) -> Counter[str]:
    """What the processing log has of a query."""
    bodies = [json.loads(r.value) for r in RecordReader(scene.kafka).read(LOG) if r.value]
    mine = [b for b in bodies if b["logger"].startswith(f"processing.{query_id}.")]
    return Counter(json.dumps(b["message"], sort_keys=True) for b in mine)


def is_native(engine: Engine, query_id: str) -> bool:
    query = engine.queries.get(query_id)
    assert query is not None and query.streaming is not None
    return "Spark's aggregate" in str(query.program(PESSIMISTIC).state)


def test_both_ways_come_to_the_same_tables(scene, server, seed):
    scene.topic("two_ways", 2)
    scene.write("two_ways", *random_records(random.Random(seed)))
    scene.sql(
        "CREATE STREAM two_ways (k STRING KEY, i INT, b BIGINT, d DOUBLE, n DECIMAL(12, 2), "
        "s STRING, a ARRAY<INT>, g INT) WITH (kafka_topic='two_ways', value_format='JSON');"
    )
    columns = ", ".join(f"{call} AS c{i}" for i, call in enumerate(AGGREGATES))
    groups = {"one": "k", "two": "k, g", "made": "CAST(g % 7 AS STRING) + '!'"}
    for name, group in groups.items():
        key = "" if name == "made" else f"{group}, "
        made = f"{group} AS made, " if name == "made" else ""
        select = f"SELECT {key}{made}{columns} FROM two_ways WHERE i IS NULL OR i <> 7"
        ids = []
        for way, cache in (("native", 10_000_000), ("kernel", 0)):
            ids.append(
                scene.create(
                    f"CREATE TABLE two_ways_{name}_{way} WITH (key_format='JSON') AS "
                    f"{select} GROUP BY {group};",
                    ksql__streams__cache__max__bytes__buffering=cache,
                    ksql__streams__max__offsets__per__trigger=700,
                )
            )
        assert [is_native(server.engine, i) for i in ids] == [True, False]
        for query_id in ids:
            scene.drained(query_id, "two_ways")
        topic = f"two_ways_{name}".upper()
        native, kernel = (final_table(scene, f"{topic}_{way}") for way in ("NATIVE", "KERNEL"))
        assert native == kernel
        assert len(native) > 5
        # Each record that could not be used is told of once, by both.
        entries = [told(scene, query_id) for query_id in ids]
        assert entries[0] == entries[1] and entries[0]
        for query_id in ids:
            scene.sql(f"TERMINATE {query_id};")
