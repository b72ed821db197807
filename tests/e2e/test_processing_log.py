"""What happens to records that fail: an entry each, and the query goes on."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace

import httpx
import pytest

from scene import record

pytestmark = pytest.mark.heavy

WHY = "__headrace.errors."


@pytest.fixture(scope="module")
def numbers(scene):
    """A stream of numbers, of which some records cannot be read."""
    scene.topic("numbers")
    scene.write(
        "numbers",
        record({"A": 10, "B": 5}, key="x", at=1000),
        record({"A": 10, "B": 0}, key="y", at=2000),
        record(b"{not json", key="bad", headers=(("h", b"1"), ("n", None)), at=3000),
        record({"A": None, "B": 1}, key="z", at=4000),
    )
    scene.sql(
        """CREATE STREAM NUMBERS (K STRING KEY, A INT, B INT)
             WITH (kafka_topic='numbers', value_format='JSON');"""
    )


def test_the_log_is_a_stream_in_ksqldbs_schema(scene):
    fields = {
        f["name"]: f["schema"] for f in scene.client.describe("KSQL_PROCESSING_LOG")["fields"]
    }
    assert list(fields) == ["LOGGER", "LEVEL", "TIME", "MESSAGE"]
    kinds = {f["name"]: f["schema"] for f in fields["MESSAGE"]["fields"]}
    assert list(kinds) == [
        "TYPE",
        "DESERIALIZATIONERROR",
        "RECORDPROCESSINGERROR",
        "PRODUCTIONERROR",
        "SERIALIZATIONERROR",
        "KAFKASTREAMSTHREADERROR",
    ]


def test_a_record_that_cannot_be_read_is_skipped_and_logged(scene, numbers):
    with scene.query("CREATE STREAM HALVES AS SELECT K, A / B AS Q, A FROM NUMBERS;") as query_id:
        assert [v["Q"] for v in scene.values("HALVES", 3)] == [2, None, None]
        entries = scene.log(query_id, 2)
    unread = next(e for e in entries if e.message["type"] == 0)
    assert unread.logger == f"processing.{query_id}.NUMBERS.Source"
    detail = unread.detail
    place = detail["topic"], detail["partition"], detail["offset"]
    assert detail["target"] == "value" and place == ("numbers", 0, 2)
    assert detail["errorMessage"] and detail["cause"] and detail["recordB64"] is None
    failed = next(e for e in entries if e.message["type"] == 1)
    assert failed.detail == {
        "errorMessage": "Error computing expression (A / B) for column Q with index 0",
        "record": None,
        "cause": ["/ by zero"],
    }


def test_entries_hold_the_record_if_told_so(scene, numbers):
    with scene.query(
        "CREATE STREAM SHOWN AS SELECT K, A / B AS Q, A FROM NUMBERS;",
        ksql__logging__processing__rows__include=True,
    ) as query_id:
        entries = scene.log(query_id, 2)
    details = {e.message["type"]: e.detail for e in entries}
    assert details[0]["recordB64"] == b64encode(b"{not json").decode()
    assert json.loads(details[1]["record"]) == ["y", 10, 0]


def test_a_failed_predicate_skips_the_record(scene, numbers):
    with scene.query(
        "CREATE STREAM WHOLE AS SELECT K, A, B FROM NUMBERS WHERE A / B > 0;"
    ) as query_id:
        assert scene.values("WHOLE", 1) == [{"A": 10, "B": 5}]
        entries = scene.log(query_id, 2)
    told = {e.message["type"]: e.detail["errorMessage"] for e in entries}
    assert told[1] == "Error evaluating predicate ((A / B) > 0)"


def test_a_part_that_fails_alone_is_null_and_the_rest_goes_on(scene, numbers):
    """As arguments of functions and items of arrays, with one entry each; not if not evaluated."""
    with scene.query(
        """CREATE STREAM PARTS AS SELECT K,
             COALESCE(CAST(K AS INT), -1) AS NUMBER,
             ARRAY[CAST(K AS INT), A] AS BOTH,
             CASE WHEN K = 'x' THEN COALESCE(CAST(K AS INT), A) ELSE B END AS CHOSEN
           FROM NUMBERS;"""
    ) as query_id:
        values = scene.values("PARTS", 3)
        entries = scene.log(query_id, 8)
    assert [(v["NUMBER"], v["BOTH"], v["CHOSEN"]) for v in values] == [
        (-1, [None, 10], 10),
        (-1, [None, 10], 0),
        (-1, [None, None], 1),
    ]
    columns = [
        e.detail["errorMessage"].split(" for column ")[1] for e in entries if e.message["type"]
    ]
    assert sorted(columns) == [
        *["BOTH with index 1"] * 3,
        "CHOSEN with index 2",
        *["NUMBER with index 0"] * 3,
    ]


def test_failures_in_front_of_an_aggregate_are_logged(scene, numbers):
    """Once where Spark aggregates itself, and once where a kernel does."""
    for name, cache in (("SUMS", 10_000_000), ("SUMS_ONE_BY_ONE", 0)):
        with scene.query(
            f"CREATE TABLE {name} AS SELECT K, SUM(A / B) AS S FROM NUMBERS GROUP BY K;",
            ksql__streams__cache__max__bytes__buffering=cache,
        ) as query_id:
            entries = scene.log(query_id, 2)
            assert sorted(e.message["type"] for e in entries) == [0, 1], name


def test_records_too_late_for_their_window_are_counted(scene):
    scene.topic("belated")
    scene.sql(
        "CREATE STREAM BELATED (K STRING KEY, N INT, M INT) WITH (KAFKA_TOPIC='belated', "
        "VALUE_FORMAT='JSON');"
    )
    times = [0, 60_000, 1_000, 2_000, 61_000]
    scene.write("belated", *[record({"N": 1}, key="k", at=at) for at in times])
    with scene.query(
        """CREATE TABLE PUNCTUAL AS SELECT K, COUNT(*) AS C FROM BELATED
             WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 5 SECONDS) GROUP BY K;"""
    ) as query_id:
        (entry,) = scene.log(query_id, 1)
        assert entry.message["type"] == 1
        assert entry.detail["errorMessage"].startswith("Skipping 2 records for expired window")
        assert entry.logger == f"processing.{query_id}.Aggregate"


def test_a_text_that_is_no_base64_is_logged(scene, numbers):
    with scene.query(
        "CREATE STREAM DECODED AS SELECT K, CAST(K AS BYTES) AS B, A FROM NUMBERS;"
    ) as query_id:
        assert [v["B"] for v in scene.values("DECODED", 3)] == [None] * 3
        entries = scene.log(query_id, 4)
    causes = [e.detail["cause"] for e in entries if e.message["type"] == 1]
    assert causes == [["Illegal base64 text"]] * 3


def test_failures_behind_a_join_are_logged(scene, numbers):
    scene.topic("divisors")
    scene.write("divisors", *(record({"D": 0, "E": 1}, key=k, at=1) for k in ("x", "y", "z")))
    scene.sql(
        """CREATE TABLE DIVISORS (K STRING PRIMARY KEY, D INT, E INT)
             WITH (kafka_topic='divisors', value_format='JSON');"""
    )
    with scene.query(
        """CREATE STREAM QUOTIENTS AS SELECT N.K AS K, A / D AS Q, B
             FROM NUMBERS N JOIN DIVISORS D ON N.K = D.K;"""
    ) as query_id:
        assert [v["Q"] for v in scene.values("QUOTIENTS", 3)] == [None] * 3
        entries = scene.log(query_id, 4)
    assert sorted(e.message["type"] for e in entries) == [0, 1, 1, 1]


def test_a_row_that_cannot_be_written_is_skipped_and_logged(scene, server, numbers):
    """Here the sink's schema wants a value where a row has none."""
    fields = [{"name": "A", "type": "int"}, {"name": "B", "type": "int"}]
    schema = {"type": "record", "name": "Row", "fields": fields}
    registered = httpx.post(
        f"{server.registry}/subjects/strict/versions", json={"schema": json.dumps(schema)}
    ).json()
    with scene.query(
        f"""CREATE STREAM STRICT WITH (value_format='AVRO', value_schema_id={registered["id"]})
              AS SELECT K, A, B FROM NUMBERS;"""
    ) as query_id:
        scene.records("STRICT", 2)
        entries = scene.log(query_id, 2)
    detail = next(e.detail for e in entries if e.message["type"] == 3)
    assert (detail["target"], detail["topic"]) == ("value", "STRICT")
    assert detail["errorMessage"] and detail["record"] is None


