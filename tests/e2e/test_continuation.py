"""A client of a push query that comes back reads on where it was."""

from __future__ import annotations

import pytest

from headrace.client import RequestFailed
from scene import record

pytestmark = pytest.mark.heavy


def test_a_push_query_goes_on_after_its_last_token(scene):
    scene.topic("continued", partitions=2)
    scene.sql(
        "CREATE STREAM continued (id STRING KEY, v INT, w INT) "
        "WITH (kafka_topic='continued', value_format='JSON');"
    )
    query = scene.create(
        "CREATE STREAM continued_out WITH (partitions=2) AS SELECT id, v, w FROM continued;"
    )
    select = "SELECT v FROM continued_out EMIT CHANGES;"
    latest = {
        "auto.offset.reset": "latest",
        "ksql.query.push.v2.enabled": True,
        "ksql.query.push.v2.continuation.tokens.enabled": True,
    }

    def write(*values):
        scene.write("continued", *(record({"v": v}, f"k{v}") for v in values))

    with scene.client.stream(select, properties=latest) as rows:
        assert rows.query_id.startswith("SCALABLE_PUSH_QUERY")
        write(1, 2, 3)
        seen = []
        for row in rows:
            seen.append(row["V"])
            if len(seen) == 3:
                write(4)  # its rows come after the token of those
            if len(seen) == 4:
                break
        token = rows.continuation
    assert sorted(seen[:3]) == [1, 2, 3]
    assert token

    write(5, 6)  # nobody listens
    scene.drained(query, "continued")
    with scene.client.stream(select, properties=latest, continuation=token) as rows:
        again = {row["V"] for _, row in zip(range(3), rows, strict=False)}
    assert again == {4, 5, 6}  # at least once: the token was of the rows before 4

    with pytest.raises(RequestFailed, match="Couldn't decode push offset range token"):
        scene.client.stream(select, properties=latest, continuation="nonsense")
    scene.sql("DROP STREAM continued_out;")
