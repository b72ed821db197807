"""Updates of a table that coalesce within a micro-batch: the same tables in the end."""

from __future__ import annotations

import json
import random
from itertools import count

import pytest

from headrace.kafka.records import RecordReader
from scene import Scene, record

pytestmark = pytest.mark.heavy

RECORDS = 1500
TABLES = ("lefts", "rights")
SOURCES = (*TABLES, "taps")

BOTH = "lefts l {} JOIN rights r ON"
QUERIES = {
    "joined": f"SELECT ROWKEY AS k, l.n, r.n AS m FROM {BOTH.format('FULL')} l.k = r.k",
    "referring": f"SELECT l.k AS k, l.n, l.g, r.n AS m FROM {BOTH.format('LEFT')} l.g = r.k",
    "grouped": "SELECT g, COUNT(*) AS c, SUM(n) AS s FROM lefts GROUP BY g",
    "sessions": "SELECT k, COUNT(*) AS c, SUM(n) AS s FROM taps "
    "WINDOW SESSION (2 SECONDS) GROUP BY k",
}


def updates(chance: random.Random):
    for at in count(1_700_000_000_000, 40):
        value = {"N": chance.randrange(1000), "G": f"k{chance.randrange(60)}"}
        gone = chance.random() < 0.2
        yield record(None if gone else value, f"k{chance.randrange(60)}", at=at)


def final_table(scene: Scene, topic: str) -> dict[bytes | None, object]:
    """Without rows that are gone, or that stand for a group without members."""
    rows = {r.key: r.value and json.loads(r.value) for r in RecordReader(scene.kafka).read(topic)}
    return {k: row for k, row in rows.items() if row and row.get("C") != 0}


@pytest.fixture(scope="module")
def tables(scene, seed):
    chance = random.Random(seed)
    for name in SOURCES:
        scene.topic(name, 2)
        some = updates(chance)
        scene.write(name, *(next(some) for _ in range(RECORDS)))
    for name in TABLES:
        scene.sql(
            f"CREATE TABLE {name} (k STRING PRIMARY KEY, n INT, g STRING) "
            f"WITH (kafka_topic='{name}', value_format='JSON');"
        )
    scene.sql(
        "CREATE STREAM taps (k STRING KEY, n INT, g STRING) "
        "WITH (kafka_topic='taps', value_format='JSON');"
    )


@pytest.mark.parametrize("name", QUERIES)
def test_coalesced_updates_and_every_change_end_in_the_same_table(scene, tables, name):
    select = QUERIES[name]
    found, told = [], []
    for way, cache in (("each", 0), ("last", 10_000_000)):
        sink = f"{name}_{way}"
        with scene.query(
            f"CREATE TABLE {sink} WITH (kafka_topic='{sink}') AS {select};",
            ksql__streams__cache__max__bytes__buffering=cache,
            ksql__streams__max__offsets__per__trigger=900,
        ) as query_id:
            scene.drained(query_id, *(source for source in SOURCES if source in select))
        found.append(final_table(scene, sink))
        told.append(len(list(RecordReader(scene.kafka).read(sink))))
    assert found[0] == found[1]
    assert len(found[0]) > 5
    assert told[1] < told[0], "updates did coalesce"


def test_rows_of_one_moment_leave_in_the_order_of_their_sides(scene):
    """Left before right, whatever their partitions: the last row that is told is the true one."""
    columns = {"tied_lefts": "g STRING", "tied_rights": "n INT"}
    for name, column in columns.items():
        scene.topic(name, 2)
        scene.sql(
            f"CREATE TABLE {name} (k STRING PRIMARY KEY, {column}) "
            f"WITH (kafka_topic='{name}', value_format='JSON', wrap_single_values=true);"
        )
    scene.write("tied_rights", *(record({"N": i}, "r", at=i * 1000, partition=0) for i in (1, 2)))
    scene.write("tied_lefts", record({"G": "r"}, "x", at=2000, partition=1))
    query_id = scene.create(
        "CREATE TABLE tied AS SELECT l.k AS k, l.g AS g, r.n AS n "
        "FROM tied_lefts l JOIN tied_rights r ON l.g = r.k;",
        ksql__streams__cache__max__bytes__buffering=0,
        auto__offset__reset="earliest",
    )
    scene.drained(query_id, *columns)
    assert [row["N"] for row in scene.values("TIED", 2)] == [1, 2]
