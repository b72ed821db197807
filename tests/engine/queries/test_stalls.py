"""Queries that make no progress are ended and told of; slow ones are not. Spark is pretended."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JJavaError

from headrace.engine.queries.persistent import PersistentQuery, QueryKeeper
from headrace.engine.queries.stalls import UNENDED_SECONDS, StallWatch
from headrace.spark.internals.jvm import SparkJvm
from headrace.spark.runtime.progress import Tasks, Work

SECONDS = 20.0


class Progress:
    def batchId(self):
        return 7

    def timestamp(self):
        return "2026-01-01"


class Status:
    def __init__(self, active, message):
        self.isTriggerActive = lambda: active
        self.message = lambda: message


class Streaming:
    """A query in the middle of a batch, the first since it started."""

    isActive = True

    def __init__(self, run):
        self.runId = run
        self._jsq = self
        self.progress, self.now = None, Status(True, "Processing new data")

    def lastProgress(self):
        return self.progress

    def status(self):
        return self.now

    def stop(self):
        self.isActive = False


class Query(PersistentQuery):
    runs = 0

    def start(self, may_run=lambda: True):
        self.runs += 1
        self.streaming = Streaming(f"run {self.runs}")
        self.retry_at, self.degraded = None, False


class Answer:
    """A push or pull query."""

    id = run = "an answer"

    def __init__(self):
        self.reasons = []

    def fail(self, reason):
        self.reasons.append(reason)


class Pulls:
    def __init__(self):
        self.all = []

    def running(self):
        return self.all


class Spark:
    """What its tasks look like, as a test says."""

    def __init__(self):
        self.work, self.unended = {}, {}

    def look(self):
        return Tasks(dict(self.work), dict(self.unended))


class Switch:
    def arm(self, seconds): ...
    def watch(self, query): ...
    def forget(self, query): ...
    def close(self): ...


class Stage:
    """A watch over one persistent query, and time that passes."""

    def __init__(self):
        self.keeper = QueryKeeper(1.0, 60.0)
        self.query = Query("A", "", lambda: "a plan", lambda: None, "")
        self.keeper.add(self.query)
        self.keeper.activate(Switch(), 9)
        self.spark, self.pushes, self.pulls, self.lost = Spark(), [], Pulls(), []
        self.watch = StallWatch(
            self.spark, self.keeper, self.pushes, self.pulls.running, SECONDS, self.lost.append
        )
        self.now = 0.0

    def wait(self, seconds):
        until = self.now + seconds
        while self.now <= until:
            self.watch.look(self.now)
            self.now += 2.0

    def retry(self):
        self.query.retry_at = 0
        self.keeper._look_after_all()


@pytest.fixture
def stage():
    return Stage()


def test_a_query_that_stands_still_is_degraded_says_why_and_tries_again(stage):
    stage.spark.work["run 1"] = Work(1, ((3, 0, 1, 0, 500, 0, 0, 0),))
    stage.wait(SECONDS - 4)
    assert stage.query.state.value == "RUNNING"
    stage.wait(6)
    assert stage.query.state.value == "DEGRADED" and stage.query.streaming is None
    reason = stage.query.errors[-1].error_message
    assert "made no progress for 20 s" in reason and "ksql.query.stall.timeout.ms" in reason
    stage.retry()
    assert stage.query.streaming.runId == "run 2"
    assert stage.query.state.value == "DEGRADED"  # until a batch is through
    stage.query.streaming.progress = Progress()
    stage.wait(2)
    assert stage.query.state.value == "RUNNING"


def test_each_attempt_has_twice_the_patience(stage):
    for run, patience in (("run 1", 20), ("run 2", 40), ("run 3", 80)):
        stage.spark.work = {run: Work(1, ((3, 0, 0, 0, 0, 0, 0, 0),))}
        stage.wait(patience - 6)
        assert stage.query.streaming is not None
        stage.wait(8)
        assert stage.query.streaming is None
        stage.retry()


def test_a_batch_that_is_slow_and_gets_on_is_left_alone(stage):
    for records in range(10):
        stage.spark.work["run 1"] = Work(1, ((3, 0, 0, 0, records, 0, 0, 0),))
        stage.wait(SECONDS - 6)
    assert stage.query.state.value == "RUNNING" and not stage.query.errors


def test_who_waits_for_records_or_for_a_core_is_left_alone(stage):
    stage.spark.work["run 1"] = Work(0, ((3, 0, 0, 0, 0, 0, 0, 0),))
    stage.wait(3 * SECONDS)
    del stage.spark.work["run 1"]
    for waiting in (
        Status(False, "Processing new data"),
        Status(True, "Waiting for data to arrive"),
    ):
        stage.query.streaming.now = waiting
        stage.wait(3 * SECONDS)
    assert stage.query.state.value == "RUNNING" and not stage.query.errors


def test_a_batch_that_does_not_even_get_to_tasks_stands_still_too(stage):
    stage.wait(SECONDS + 2)
    assert stage.query.state.value == "DEGRADED"


def test_time_in_which_the_server_was_frozen_does_not_count(stage):
    stage.spark.work["run 1"] = Work(1, ((3, 0, 0, 0, 0, 0, 0, 0),))
    stage.wait(4)
    stage.now += 3600
    stage.wait(4)
    assert stage.query.state.value == "RUNNING"


def test_push_and_pull_queries_fail(stage):
    push, pull = Answer(), Answer()
    pull.id = "another"
    stage.pushes.append(push)
    stage.pulls.all.append(pull)
    stage.query.stop()
    stage.wait(3 * SECONDS)
    assert not push.reasons and not pull.reasons  # no task of theirs runs
    stage.spark.work = dict.fromkeys(("an answer", "another"), Work(2, ()))
    stage.wait(SECONDS + 2)
    assert "no progress" in push.reasons[0] and "no progress" in pull.reasons[0]


def test_push_and_pull_queries_that_wait_for_a_core_are_left_alone(stage):
    push, pull = Answer(), Answer()
    pull.id = "another"
    stage.pushes.append(push)
    stage.pulls.all.append(pull)
    stage.query.stop()
    stage.spark.work = dict.fromkeys(("an answer", "another"), Work(0, ()))
    stage.wait(3 * SECONDS)
    assert not push.reasons and not pull.reasons


def test_one_that_cannot_be_ended_does_not_shield_the_others(stage):
    push, pull = Answer(), Answer()
    pull.id = "another"
    stage.pushes.append(push)
    stage.pulls.all.append(pull)
    stage.query.stop()

    def fail(reason):
        raise ValueError("it cannot be ended")

    push.fail = fail
    stage.spark.work = dict.fromkeys(("an answer", "another"), Work(2, ()))
    stage.wait(SECONDS + 2)
    assert "no progress" in pull.reasons[0]


def test_a_query_that_spark_cannot_stop_takes_the_jvm_with_it(stage):
    class Unstoppable(Py4JJavaError):
        def __init__(self):
            Exception.__init__(self)

        def __str__(self):
            return "The stream thread was not stopped"

    def stop():
        raise Unstoppable

    stage.query.streaming.stop = stop
    stage.wait(SECONDS + 2)
    assert stage.lost == ["Query A stands still, and Spark cannot stop it"]
    assert stage.query.state.value == "DEGRADED"


def test_a_task_that_nothing_ends_takes_the_jvm_with_it(stage):
    stage.query.stop()
    stage.spark.unended = {9: "java.util.regex.Pattern$Loop.match"}
    stage.wait(UNENDED_SECONDS - 4)
    stage.spark.unended = {10: "org.rocksdb.RocksDB.get"}  # another one: that one has ended
    stage.wait(UNENDED_SECONDS - 4)
    assert not stage.lost
    stage.wait(6)
    assert "still keeps a core busy, in org.rocksdb.RocksDB.get" in stage.lost[0]


def test_a_jvm_that_is_ended_tells_the_reason():
    process = subprocess.Popen(["sleep", "60"])
    context = SimpleNamespace(
        _gateway=SimpleNamespace(proc=process), _jsc=SimpleNamespace(sc=lambda: None)
    )
    jvm = SparkJvm(SimpleNamespace(sparkContext=context))
    assert jvm.end is None
    assert jvm.kill("A task keeps a core busy")
    process.wait()
    assert jvm.end == "A task keeps a core busy"
