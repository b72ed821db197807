"""Topics that change under their queries: partitions, records deleted, a new one of the name."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from headrace.kafka.records import NewRecord, RecordWriter
from scene import Scene, record

pytestmark = pytest.mark.heavy

NOTICED = 30.0


def within(check, seconds: float = NOTICED) -> None:
    began = time.monotonic()
    while not check():
        assert time.monotonic() - began < seconds, "it did not come to pass"
        time.sleep(0.1)


def state(scene: Scene, query_id: str) -> str:
    return next(q["state"] for q in scene.client.queries() if q["id"] == query_id)


def explained(scene: Scene, query_id: str) -> tuple[list[str], list[str]]:
    """A query's errors and warnings."""
    (told,) = scene.sql(f"EXPLAIN {query_id};")
    errors = [error["errorMessage"] for error in told["queryDescription"]["queryErrors"]]
    return errors, [warning["message"] for warning in told["warnings"]]


def written(scene: Scene, topic: str) -> int:
    return sum(scene.admin.end_offsets(topic).values())


def delete_records(scene: Scene, topic: str, before: int) -> None:
    within(lambda: scene.admin.end_offsets(topic)[0] >= before)
    wanted = TopicPartition(topic, 0, before)
    for future in scene.admin._client.delete_records([wanted]).values():
        future.result(30)


def write_anew(scene: Scene, topic: str, *records: dict) -> None:
    """By a producer that does not know the topic from before."""
    with RecordWriter(scene.kafka) as writer:
        writer.write_all([NewRecord(topic, **r) for r in records])


def stream(scene: Scene, topic: str, **settings: str) -> str:
    scene.topic(topic, **settings)
    scene.sql(
        f"CREATE STREAM {topic} (k STRING KEY, n INT, word STRING) "
        f"WITH (kafka_topic='{topic}', value_format='JSON');"
    )
    return topic


def numbers(first: int, last: int) -> list[dict]:
    return [record({"n": n}, key=f"k{n % 5}") for n in range(first, last)]


def read(scene: Scene, topic: str) -> list[int]:
    return [json.loads(r.value)["N"] for r in scene._reader.read(topic)]


def test_new_partitions_are_read_from_their_beginning(scene):
    stream(scene, "growing")
    scene.topic("beside")
    scene.sql(
        "CREATE TABLE beside (k STRING PRIMARY KEY, m INT) "
        "WITH (kafka_topic='beside', value_format='JSON', wrap_single_value=true);"
    )
    scene.write("beside", record({"m": 7}, key="a"), record({"m": 8}, key="b"))
    with (
        scene.query("CREATE STREAM grown AS SELECT * FROM growing;") as copy,
        scene.query(
            "CREATE TABLE grown_n AS SELECT k, COUNT(*) AS c FROM growing GROUP BY k;"
        ) as n,
        scene.query(
            "CREATE STREAM grown_m AS SELECT g.k, n, m FROM growing g JOIN beside b ON g.k = b.k;"
        ) as join,
        scene.query(
            "CREATE STREAM grown_late AS SELECT * FROM growing;", auto__offset__reset="latest"
        ) as late,
    ):
        all_four = (copy, n, join, late)
        scene.sql(f"PAUSE {late};")  # it has not read anything yet when the topic grows
        scene.write("growing", record({"n": 1}, key="a"))
        scene.records("GROWN", 1)
        scene.records("GROWN_M", 1)
        scene.admin.add_partitions("growing", 3)
        write_anew(
            scene,
            "growing",
            record({"n": 2}, key="b", partition=2),
            record({"n": 3}, key="a", partition=1),
        )
        within(lambda: written(scene, "GROWN") == written(scene, "GROWN_M") == 3)
        within(lambda: sorted(scene.pull("SELECT * FROM grown_n;")) == [("a", 2), ("b", 1)])
        assert {v["N"] * v["M"] for v in scene.values("GROWN_M", 3)} == {7, 16, 21}

        scene.sql(f"RESUME {late};")
        within(lambda: written(scene, "GROWN_LATE") == 3)
        for query_id in (copy, n, join):  # as after a restart: they go on from their checkpoints
            scene.sql(f"PAUSE {query_id};")
        scene.admin.add_partitions("growing", 4)
        write_anew(scene, "growing", record({"n": 4}, key="b", partition=3))
        for query_id in (copy, n, join):
            scene.sql(f"RESUME {query_id};")
        for topic in ("GROWN", "GROWN_M", "GROWN_LATE"):
            within(lambda: written(scene, topic) == 4)  # noqa: B023
        within(lambda: sorted(scene.pull("SELECT * FROM grown_n;")) == [("a", 2), ("b", 2)])
        assert {state(scene, q) for q in all_four} == {"RUNNING"}
        assert all(explained(scene, q)[0] == [] for q in all_four)
        (warning,) = explained(scene, join)[1]
        assert "'growing': 4, 'beside': 1" in warning and "stay right" in warning


