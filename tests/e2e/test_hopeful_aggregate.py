"""Spark's own aggregate hopes that Spark can read every record, until one comes that it cannot."""

from __future__ import annotations

import pytest
from scene import record

pytestmark = pytest.mark.heavy


def test_a_record_that_only_python_can_read_is_counted_like_any_other(scene, server):
    scene.topic("hoped")
    scene.sql(
        "CREATE STREAM hoped (k STRING KEY, n BIGINT, word STRING) "
        "WITH (kafka_topic='hoped', value_format='JSON');"
    )
    query_id = scene.create(
        "CREATE TABLE hoped_totals AS SELECT k, COUNT(*) AS c, SUM(n) AS s FROM hoped GROUP BY k;"
    )
    query = server.engine.queries.get(query_id)
    scene.write("hoped", record({"N": 1, "WORD": "x"}, "a"), record({"N": 2, "WORD": "y"}, "b"))
    become(scene, [("a", 1, 1), ("b", 1, 2)])
    assert query.hopeful

    # A number in quotes is a number to ksqlDB; a group in the same batch is not touched by it.
    scene.write("hoped", record({"N": "10", "WORD": "x"}, "a"), record({"N": 5, "WORD": "y"}, "b"))
    become(scene, [("a", 2, 11), ("b", 2, 7)])
    assert not query.hopeful
    assert not query.errors

    scene.write("hoped", record({"N": 1, "WORD": "x"}, "a"))
    become(scene, [("a", 3, 12), ("b", 2, 7)])


def become(scene, rows):
    scene.wait(
        lambda: sorted(scene.pull("SELECT k, c, s FROM hoped_totals;")), lambda seen: seen == rows
    )
