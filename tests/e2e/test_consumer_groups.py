"""The consumer group of a query: what lag tools see of it, and what DESCRIBE … EXTENDED tells."""

from __future__ import annotations

import httpx
import pytest

from scene import record

pytestmark = pytest.mark.heavy

GROUP = "_confluent-ksql-default_query_"


def test_offsets_are_committed_as_long_as_there_is_the_query(scene):
    scene.topic("grouped", partitions=2)
    scene.sql(
        "CREATE STREAM grouped (v INT, w INT) WITH (kafka_topic='grouped', value_format='JSON');"
    )
    query = scene.create("CREATE STREAM grouped_out AS SELECT v FROM grouped;")
    committed(scene, query, {"grouped": {0: 0, 1: 0}})

    good = [record({"v": i}, partition=i % 2) for i in range(6)]
    scene.write("grouped", *good, record(b"{broken", partition=0))
    committed(scene, query, {"grouped": {0: 4, 1: 3}})

    told = scene.wait(
        lambda: figures(scene, "grouped_out"), lambda seen: seen.get("total-messages") == 6
    )
    assert told["messages-per-sec"] > 0
    source = scene.wait(
        lambda: figures(scene, "grouped"),
        lambda seen: seen.get("consumer-total-messages") == 7,
    )
    assert source["consumer-failed-messages"] == 1
    (group,) = scene.client.describe("grouped_out", extended=True)["queryOffsetSummaries"]
    assert group["groupId"] == GROUP + query

    scene.sql(f"PAUSE {query};")
    scene.write("grouped", record({"v": 7}, partition=1))
    assert scene.admin.group_positions(GROUP + query) == {"grouped": {0: 4, 1: 3}}
    assert lag(scene, "grouped_out") == 1
    scene.sql(f"RESUME {query};")
    committed(scene, query, {"grouped": {0: 4, 1: 4}})

    scene.sql(f"TERMINATE {query};")
    scene.wait(scene.admin.groups, lambda groups: GROUP + query not in groups)


def test_an_aggregate_counts_what_it_reads_and_how_far_it_is(scene):
    scene.topic("grouped_visits")
    scene.sql(
        "CREATE STREAM grouped_visits (id STRING KEY, v INT, w INT) "
        "WITH (kafka_topic='grouped_visits', value_format='JSON');"
    )
    query = scene.create(
        "CREATE TABLE grouped_counts AS SELECT id, COUNT(*) AS n, SUM(v) AS s "
        "FROM grouped_visits GROUP BY id;"
    )
    broken = [record(b"{broken", "x"), record(b"[]", "y")]
    scene.write("grouped_visits", *(record({"v": i}, "abc"[i % 3]) for i in range(9)), *broken)
    committed(scene, query, {"grouped_visits": {0: 11}})
    scene.wait(
        lambda: figures(scene, "grouped_visits"),
        lambda seen: seen.get("consumer-failed-messages") == 2,
    )
    assert figures(scene, "grouped_visits")["consumer-total-messages"] == 11
    assert 3 <= figures(scene, "grouped_counts")["total-messages"] <= 9
    hosts = httpx.get(f"{scene.url}/clusterStatus").json()["clusterStatus"].values()
    (lags,) = (
        host["hostStoreLags"]["stateStoreLags"][f"{GROUP}{query}#Aggregate-Aggregate-Materialize"]
        for host in hosts
        if host["activeStandbyPerQuery"]
    )
    assert lags["lagByPartition"]["0"] == {
        "currentOffsetPosition": 11,
        "endOffsetPosition": 11,
        "offsetLag": 0,
    }
    scene.sql("DROP TABLE grouped_counts;")
    scene.wait(scene.admin.groups, lambda groups: GROUP + query not in groups)


def committed(scene, query, wanted):
    scene.wait(lambda: scene.admin.group_positions(GROUP + query), lambda seen: seen == wanted)


def figures(scene, source):
    told = scene.client.describe(source, extended=True)
    every = (*told["clusterStatistics"], *told["clusterErrorStats"])
    return {item["name"]: item["value"] for item in every}


def lag(scene, source):
    (group,) = scene.client.describe(source, extended=True)["queryOffsetSummaries"]
    (topic,) = group["topicSummaries"]
    return sum(p["logEndOffset"] - p["consumerOffset"] for p in topic["offsets"])
