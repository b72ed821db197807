"""Servers that hear each other through Kafka, which is librdkafka's own pretended one here."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer

from headrace.engine.cluster import lease
from headrace.engine.cluster.heartbeat import Heartbeat
from headrace.engine.cluster.identity import Identity
from headrace.engine.cluster.lease import QueryReport, Report
from headrace.kafka.admin import TopicAdmin
from headrace.kafka.client import KafkaConnection


class Ground:
    def __init__(self, directory, kafka):
        self.directory = directory
        self.connection = KafkaConnection({"bootstrap.servers": kafka}, timeout=10)
        self.running = []

    def start(self, name, state_dir="/state", queries=None):
        identity = Identity.take(self.directory / name, "default_")
        report = Report(name, 7, state_dir, queries or {})
        beat = Heartbeat(self.connection, "beats", identity, lambda: report, lambda seconds: None)
        beat.open()
        self.running.append((beat, identity))
        return beat

    def kill(self, beat):
        """As `kill -9` would: no goodbye."""
        beat.thread.stop()
        ((_, identity),) = (each for each in self.running if each[0] is beat)
        identity.release()


@pytest.fixture
def ground(tmp_path, monkeypatch):
    for name, seconds in {"BETWEEN_BEATS": 0.1, "LAPSE": 1.0, "SILENCE": 1.5}.items():
        monkeypatch.setattr(lease, name, seconds)
    kafka = Producer({"bootstrap.servers": "pretended", "test.mock.num.brokers": 1})
    (broker,) = kafka.list_topics(timeout=10).brokers.values()
    monkeypatch.setattr(
        TopicAdmin, "ensure", lambda admin, spec: kafka.list_topics(spec.name, timeout=10)
    )
    made = Ground(tmp_path, f"{broker.host}:{broker.port}")
    yield made
    for beat, _ in made.running:
        beat.thread.stop()


def eventually(check):
    deadline = time.monotonic() + 20
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_first_holds_the_lease_when_it_is_open_and_the_others_hear_of_it(ground):
    a = ground.start("a", queries={"CSAS_X_1": QueryReport("RUNNING")})
    assert a.holds() and 0 < a.seconds_left() <= 1
    b = ground.start("b")
    assert not b.holds()
    eventually(lambda: [m.report.address for m in a.others()] == ["b"])
    assert b.holding().report.queries == {"CSAS_X_1": QueryReport("RUNNING")}
    assert b.await_applied(6, 5) and not b.await_applied(7, 0.1)
    assert a.await_all(6, 5) and not a.await_all(7, 0.1)
    assert sorted((m.report.address, alive) for m, alive in b.members()) == [
        ("a", True),
        ("b", True),
    ]


def test_after_a_death_another_takes_over_and_after_a_goodbye_at_once(ground):
    a, b = ground.start("a"), ground.start("b")
    ground.kill(a)
    eventually(b.holds)
    assert not a.holds()
    assert sorted((m.report.address, alive) for m, alive in b.members()) == [
        ("a", False),
        ("b", True),
    ]
    c = ground.start("c")
    assert not c.holds()
    b.close()
    eventually(c.holds)
    assert "b" not in [m.report.address for m, _ in c.members()]


def test_who_is_started_again_after_a_kill_holds_the_lease_when_it_is_open(ground):
    ground.kill(ground.start("a"))
    again = ground.start("a")
    assert again.holds()
    assert [(m.report.address, alive) for m, alive in again.members()] == [("a", True)]


def test_servers_that_do_not_share_their_states_are_told_so(ground, caplog):
    ground.start("a")
    ground.start("b", state_dir="/elsewhere")
    for words in (
        "The server at a has state.dir=/state, this one has /elsewhere",
        "The server at b has state.dir=/elsewhere, this one has /state",
    ):
        eventually(lambda words=words: words in caplog.text)