def test_a_row_without_a_time_is_skipped_and_logged(scene, numbers):
    with scene.query(
        "CREATE STREAM STAMPED WITH (timestamp='T') AS "
        "SELECT K, CAST(A AS BIGINT) AS T, B FROM NUMBERS;"
    ) as query_id:
        assert [r.timestamp for r in scene.records("STAMPED", 2)] == [10, 10]
        entries = scene.log(query_id, 2)
    told = {e.message["type"]: e.detail["errorMessage"] for e in entries}
    assert told[1] == "Error writing row with extracted timestamp"


def test_a_record_that_the_broker_refuses_does_not_stop_the_query(scene):
    scene.topic("texts")
    scene.topic("SMALL", max_message_bytes="2000")
    scene.write("texts", *(record({"N": n, "T": "x" * n}, at=n) for n in (1, 5000, 2, 1500, 3)))
    scene.sql(
        "CREATE STREAM TEXTS (N INT, T STRING) WITH (kafka_topic='texts', value_format='JSON');"
    )
    with scene.query(
        "CREATE STREAM SMALL AS SELECT * FROM TEXTS;", ksql__error__dead__letter__topic="unwritten"
    ) as query_id:
        written = scene.values("SMALL", 4)
        (entry,) = scene.log(query_id, 1)
        (unwritten,) = scene.records("unwritten", 1)
        assert sorted(v["N"] for v in written) == [1, 2, 3, 1500]
        assert entry.message["type"] == 2
        assert entry.detail["errorMessage"].startswith("Error writing to topic SMALL: ")
        assert json.loads(unwritten.value)["N"] == 5000
        scene.write("texts", record({"N": 4, "T": "later"}, at=4))
        assert scene.values("SMALL", 5)[-1] == {"N": 4, "T": "later"}


