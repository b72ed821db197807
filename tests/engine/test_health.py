"""Health tells of each part, and never waits for one that hangs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from headrace.engine import health
from headrace.engine.health import HealthWatch
from headrace.engine.supervised import SupervisedThread
from headrace.model.entities import QueryError, QueryState
from headrace.model.errors import HeadraceError


class Parts:
    """What a server is made of, each answering as a test says."""

    def __init__(self, directory):
        self.process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        self.stopped = False
        self.hangs = threading.Event()
        self.hangs.set()
        self.kafka = lambda: True
        self.failing = []
        self.lost = []
        context = SimpleNamespace(
            _gateway=SimpleNamespace(proc=self.process),
            _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: self.stopped)),
        )
        env = SimpleNamespace(
            spark=SimpleNamespace(sparkContext=context),
            admin=SimpleNamespace(exists=lambda topic, timeout: self.kafka()),
            registry=None,
            data_dir=directory,
            state_dir=f"file://{directory}/state",
        )
        queries = SimpleNamespace(all_known=lambda: self.failing)
        self.watch = HealthWatch(env, "commands", queries, self.lost.append)
        self.watch.open()

    def unwell(self):
        told = self.watch.health().to_json()["details"]
        return {name: part["reason"] for name, part in told.items() if not part["isHealthy"]}


@pytest.fixture
def parts(tmp_path, monkeypatch):
    monkeypatch.setattr(health, "ASK_SECONDS", 0.01)
    monkeypatch.setattr(health, "PATIENCE_SECONDS", 0.2)
    made = Parts(tmp_path)
    yield made
    made.hangs.set()
    made.watch.close()
    made.process.kill()
    made.process.wait()


def eventually(check):
    deadline = time.monotonic() + 20
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_all_is_well(parts):
    assert parts.unwell() == {}
    assert parts.watch.health().is_healthy
    assert {"metastore", "kafka", "spark", "disk", "queries"} <= set(parts.watch.health().parts)


def test_a_dead_jvm_is_told_at_once(parts):
    parts.process.kill()
    parts.process.wait()
    assert parts.unwell()["spark"] == "Spark's JVM was killed by signal 9"
    eventually(lambda: parts.lost == ["Spark's JVM was killed by signal 9"])


def test_a_context_that_was_stopped_is_lost(parts):
    parts.stopped = True
    eventually(lambda: "Spark's context has been stopped" in parts.lost)
    assert not parts.watch.health().is_healthy


def test_a_part_that_hangs_is_unwell_and_nobody_waits_for_it(parts):
    parts.hangs.clear()
    parts.kafka = parts.hangs.wait
    eventually(lambda: "kafka" in parts.unwell())
    assert parts.unwell()["kafka"].startswith("There has been no answer for")
    began = time.monotonic()
    for _ in range(100):
        parts.watch.health()
    assert time.monotonic() - began < 1
    parts.hangs.set()
    eventually(lambda: parts.unwell() == {})


def test_a_part_that_fails_says_why(parts):
    def away():
        raise HeadraceError("Kafka at x does not answer: refused")

    parts.kafka = away
    eventually(lambda: parts.unwell() == {"kafka": "Kafka at x does not answer: refused"})
    parts.kafka = lambda: False
    eventually(lambda: parts.unwell() == {"kafka": "Topic 'commands' does not exist in Kafka."})


def test_a_full_disk(parts, monkeypatch):
    full = SimpleNamespace(f_bavail=3, f_frsize=1 << 20)
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    eventually(lambda: "disk" in parts.unwell())
    assert parts.unwell()["disk"].startswith("Only 3 MiB are free at /")


def test_a_failing_query_is_shown_and_the_server_is_healthy(parts):
    failing = SimpleNamespace(
        id="CSAS_A_1", state=QueryState.ERROR, errors=[QueryError(1, "the topic is gone")]
    )
    parts.failing = [failing]
    assert parts.unwell() == {"queries": "1 failing: CSAS_A_1: the topic is gone"}
    assert parts.watch.health().is_healthy


def test_a_failing_thread_is_a_part(parts):
    def fail():
        raise HeadraceError("it cannot be read")

    thread = SupervisedThread("lease", fail, initial=60)
    parts.watch.watch("lease", thread)
    assert parts.unwell() == {}
    thread.start()
    eventually(lambda: parts.unwell() == {"lease": "it cannot be read"})
    assert not parts.watch.health().is_healthy
    thread.stop()
