"""Batches that get nowhere: ended, told and tried again, while all else goes on."""

from __future__ import annotations

import threading

import httpx
import pytest
from pyspark.sql import functions as F

from headrace.client import ClientError
from headrace.kafka.ports import free_port
from headrace.spark.jobs import JobGroup
from headrace.spark.runtime.progress import TaskWatch
from scene import record
from server_process import ServerProcess, eventually

pytestmark = pytest.mark.heavy

# Comes to no end with one record, until it is mended.
FUNCTION = """
import os, time
from headrace.functions import udf

@udf
def ponder(x: str) -> str:
    while x == "evil" and not os.path.exists({mended!r}):
        time.sleep(0.05)
    return x
"""
STALLED = "made no progress"
# To divide a text among these there are more ways than anybody can try.
EVIL = "(a*)(a*)(a*)(a*)(a*)(a*)(a*)b"


@pytest.fixture
def mended(tmp_path):
    return tmp_path / "mended"


@pytest.fixture
def server_process(tmp_path, mended):
    extensions = tmp_path / "ext"
    extensions.mkdir()
    (extensions / "ponder.py").write_text(FUNCTION.format(mended=str(mended)))
    settings = {"ksql.extension.dir": str(extensions), "ksql.query.stall.timeout.ms": "10000"}
    ports = (free_port(), free_port(), free_port())
    process = ServerProcess(tmp_path / "data", ports, settings=settings)
    try:
        yield process
    finally:
        process.close()


def test_a_function_that_comes_to_no_end(server_process, mended):
    scene = server_process.scene()
    scene.topic("thoughts")
    scene.sql(
        "CREATE STREAM THOUGHTS (N INT, V STRING) "
        "WITH (KAFKA_TOPIC='thoughts', VALUE_FORMAT='JSON');"
    )
    pondered = scene.create("CREATE STREAM PONDERED AS SELECT N, PONDER(V) AS V FROM THOUGHTS;")
    scene.create("CREATE STREAM COPIED AS SELECT * FROM THOUGHTS;")
    scene.write("thoughts", record({"N": 1, "V": "good"}))
    assert scene.values("PONDERED", 1) == [{"N": 1, "V": "good"}]
    scene.write("thoughts", record({"N": 2, "V": "evil"}), record({"N": 3, "V": "late"}))

    def state():
        return next(q for q in scene.client.queries() if q["id"] == pondered)["state"]

    scene.wait(state, lambda state: state == "DEGRADED")
    explained = scene.sql(f"EXPLAIN {pondered};")[0]
    assert STALLED in explained["queryDescription"]["queryErrors"][-1]["errorMessage"]
    assert any(STALLED in warning["message"] for warning in explained["warnings"])
    described = scene.sql("DESCRIBE PONDERED EXTENDED;")[0]
    assert any(STALLED in warning["message"] for warning in described["warnings"])
    health = httpx.get(f"{server_process.url}/healthcheck").json()
    assert STALLED in str(health["details"]["queries"])
    scene.wait(server_process.told, lambda told: STALLED in told)
    # Neither another query nor an answer is held up for ever.
    assert len(scene.values("COPIED", 3)) == 3
    with pytest.raises(ClientError, match=STALLED):
        scene.pull("SELECT PONDER(V) FROM THOUGHTS;")
    pushed = "SELECT PONDER(V) FROM THOUGHTS EMIT CHANGES;"
    with pytest.raises(ClientError, match=STALLED), scene.client.stream(pushed) as rows:
        list(rows)
    mended.touch()
    assert [v["V"] for v in scene.values("PONDERED", 3)] == ["good", "evil", "late"]
    scene.wait(state, lambda state: state == "RUNNING")
    scene.close()


def test_an_expression_that_goes_back_without_end(scene):
    """It had held a core of Spark's for ever, for each of these queries."""
    scene.topic("letters")
    scene.sql(
        "CREATE STREAM LETTERS (N INT, V STRING) WITH (KAFKA_TOPIC='letters', VALUE_FORMAT='JSON');"
    )
    texts = ["aab", "a" * 500, "b"]
    scene.write("letters", *(record({"N": 1, "V": text}) for text in texts))
    call = f"REGEXP_EXTRACT('{EVIL}', V) AS FOUND, V LIKE V || '%' AS LIKED"
    wanted = [("aab", True), (None, True), ("b", True)]
    with scene.query(f"CREATE STREAM LETTERS_FOUND AS SELECT {call} FROM LETTERS;") as query:
        found = scene.values("LETTERS_FOUND", 3)
        assert [(v["FOUND"], v["LIKED"]) for v in found] == wanted
        (entry,) = scene.log(query, 1)
        assert f"takes too many steps with this text: {EVIL}" in str(entry.detail["cause"])
    assert scene.push(f"SELECT {call} FROM LETTERS EMIT CHANGES;", 3) == wanted
    assert scene.pull(f"SELECT {call} FROM LETTERS;") == wanted
    constant = f"REGEXP_EXTRACT('{EVIL}', '{texts[1]}') AS FOUND"
    assert scene.pull(f"SELECT V, {constant} FROM LETTERS;") == [(text, None) for text in texts]
    group = f"REGEXP_REPLACE(V, '{EVIL}', 'c')"
    rows = scene.push(
        f"SELECT {group} AS K, COUNT(*) FROM LETTERS GROUP BY {group} EMIT CHANGES;", 2
    )
    assert rows[-1] == ("c", 2)


def test_tasks_that_go_on_after_their_end_are_seen(server):
    """What Java does there is not to be interrupted; it ends by itself after a while."""
    spark = server.engine.env.spark
    jobs = JobGroup(spark.sparkContext, "an endless job")
    watch = TaskWatch(spark)
    text = F.repeat(F.lit("a"), F.col("id").cast("int") + 160)

    def run():
        with jobs.running(), pytest.raises(Exception, match="cancel"):
            spark.range(0, 1, 1, 1).where(text.rlike("a*a*a*a*b")).collect()

    thread = threading.Thread(target=run)
    thread.start()
    eventually(lambda: "an endless job" in watch.look().work, 30)
    jobs.end()
    thread.join(30)
    assert not thread.is_alive()
    seen = watch.look()
    assert "an endless job" not in seen.work
    (place,) = seen.unended.values()
    assert place.startswith("java.util.regex.")
    eventually(lambda: not watch.look().unended, 120)
