"""Queries with long backlogs beside a small one: it gets its turn, their batches are bounded.

And those that have nothing to do leave the machine to others."""

from __future__ import annotations

import json

import pytest

from headrace.kafka.records import NewRecord, RecordWriter
from headrace.spark.internals.java_objects import field

pytestmark = pytest.mark.heavy

BACKLOG, PIECE = 120_000, 10_000


def test_a_small_query_gets_its_turn_beside_long_backlogs(scene, server):
    scene.topic("fair_backlog", 2)
    with RecordWriter(scene.kafka, linger_ms=50) as writer:
        writer.write_all(
            NewRecord("fair_backlog", b"k%d" % (i % 1000), b'{"N":%d}' % i) for i in range(BACKLOG)
        )
    scene.sql(
        "CREATE STREAM fair_backlog (k STRING KEY, n BIGINT) "
        "WITH (kafka_topic='fair_backlog', value_format='JSON', wrap_single_values=true);"
        "CREATE STREAM fair_small (k STRING KEY, n BIGINT) WITH (kafka_topic='fair_small', "
        "value_format='JSON', wrap_single_values=true, partitions=1);"
    )
    small = scene.create("CREATE STREAM fair_out AS SELECT k, n, n + 1 AS m FROM fair_small;")
    scene.write("fair_small", {"key": b"k", "value": b'{"N":0}'})
    scene.records("FAIR_OUT", 1)
    heavy = [
        scene.create(
            f"CREATE TABLE fair_heavy{i} AS SELECT k, COUNT(*) AS c, LATEST_BY_OFFSET(n) AS l "
            "FROM fair_backlog GROUP BY k;",
            max__offsets__per__trigger=PIECE,
        )
        for i in range(3)
    ]
    for n in range(1, 4):
        scene.write("fair_small", {"key": b"k", "value": b'{"N":%d}' % n})
        scene.records("FAIR_OUT", n + 1)
    behind = [BACKLOG - _read(server, query) for query in heavy]
    assert max(behind) > 0, "the small query had to wait for the others"
    for query in (small, *heavy):
        scene.drained(query, "fair_backlog" if query in heavy else "fair_small")
    for query in heavy:
        progress = server.engine.queries.get(query).streaming.recentProgress
        assert 0 < max(p["numInputRows"] for p in progress) <= PIECE
    for query in (small, *heavy):
        scene.sql(f"TERMINATE {query};")


def _read(server, query: str) -> int:
    """How many records the query has got through."""
    progress = server.engine.queries.get(query).streaming.lastProgress
    end = None if progress is None else progress["sources"][0]["endOffset"]
    reached = json.loads(end) if isinstance(end, str) else end or {}
    return sum(reached.get("fair_backlog", {}).values())


def test_queries_take_turns_whatever_their_names(scene, server):
    """Where Spark has more pools than cores, those whose names come late would do nothing."""
    scene.sql(
        "CREATE STREAM turns (k STRING KEY, n BIGINT) WITH (kafka_topic='turns', "
        "value_format='JSON', wrap_single_values=true, partitions=2);"
    )
    queries = [
        scene.create(
            f"CREATE TABLE turn_{i} AS SELECT k, COUNT(*) AS c, LATEST_BY_OFFSET(n) AS l "
            "FROM turns GROUP BY k;"
        )
        for i in range(8)
    ]

    def batches_under_load():
        scene.write("turns", *({"key": b"k%d" % n, "value": b'{"N":%d}' % n} for n in range(50)))
        return [_batches(server, query) for query in queries]

    seen = scene.wait(batches_under_load, lambda batches: min(batches) >= 3)
    assert max(seen) <= 4 * min(seen)
    for query in queries:
        scene.sql(f"TERMINATE {query};")


def _batches(server, query: str) -> int:
    progress = server.engine.queries.get(query).streaming.lastProgress
    return 0 if progress is None else progress["batchId"]


def test_a_query_without_work_looks_for_it_less_often(scene, server):
    scene.sql(
        "CREATE STREAM rests (k STRING KEY, n BIGINT) WITH (kafka_topic='rests', "
        "value_format='JSON', wrap_single_values=true, partitions=1);"
    )
    query = scene.create("CREATE STREAM rests_out AS SELECT k, n, n + 1 AS m FROM rests;")
    scene.wait(lambda: _pause_ms(server, query), lambda pause: pause == 80)
    scene.write("rests", {"key": b"k", "value": b'{"N":0}'})
    scene.wait(lambda: _pause_ms(server, query), lambda pause: pause == 20)
    assert scene.records("RESTS_OUT", 1)
    scene.wait(lambda: _pause_ms(server, query), lambda pause: pause == 80)
    scene.sql(f"TERMINATE {query};")


def _pause_ms(server, query: str) -> int:
    execution = server.engine.queries.get(query).streaming._jsq.streamingQuery()
    return field(execution, "StreamExecution", "pollingDelayMs").getLong(execution)
