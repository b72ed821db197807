"""A micro-batch that runs again comes to the same state and says the same, whatever it calls."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlparse

import pytest

from headrace.kafka.records import RecordReader
from scene import Scene, record

pytestmark = pytest.mark.heavy

KEYS = 5
QUERIES = {
    "kernel": "SELECT k, EARLIEST_BY_OFFSET(UUID()) AS u, COLLECT_LIST(RANDOM()) AS r, "
    "COLLECT_LIST(UUID()) AS us, LATEST_BY_OFFSET(UNIX_TIMESTAMP()) AS t, "
    "LATEST_BY_OFFSET(UNIX_DATE()) AS d FROM repeated WHERE RANDOM() < 0.8 GROUP BY k",
    "native": "SELECT k, MAX(RANDOM()) AS most, MIN(UNIX_TIMESTAMP()) AS t, COUNT(*) AS c "
    "FROM repeated WHERE RANDOM() < 0.8 GROUP BY k",
    "sessions": "SELECT k, COLLECT_LIST(UUID()) AS us, EARLIEST_BY_OFFSET(RANDOM()) AS r "
    "FROM repeated WINDOW SESSION (5 SECONDS) GROUP BY k",
}


@pytest.fixture(scope="module")
def sources(scene: Scene):
    scene.topic("repeated")
    scene.sql(
        "CREATE STREAM repeated (k STRING KEY, n INT) "
        "WITH (kafka_topic='repeated', value_format='JSON', wrap_single_values=true);"
    )
    times = range(1_700_000_000_000, 1_700_000_040_000, 1000)
    scene.write("repeated", *(record({"N": i}, f"k{i % KEYS}", at=t) for i, t in enumerate(times)))


def written(scene: Scene, topic: str) -> list[tuple[bytes, bytes]]:
    """All records of the topic; a tombstone's value is empty."""
    return [(r.key or b"", r.value or b"") for r in RecordReader(scene.kafka).read(topic)]


@pytest.mark.parametrize("name", QUERIES)
def test_a_batch_that_runs_again_gives_the_same_rows(scene, server, sources, name):
    sink = f"REPEATED_{name.upper()}"
    query_id = scene.create(f"CREATE TABLE {sink} AS {QUERIES[name]};")
    scene.drained(query_id, "repeated")
    engine = server.engine
    engine.queries.pause(query_id)
    before = written(scene, sink)
    assert len({key for key, _ in before}) >= KEYS - 1
    # As if the server had died after it had written, and before it could say so.
    checkpoint = Path(urlparse(engine.queries.get(query_id).checkpoint).path)
    for log, first in (("commits", 0), ("offsets", 1)):
        for file in (checkpoint / log).iterdir():
            number = int(file.name.strip(".").removesuffix(".crc"))
            if number >= first:
                file.unlink()
    engine.queries.resume(query_id)
    twice = scene.wait(lambda: written(scene, sink), lambda rows: len(rows) >= 2 * len(before))
    assert sorted(twice[len(before) :]) == sorted(before)
    for _, value in before:
        row = json.loads(value) if value else {}
        for column in ("US", "R"):
            listed = row.get(column)
            if isinstance(listed, list):
                assert len(set(listed)) == len(listed), "records differ from each other"
    scene.sql(f"TERMINATE {query_id};")


def test_what_cannot_be_repeated_is_refused_where_it_has_to(scene, sources):
    text = "SELECT k, COLLECT_LIST(TRANSFORM(ARRAY[1], x => x + RANDOM())[1]) AS r FROM repeated"
    statement = f"CREATE TABLE repeated_never AS {text} GROUP BY k;"
    refused = scene.refused(statement, processing__guarantee="exactly_once_v2")
    assert "RANDOM() cannot be used here with processing.guarantee=exactly_once_v2" in refused
    with scene.query(statement):
        pass