@pytest.fixture(scope="module")
def skipped(scene, numbers):
    """The records that a query skipped, and its id."""
    with scene.query(
        "CREATE STREAM POSITIVE AS SELECT K, A, B FROM NUMBERS WHERE A / B > 0;",
        ksql__error__dead__letter__topic="skipped",
    ) as query_id:
        found = sorted(scene.records("skipped", 2), key=lambda r: r.timestamp)
    return found, query_id


def test_skipped_records_go_to_the_dead_letter_topic_as_they_were(skipped):
    (by_zero, unread), query_id = skipped
    assert (unread.key, unread.value, unread.timestamp) == (b"bad", b"{not json", 3000)
    assert unread.headers[:2] == (("h", b"1"), ("n", None))
    added = dict(unread.headers[2:])
    assert added.pop(WHY + "reason")
    assert added == {
        WHY + "query": query_id.encode(),
        WHY + "step": b"NUMBERS.Source",
        WHY + "topic": b"numbers",
        WHY + "partition": b"0",
        WHY + "offset": b"2",
    }
    assert json.loads(by_zero.value) == {"A": 10, "B": 0}
    told = dict(by_zero.headers)
    assert (told[WHY + "step"], told[WHY + "reason"]) == (b"Filter", b"/ by zero")


def test_the_dead_letter_topic_can_be_replayed_with_a_plain_create_stream(scene, skipped):
    scene.sql(
        f"""CREATE STREAM REPLAYED (K STRING KEY, A INT, B INT, WHY BYTES HEADER('{WHY}reason'))
              WITH (kafka_topic='skipped', value_format='JSON');"""
    )
    rows = scene.pull("SELECT K, A, B, FROM_BYTES(WHY, 'utf8') FROM REPLAYED;")
    assert rows == [("y", 10, 0, "/ by zero")]