def test_records_deleted_before_they_were_read_are_told(scene):
    stream(scene, "vanishing")
    scene.write("vanishing", *numbers(0, 20))
    with scene.query("CREATE STREAM vanished AS SELECT * FROM vanishing;") as query_id:
        scene.records("VANISHED", 20)
        scene.sql(f"PAUSE {query_id};")
        scene.write("vanishing", *numbers(20, 60))
        delete_records(scene, "vanishing", 50)
        scene.sql(f"RESUME {query_id};")
        within(lambda: written(scene, "VANISHED") == 30)
        assert read(scene, "VANISHED") == [*range(20), *range(50, 60)]
        (entry,) = scene.log(query_id, 1)
        told = entry.detail
        assert (told["topic"], told["partition"]) == ("vanishing", 0)
        assert (told["firstOffset"], told["lastOffset"]) == (20, 49)
        (warning,) = explained(scene, query_id)[1]
        assert "has lost 30 records so far" in warning and "offsets 20 to 49" in warning
        (described,) = scene.sql("DESCRIBE vanished EXTENDED;")
        assert warning in [w["message"] for w in described["warnings"]]


def test_records_deleted_under_a_running_query_are_either_read_or_told(scene):
    """Of what is deleted, some may have been fetched before: a consumer holds a MiB at most."""
    stream(scene, "melting")
    word = "x" * 2000
    scene.write("melting", *(record({"n": n, "word": word}, key="k") for n in range(3000)))
    with scene.query(
        "CREATE STREAM melted AS SELECT k, n, LEN(word) AS word FROM melting;",
        max__offsets__per__trigger=50,
    ) as query_id:
        within(lambda: written(scene, "MELTED") > 0)
        delete_records(scene, "melting", 2900)
        within(lambda: 2999 in read(scene, "MELTED"), 60)
        (entry,) = scene.log(query_id, 1)
        lost = range(entry.detail["firstOffset"], entry.detail["lastOffset"] + 1)
        assert lost[-1] == 2899 and len(lost) > 1000
        # A record that was in the batch which failed may have been written all the same.
        found = set(read(scene, "MELTED"))
        assert set(range(3000)) - found <= set(lost)
        assert found >= {*range(lost[0]), *range(2900, 3000)}
        assert state(scene, query_id) == "RUNNING"


