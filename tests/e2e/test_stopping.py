"""A server that is asked to end does so, whatever else does not answer."""

from __future__ import annotations

import os
import signal
import time

import httpx
import pytest

from headrace.kafka.broker import EmbeddedBroker
from headrace.kafka.jars import ensure_jars
from headrace.kafka.ports import free_port
from server_process import ServerProcess, eventually

pytestmark = pytest.mark.heavy

SOON_SECONDS = 15.0


@pytest.fixture
def broker(tmp_path):
    with EmbeddedBroker(tmp_path / "kafka", free_port(), ensure_jars(print)) as made:
        yield made


@pytest.fixture
def servers(tmp_path, broker):
    """Starts servers of one service."""
    started = []

    def start(name):
        ports = (free_port(), free_port(), free_port())
        settings = {"state.dir": str(tmp_path / "state")}
        server = ServerProcess(tmp_path / name, ports, broker.bootstrap_servers, settings)
        started.append(server)
        return server

    yield start
    for server in started:
        server.close()


def prepare(scene):
    scene.topic("words", partitions=2)
    scene.sql(
        "CREATE STREAM WORDS (K STRING KEY, N INT, V STRING) "
        "WITH (KAFKA_TOPIC='words', VALUE_FORMAT='JSON');"
    )
    scene.create("CREATE STREAM COPIES AS SELECT * FROM WORDS;")
    scene.create("CREATE TABLE COUNTS AS SELECT K, COUNT(*) AS C FROM WORDS GROUP BY K;")
    scene.sql("INSERT INTO WORDS (K, N, V) VALUES ('a', 1, 'x');")
    assert len(scene.values("COPIES", 1)) == 1
    scene.wait(lambda: scene.pull("SELECT * FROM COUNTS;"), lambda rows: rows == [("a", 1)])


def seconds_to_end(server):
    began = time.monotonic()
    assert server.stop() == 0, server.told()
    return time.monotonic() - began


def test_a_server_whose_broker_is_gone(servers, broker):
    server = servers("first")
    scene = server.scene()
    prepare(scene)
    scene.sql("INSERT INTO WORDS (K, N, V) VALUES ('a', 2, 'y');")
    os.kill(broker.pid, signal.SIGKILL)

    def kafka_is_away():
        told = httpx.get(f"{server.url}/healthcheck").json()
        return not told["details"]["kafka"]["isHealthy"]

    eventually(kafka_is_away, 60)
    assert seconds_to_end(server) <= SOON_SECONDS
    broker.start()
    scene = servers("first").scene()
    assert [v["V"] for v in scene.values("COPIES", 2)] == ["x", "y"]
    scene.wait(lambda: scene.pull("SELECT * FROM COUNTS;"), lambda rows: rows == [("a", 2)])


@pytest.mark.parametrize("everything", [False, True], ids=["alone", "with its JVM"])
def test_a_server_that_was_frozen_and_overtaken(servers, everything):
    old = servers("old")
    prepare(old.scene())
    new = servers("new")
    scene = new.scene()
    freeze = os.killpg if everything else os.kill
    freeze(old.process.pid, signal.SIGSTOP)
    try:

        def runs_here():
            told = httpx.get(f"{new.url}/clusterStatus").json()["clusterStatus"]
            return bool(told[new.url.removeprefix("http://")]["activeStandbyPerQuery"])

        eventually(runs_here, 60)
        scene.sql("INSERT INTO WORDS (K, N, V) VALUES ('a', 2, 'y');")
        assert len(scene.values("COPIES", 2)) == 2
    finally:
        freeze(old.process.pid, signal.SIGCONT)
    assert seconds_to_end(old) <= SOON_SECONDS
    scene.wait(lambda: scene.pull("SELECT * FROM COUNTS;"), lambda rows: rows == [("a", 2)])
