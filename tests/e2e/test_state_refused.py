"""State that was written for something else: the query says so and does not start empty."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.engine.queries.persistent import PersistentQuery
from headrace.engine.queries.program import persistent_program
from headrace.model.entities import QueryState
from headrace.model.settings import Settings
from scene import Scene, record

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def clicks(scene: Scene) -> str:
    scene.topic("refused_clicks")
    scene.sql(
        "CREATE STREAM refused_clicks (k STRING KEY, n BIGINT) "
        "WITH (kafka_topic='refused_clicks', value_format='JSON', wrap_single_values=true);"
    )
    scene.write("refused_clicks", *(record({"N": i}, f"k{i % 3}", at=i + 1) for i in range(9)))
    return "refused_clicks"


def restarted_as(server, query_id: str, other_id: str) -> PersistentQuery:
    """The query goes on from its own checkpoint, but as code or settings of another would run."""
    engine = server.engine
    query, other = engine.queries.get(query_id), engine.queries.get(other_id)
    assert query is not None and other is not None
    node = replace(other.planned.node, topic=query.planned.node.topic)
    own, checkpoint = query.build, query.checkpoint
    settings = Settings(other.overrides)
    engine.queries.pause(query_id)
    query.build = lambda planned, decoding, accept: persistent_program(
        engine.env, query_id, node, settings, {}, checkpoint, decoding
    )
    engine.queries.resume(query_id)
    query.build = own
    return query


SPARKS = "SELECT k, COUNT(*) AS c FROM refused_clicks GROUP BY k"
KERNEL = "SELECT k, COLLECT_LIST(n) AS c FROM refused_clicks GROUP BY k"
LATEST = "SELECT k, LATEST_BY_OFFSET(n) AS c FROM refused_clicks GROUP BY k"
PLAIN = "SELECT k, n AS c FROM refused_clicks"


@pytest.mark.parametrize(
    ("before", "after", "was", "now"),
    [
        (SPARKS, KERNEL, "Spark's aggregate", "aggregate 1: 0 carried, COLLECT_LIST"),
        (KERNEL, SPARKS, "aggregate 1: 0 carried, COLLECT_LIST", "Spark's aggregate"),
        (KERNEL, LATEST, "COLLECT_LIST", "LATEST_BY_OFFSET"),
        (KERNEL, PLAIN, "COLLECT_LIST", "nothing"),
    ],
)
def test_state_of_another_kind_is_refused(scene, server, clicks, before, after, was, now):
    kind = "STREAM" if after == PLAIN else "TABLE"
    with (
        scene.query(f"CREATE TABLE refused_a AS {before};") as a,
        scene.query(f"CREATE {kind} refused_b AS {after};") as b,
    ):
        scene.drained(a, clicks)
        written = scene.admin.end_offsets("REFUSED_A")
        query = restarted_as(server, a, b)
        assert query.state is QueryState.ERROR
        told = query.errors[-1].error_message
        assert told.startswith("The query's state was written for '")
        before_words, _, after_words = told.partition(" and cannot be read as ")
        assert was in before_words and now in after_words
        assert "Terminate the query and create it again" in told
        assert scene.admin.end_offsets("REFUSED_A") == written
        # As it was it goes on where it stood.
        server.engine.queries.pause(a)
        server.engine.queries.resume(a)
        scene.write(clicks, record({"N": 100}, "k0", at=100))
        scene.drained(a, clicks)
        assert query.state is QueryState.RUNNING
    scene.sql(f"DROP {kind} refused_b DELETE TOPIC; DROP TABLE refused_a DELETE TOPIC;")
