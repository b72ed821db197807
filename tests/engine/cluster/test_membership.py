"""What servers report of themselves and know of each other."""

from __future__ import annotations

import socket
import time
from types import SimpleNamespace

import pytest

from headrace.engine.cluster.lease import Member, QueryReport, Report
from headrace.engine.cluster.membership import Membership
from headrace.engine.cluster.peers import MOST_HOSTS, Peers
from headrace.kafka.admin import Topic
from headrace.kafka.client import UnknownTopicError
from headrace.model.entities import QueryState
from headrace.model.errors import UnavailableError
from headrace.model.settings import Settings
from plan_catalog import Catalog


class Topics:
    """Kafka, as far as lags are concerned."""

    def __init__(self, ends, committed=None):
        self.ends, self.committed = ends, committed or {}

    def topics(self):
        return {name: Topic(name, (1,) * len(ends)) for name, ends in self.ends.items()}

    def begin_offsets(self, name):
        if name not in self.ends:
            raise UnknownTopicError(f"Topic '{name}' does not exist in Kafka.")
        return dict.fromkeys(self.ends[name], 0)

    def end_offsets(self, name):
        return self.ends[name]

    def group_positions(self, group, topics=None):
        return self.committed.get(group, {})


class Silent:
    """Kafka that does not answer."""

    def __getattr__(self, name):
        def fail(*_):
            raise UnavailableError("Kafka at nowhere does not answer: down")

        return fail


def membership(url=None, members=(), holder=None, admin=None, queries=(), active=False, **settings):
    named = {k.replace("__", "."): v for k, v in settings.items()}
    env = SimpleNamespace(
        settings=Settings(named),
        admin=admin or Topics({}),
        query_group=lambda id_: f"g_{id_}",
        in_kafka=lambda topic: topic,
    )
    return Membership(
        lambda: env,
        {} if url is None else {"server": url},
        SimpleNamespace(active=active, all_known=lambda: list(queries)),
        SimpleNamespace(members=lambda: members, holding=lambda: holder),
    )


def counting(catalog, positions):
    """A query that counts the records of a topic of two partitions, and has read so far."""
    catalog.run("CREATE STREAM s (id INT KEY, v INT) WITH (kafka_topic='s', value_format='JSON');")
    planned = catalog.plan("CREATE TABLE t AS SELECT id, COUNT(*) AS n FROM s GROUP BY id;")
    return SimpleNamespace(
        id="CTAS_T_1",
        planned=planned,
        positions=positions,
        streaming=None,
        state=QueryState.RUNNING,
        errors=[],
    )


def status_of(found, host="here:8088"):
    return found.cluster_status().to_json()["clusterStatus"][host]


STORE = "g_CTAS_T_1#Aggregate-Aggregate-Materialize"
RUNS = [
    (Member("here", Report("here:8088", queries={"CTAS_T_1": QueryReport("RUNNING")}), 1, 0), 1)
]


@pytest.mark.parametrize(
    ("url", "settings", "address"),
    [
        (None, {}, ""),
        ("http://127.0.0.1:8088", {}, "127.0.0.1:8088"),
        ("https://0.0.0.0:8088", {}, f"{socket.gethostname()}:8088"),
        ("http://[::]:8088", {}, f"{socket.gethostname()}:8088"),
        ("http://0.0.0.0:1", {"ksql__advertised__listener": "http://shop:8088/"}, "shop:8088"),
    ],
)
def test_a_server_is_known_by_where_it_is_reached(url, settings, address):
    assert membership(url, **settings).address == address


def test_the_status_names_the_living_and_the_dead():
    here, gone = (
        Member(name, Report(f"{name}:8088"), 1, time.monotonic() - age)
        for name, age in (("here", 0), ("gone", 60))
    )
    known = [(here, True), (gone, False)]
    status = membership("http://here:8088", known).cluster_status()
    hosts = status.to_json()["clusterStatus"]
    assert {host: told["hostAlive"] for host, told in hosts.items()} == {
        "here:8088": True,
        "gone:8088": False,
    }
    ago = hosts["here:8088"]["lastStatusUpdateMs"] - hosts["gone:8088"]["lastStatusUpdateMs"]
    assert 59_000 < ago < 61_000


def test_a_server_that_runs_no_queries_tells_what_the_other_says():
    query = SimpleNamespace(id="CSAS_A_1", planned="a plan")
    assert membership("http://b:1").status(query)[1] is QueryState.UNRESPONSIVE
    report = Report("a:1", queries={"CSAS_A_1": QueryReport("ERROR", "no such topic", 5)})
    host, state, (error,) = membership(holder=Member("a", report, 1, 0.0)).status(query)
    assert (host, state) == ("a:1", QueryState.ERROR)
    assert (error.error_message, error.timestamp) == ("no such topic", 5)


def test_the_status_tells_what_a_server_runs_and_how_far_behind_it_is():
    query = counting(Catalog(), {"s": {0: 5, 1: 9}})
    found = membership(
        members=RUNS, admin=Topics({"s": {0: 7, 1: 9}}), queries=[query], active=True
    )
    told = status_of(found)
    assert told["activeStandbyPerQuery"]["CTAS_T_1"] == {
        "activeStores": ["Aggregate-Aggregate-Materialize"],
        "activePartitions": [{"topic": "s", "partition": 0}, {"topic": "s", "partition": 1}],
        "standByStores": [],
        "standByPartitions": [],
    }
    assert told["hostStoreLags"]["stateStoreLags"][STORE] == {
        "lagByPartition": {
            "0": {"currentOffsetPosition": 5, "endOffsetPosition": 7, "offsetLag": 2},
            "1": {"currentOffsetPosition": 9, "endOffsetPosition": 9, "offsetLag": 0},
        },
        "size": 2,
    }


def test_a_server_that_runs_nothing_knows_lags_from_kafka():
    query = counting(Catalog(), {})
    kafka = Topics({"s": {0: 7}}, {"g_CTAS_T_1": {"s": {0: 4}}})
    found = membership(members=RUNS, admin=kafka, queries=[query])
    lags = status_of(found)["hostStoreLags"]["stateStoreLags"][STORE]["lagByPartition"]
    assert lags["0"]["offsetLag"] == 3


@pytest.mark.parametrize("kafka", [Topics({}), Silent()])
def test_a_topic_that_is_gone_and_a_silent_kafka_have_no_lags(kafka):
    query = counting(Catalog(), {"s": {0: 5}})
    found = membership(members=RUNS, admin=kafka, queries=[query], active=True)
    told = status_of(found)
    assert told["hostAlive"]
    lags = told["hostStoreLags"]["stateStoreLags"]
    assert lags in ({}, {STORE: {"lagByPartition": {}, "size": 0}})


def test_servers_that_tell_of_themselves_over_http():
    found = membership("http://here:1")
    now = [1000.0]
    object.__setattr__(found, "peers", Peers(lambda: now[0]))
    found.peers.heard("other:2")
    found.peers.note_lags("other:2", {"store": {"size": 0}}, 500)
    found.peers.note_lags("other:2", {"store": {"size": 9}}, 400)  # came late
    told = status_of(found, "other:2")
    assert told["hostAlive"]
    assert told["hostStoreLags"] == {"stateStoreLags": {"store": {"size": 0}}, "updateTimeMs": 500}
    now[0] += 60
    assert not status_of(found, "other:2")["hostAlive"]
    for i in range(200):
        found.peers.heard(f"h{i}:1")
    assert len(found.peers.statuses()) == MOST_HOSTS
