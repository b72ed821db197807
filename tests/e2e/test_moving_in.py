"""A recorded ksqlDB moves in: beside it first, compared topic by topic, then in its place."""

from __future__ import annotations

import json

import httpx
import pytest

import ksqldb_shop
from headrace.cli.main import main
from recorded_ksqldb import RecordedKsqlDb
from scene import record

pytestmark = pytest.mark.heavy

SCRIPT = """DEFINE source = 'BIG';
DEFINE target = 'CITIES';
SET 'auto.offset.reset' = 'earliest';
CREATE TABLE ${target} AS SELECT city, COUNT(*) AS n FROM ${source} GROUP BY city EMIT CHANGES;
"""


@pytest.fixture
def headrace(capsys, scene, server):
    """The command line: exit code, output, errors."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([*arguments, "--kafka", server.kafka, "--schema-registry", server.registry])
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def register(registry: str, subject: str, schema: str, type_: str) -> int:
    body = {"schema": schema, "schemaType": type_}
    answer = httpx.post(f"{registry}/subjects/{subject}/versions", json=body)
    return int(answer.raise_for_status().json()["id"])


def test_a_parallel_run_holds_the_same(headrace, scene, server, tmp_path):
    ksqldb_shop.write_records(
        scene.kafka,
        lambda subject, schema, type_: register(server.registry, subject, schema, type_),
    )
    ksqldb_shop.shop().write(scene.kafka)
    importing = ("import", "--command-topic", "--to", server.url, "--suffix", "_HR")

    code, dry, _ = headrace(*importing, "--dry-run")
    assert code == 0 and "Cannot move" not in dry
    assert scene.client.queries() == []

    code, out, err = headrace(*importing)
    assert code == 0, err
    assert "Sending 26 statements" in out
    queries = scene.client.queries()
    assert len(queries) == 12 and len(scene.client.streams()) + len(scene.client.tables()) == 23

    for topic in (*ksqldb_shop.TABLES, *ksqldb_shop.STREAMS):
        # Two queries write to the archive, each in its own order.
        order = ("--any-order",) if topic == "shop_archive" else ()
        compare = ("compare", topic, f"{topic}_HR", "--timestamps", "--wait", "60")
        code, out, err = headrace(*compare, *order)
        assert code == 0, f"{topic}: {out}{err}"
        assert "They hold the same" in out

    # Once more: nothing is doubled.
    code, out, err = headrace(*importing)
    assert code == 0 and "the server has it all" in out, out + err
    assert scene.client.queries() == queries

    # A script with variables reads what was imported before.
    script = tmp_path / "cities.sql"
    script.write_text(SCRIPT)
    code, out, err = headrace("import", str(script), "--to", server.url, "--start", "earliest")
    assert code == 0, out + err
    cities = scene.wait(lambda: scene.all("CITIES"), lambda records: len(records) >= 2)
    assert {r.key: json.loads(r.value) for r in cities} == {b"Ulm": {"N": 1}, b"Bonn": {"N": 1}}


def test_queries_go_on_where_ksqldb_had_got_to(headrace, scene, server):
    scene.topic("cut_orders", partitions=2)
    for partition in (0, 1):
        scene.write(
            "cut_orders",
            *(
                record({"A": n, "B": "x"}, key="k", at=n + 1, partition=partition)
                for n in range(10)
            ),
        )
    db = RecordedKsqlDb("cut_")
    db.source(
        "STREAM",
        "CUT",
        "K STRING KEY, A INTEGER, B STRING",
        "`K` STRING KEY, `A` INTEGER, `B` STRING",
        "KAFKA_TOPIC='cut_orders', VALUE_FORMAT='JSON'",
    )
    copy = db.query(
        "STREAM", "CUT_COPY", "SELECT * FROM CUT", "`K` STRING KEY, `A` INTEGER, `B` STRING"
    )
    total = db.query(
        "TABLE", "CUT_SUM", "SELECT K, SUM(A) S FROM CUT GROUP BY K", "`K` STRING KEY, `S` INTEGER"
    )
    db.write(scene.kafka)
    db.commit(scene.kafka, copy, {"cut_orders": {0: 7, 1: 9}})
    db.commit(scene.kafka, total, {"cut_orders": {0: 10, 1: 10}})
    importing = ("import", "--command-topic", "--service-id", "cut_", "--to", server.url)

    # While ksqlDB runs, both would write to the same topics.
    ksqldb = scene.kafka.consumer(group_id=db.group(copy))
    ksqldb.subscribe(["cut_orders"])
    scene.wait(lambda: ksqldb.poll(0.1) and scene.admin.members(db.group(copy)), bool)
    code, _, err = headrace(*importing)
    assert code == 1 and "Nothing was sent: ksqlDB still runs 1 of these queries" in err
    ksqldb.close()
    scene.wait(lambda: scene.admin.members(db.group(copy)), lambda members: members == 0)

    code, out, err = headrace(*importing)
    assert code == 0, out + err
    assert 'Its query begins at {"cut_orders": {"0": 7, "1": 9}}.' in out
    assert "Its state is built anew from the beginning of topic 'cut_orders'." in out
    assert [v["A"] for v in scene.values("CUT_COPY", 4)] in ([7, 8, 9, 9], [9, 7, 8, 9])
    assert scene.wait(lambda: scene.all("CUT_SUM"), bool)[-1].value == b'{"S":90}'

    code, out, _ = headrace(*importing)
    assert code == 0 and "the server has it all" in out
    scene.write("cut_orders", record({"A": 100, "B": "y"}, key="k", at=20, partition=0))
    assert [v["A"] for v in scene.values("CUT_COPY", 5)][-1] == 100

    # A topic that is gone takes the statements along that need it, and nothing else is sent.
    db.source(
        "STREAM", "LOST", "A INTEGER, B INTEGER", "`A` INTEGER, `B` INTEGER",
        "KAFKA_TOPIC='cut_lost', PARTITIONS=1, VALUE_FORMAT='JSON'",
    )  # fmt: skip
    db.query("STREAM", "LOST_COPY", "SELECT * FROM LOST", "`A` INTEGER, `B` INTEGER")
    db.query("STREAM", "CUT_AGAIN", "SELECT * FROM CUT", "`K` STRING KEY, `A` INTEGER, `B` STRING")
    db.service_id = "lost_"
    db.write(scene.kafka)
    lost = ("import", "--command-topic", "--service-id", "lost_", "--to", server.url)
    code, out, err = headrace(*lost)
    assert code == 1 and "Its topic 'cut_lost' is gone from Kafka" in out
    assert "It needs stream LOST, which cannot move." in out
    assert "Nothing was sent: 2 cannot move" in err
    assert not scene.admin.exists("CUT_AGAIN")
    code, out, err = headrace(*lost, "--leave-out")
    assert code == 0 and "Sending 1 statements" in out, out + err
    assert scene.admin.exists("CUT_AGAIN") and not scene.admin.exists("cut_lost")
