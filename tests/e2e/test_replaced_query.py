"""A query that is replaced by one with another filter: new state, and yet nothing is read twice."""

from __future__ import annotations

import pytest

from headrace.spark.runtime.checkpoint import take_over
from scene import record

pytestmark = pytest.mark.heavy


def test_another_filter_goes_on_from_where_the_query_was(scene, server):
    scene.topic("replaced_people")
    scene.sql(
        "CREATE TABLE replaced_people (id STRING PRIMARY KEY, age INT) "
        "WITH (kafka_topic='replaced_people', value_format='JSON', wrap_single_values=true);"
    )
    select = "TABLE replaced AS SELECT id, age FROM replaced_people WHERE age > {};"
    query_id = scene.create(f"CREATE {select.format(50)}")
    scene.write("replaced_people", record({"AGE": 60}, "a"), record({"AGE": 40}, "b"))
    scene.drained(query_id, "replaced_people")
    assert ages(scene, 1) == [60]

    scene.sql(f"CREATE OR REPLACE {select.format(30)}")
    scene.write("replaced_people", record({"AGE": 45}, "c"))
    assert ages(scene, 2) == [60, 45]
    scene.drained(query_id, "replaced_people")

    # The server dies when the old state is gone and the new query has not read anything.
    engine = server.engine
    engine.queries.pause(query_id)
    take_over(engine.env.spark, engine.queries.get(query_id).checkpoint)
    engine.queries.resume(query_id)
    scene.write("replaced_people", record({"AGE": 70}, "d"))
    assert ages(scene, 3) == [60, 45, 70]


def ages(scene, count):
    return [value["AGE"] for value in scene.values("REPLACED", count)]