def test_exactly_once_stops_and_goes_on_when_it_is_told_to(scene):
    stream(scene, "dear")
    scene.write("dear", *numbers(0, 10))
    exactly = {"processing__guarantee": "exactly_once_v2"}
    with scene.query("CREATE STREAM dearer AS SELECT * FROM dear;", **exactly) as query_id:
        within(lambda: len(read(scene, "DEARER")) == 10)
        scene.sql(f"PAUSE {query_id};")
        scene.write("dear", *numbers(10, 30))
        delete_records(scene, "dear", 25)
        scene.sql(f"RESUME {query_id};")
        within(lambda: state(scene, query_id) == "ERROR")
        errors, _ = explained(scene, query_id)
        assert "offsets 10 to 24" in errors[-1] and f"RESUME {query_id};" in errors[-1]
        scene.sql(f"RESUME {query_id};")
        within(lambda: len(read(scene, "DEARER")) == 15)
        assert read(scene, "DEARER") == [*range(10), *range(25, 30)]
        assert state(scene, query_id) == "RUNNING"
        assert scene.log(query_id, 1)[0].detail["lastOffset"] == 24


def test_a_topic_that_is_made_again_is_read_from_its_beginning(scene):
    stream(scene, "reborn")
    scene.write("reborn", *numbers(0, 10))
    with (
        scene.query("CREATE STREAM reread AS SELECT * FROM reborn;") as query_id,
        scene.query("CREATE STREAM onward AS SELECT * FROM reread;"),
    ):
        scene.records("REREAD", 10)
        scene.admin.delete("reborn")
        scene.topic("reborn")
        scene.write("reborn", *numbers(100, 130))  # more than the query has seen of the old one
        within(lambda: set(range(100, 130)) <= set(read(scene, "REREAD")), 60)
        within(lambda: set(range(100, 130)) <= set(read(scene, "ONWARD")))
        (entry,) = scene.log(query_id, 1)
        told = entry.detail
        assert (told["topic"], told["partition"], told["lastOffset"]) == ("reborn", 0, None)
        assert 10 <= told["firstOffset"] <= 30  # the new one may have been read for some seconds
        assert "was deleted and made again" in explained(scene, query_id)[1][0]
        within(lambda: state(scene, query_id) == "RUNNING")


def test_a_query_whose_topic_is_gone_is_degraded_until_there_is_one(scene):
    stream(scene, "missing_one")
    with scene.query("CREATE STREAM missed AS SELECT * FROM missing_one;") as query_id:
        scene.admin.delete("missing_one")
        within(lambda: state(scene, query_id) == "DEGRADED", 60)
        reason = f"Query {query_id} is DEGRADED: Topic 'missing_one' does not exist in Kafka."
        (listed,) = scene.sql("SHOW QUERIES;")
        assert reason in [w["message"] for w in listed["warnings"]]
        (described,) = scene.sql("DESCRIBE missed;")
        assert reason in [w["message"] for w in described["warnings"]]
        scene.topic("missing_one")
        scene.write("missing_one", *numbers(0, 3))
        within(lambda: written(scene, "MISSED") == 3, 90)
        assert state(scene, query_id) == "RUNNING"


def test_a_checkpoint_that_a_wiped_kafka_left_behind_is_not_gone_on_from(scene, server):
    """A query of the same id, over a topic of the same name, in another Kafka."""
    stream(scene, "wiped")
    scene.write("wiped", *numbers(0, 10))
    counts = "SELECT k, COUNT(*) AS c FROM wiped GROUP BY k;"
    with scene.query(f"CREATE TABLE wiped_a AS {counts}") as query_id:
        scene.drained(query_id, "wiped")
        (paused,) = scene.sql(f"PAUSE {query_id};")
        left = Path(server.engine.queries.get(query_id).checkpoint)
        next_id = f"CTAS_WIPED_B_{paused['commandSequenceNumber'] + 1}"
        shutil.copytree(left, left.parent / next_id)
        known = left.parent / next_id / "topics.json"
        told = json.loads(known.read_text())
        known.with_name(".topics.json.crc").unlink(missing_ok=True)
        known.write_text(json.dumps({**told, "life": "another", "topics": {"wiped": "another"}}))
        with scene.query(f"CREATE TABLE wiped_b AS {counts}") as new_id:
            assert new_id == next_id
            found = {(f"k{i}", 2) for i in range(5)}
            within(lambda: set(scene.pull("SELECT * FROM wiped_b;")) == found)