def test_skipped_records_are_not_kept_by_default(scene, server, numbers):
    with scene.query("CREATE STREAM UNKEPT AS SELECT K, A, B FROM NUMBERS;") as query_id:
        scene.records("UNKEPT", 3)
        assert "headers" not in server.engine.queries.get(query_id).spark_plan()


def test_push_queries_log_their_failures_too(scene, numbers):
    with scene.client.stream("SELECT A / B FROM NUMBERS EMIT CHANGES;") as rows:
        query_id = rows.query_id
        assert [tuple(row) for _, row in zip(range(3), rows, strict=False)] == [
            (2,),
            (None,),
            (None,),
        ]
        entries = scene.log(query_id, 2)
    assert sorted(e.message["type"] for e in entries) == [0, 1]


def test_without_a_log_topic_nothing_breaks(scene, server, numbers):
    from headrace.engine.engine import Engine
    from headrace.model.requests import Request
    from headrace.model.settings import Settings

    quiet = {"ksql.service.id": "quiet_", "ksql.logging.processing.topic.auto.create": "false"}
    engine = Engine(replace(server.engine.env, settings=Settings(quiet)))
    engine.open()
    try:
        create = """CREATE STREAM N (K STRING KEY, A INT, B INT)
            WITH (kafka_topic='numbers', value_format='JSON');"""
        select = "CREATE STREAM QUIET AS SELECT K, A / B AS Q, A FROM N;"
        engine.execute(Request(create + select, {"auto.offset.reset": "earliest"}))
        assert [v["Q"] for v in scene.values("QUIET", 3)] == [2, None, None]
        assert not scene.admin.exists("quiet_ksql_processing_log")
    finally:
        engine.close()


RECORDS = 100_000


def test_exactly_one_entry_for_each_failure_and_exactly_the_unreadable_ones_kept(scene):
    """Of many records, 1 % fail an expression and 1 % cannot be read."""
    scene.topic("many", partitions=2)
    records = []
    for i in range(RECORDS):
        if i % 100 == 7:
            records.append(
                record(b"\xff garbage %d" % i, key=str(i), at=i + 1, headers=(("i", b"x"),))
            )
        else:
            records.append(record({"I": i, "D": 0 if i % 100 == 8 else 1}, key=str(i), at=i + 1))
    scene.write("many", *records)
    scene.sql(
        """CREATE STREAM MANY (K STRING KEY, I INT, D INT)
             WITH (kafka_topic='many', value_format='JSON');"""
    )
    share = RECORDS // 100
    with scene.query(
        "CREATE STREAM ALL_OF_THEM AS SELECT K, I, I / D AS Q FROM MANY;",
        ksql__error__dead__letter__topic="many-skipped",
    ) as query_id:
        written = scene.records("ALL_OF_THEM", RECORDS - share)
        entries = scene.log(query_id, 2 * share)
        skipped = scene.records("many-skipped", share)
    for kind in (0, 1):
        assert sum(e.message["type"] == kind for e in entries) == share
    values = {int(r.key): json.loads(r.value) for r in written}
    assert values == {
        i: {"I": i, "Q": None if i % 100 == 8 else i} for i in range(RECORDS) if i % 100 != 7
    }
    assert {int(r.key): (r.value, r.timestamp, r.headers[0]) for r in skipped} == {
        i: (b"\xff garbage %d" % i, i + 1, ("i", b"x")) for i in range(7, RECORDS, 100)
    }
