"""Queries run while their server holds the lease; Spark is pretended."""

from __future__ import annotations

import time

import pytest

from headrace.engine.queries import persistent as queries
from headrace.engine.queries.losses import (
    DataLossError,
    Memory,
    Reading,
    Seen,
)
from headrace.engine.queries.persistent import NotHoldingError, PersistentQuery, QueryKeeper
from headrace.engine.queries.topic_watch import TopicWatch
from headrace.kafka.admin import Topic
from headrace.model.entities import QueryState


class Streaming:
    isActive = True
    stopped = False

    def stop(self):
        self.isActive = False
        self.stopped = True


class Query(PersistentQuery):
    def start(self, may_run=lambda: True):
        if not may_run():
            raise NotHoldingError
        self.streaming = Streaming()
        self.retry_at, self.degraded = None, False


class Switch:
    def __init__(self):
        self.fired = False
        self.armed = []
        self.watched = []
        self.closed = False

    def arm(self, seconds):
        self.armed.append(seconds)

    def watch(self, query):
        self.watched.append(query)

    def forget(self, query):
        self.watched.remove(query)

    def close(self):
        self.closed = True


class Lease:
    holds = True

    def __call__(self):
        return self.holds


@pytest.fixture
def lease():
    return Lease()


@pytest.fixture
def keeper(lease):
    return QueryKeeper(1.0, 60.0, lease)


def query(name):
    return Query(name, "", lambda: "a plan", lambda: None, "")


def states(keeper):
    return {q.id: q.state.value for q in keeper}


def test_queries_are_known_before_they_run_and_start_with_the_lease(keeper):
    keeper.add(query("A"))
    keeper.add(query("B"))
    keeper.pause("B")
    assert states(keeper) == {"A": "UNRESPONSIVE", "B": "PAUSED"}
    switch = Switch()
    keeper.activate(switch, 9)
    assert states(keeper) == {"A": "RUNNING", "B": "PAUSED"}
    keeper.add(query("C"))
    keeper.resume("B")
    assert states(keeper) == dict.fromkeys("ABC", "RUNNING")
    assert switch.armed == [9]
    assert switch.watched == [keeper.get(i).streaming for i in "ACB"]
    keeper.renew(10)
    assert switch.armed == [9, 10]


def test_without_the_lease_they_stop_and_can_start_again(keeper):
    keeper.add(query("A"))
    first = Switch()
    keeper.activate(first, 9)
    running = keeper.get("A").streaming
    keeper.deactivate()
    assert running.stopped and first.closed and first.watched == []
    assert states(keeper) == {"A": "UNRESPONSIVE"}
    keeper.renew(10)  # comes too late, and does no harm
    second = Switch()
    keeper.activate(second, 9)
    assert states(keeper) == {"A": "RUNNING"}
    assert second.watched == [keeper.get("A").streaming]


def test_a_lease_that_is_lost_while_queries_start_is_noticed(keeper, lease):
    keeper.add(query("A"))
    lease.holds = False
    keeper.activate(Switch(), 9)
    assert states(keeper) == {"A": "UNRESPONSIVE"}
    assert keeper.get("A").errors == []
    lease.holds = True
    keeper._look_after(keeper.get("A"))
    assert keeper.get("A").state is QueryState.RUNNING


def test_a_switch_that_went_off_is_told(keeper):
    switch = Switch()
    keeper.activate(switch, 9)
    assert not keeper.went_off
    switch.fired = True
    assert keeper.went_off
    keeper.deactivate()
    assert not keeper.went_off


def test_a_removed_query_is_stopped_and_forgotten(keeper):
    keeper.add(query("A"))
    switch = Switch()
    keeper.activate(switch, 9)
    running = keeper.get("A").streaming
    assert keeper.remove("A").id == "A"
    assert running.stopped and switch.watched == [] and states(keeper) == {}


class Failing(Query):
    """Never starts."""

    tries = 0

    def start(self, may_run=lambda: True):
        self.tries += 1
        raise RuntimeError("no")


class Odd(Query):
    """Spark cannot be asked how it is."""

    def start(self, may_run=lambda: True):
        self.streaming = OddStreaming()


class OddStreaming(Streaming):
    @property
    def isActive(self):
        raise RuntimeError("Answer from Java side is empty")

    def stop(self):
        pass


def test_a_query_that_failed_a_thousand_times_is_tried_again_all_the_same(keeper):
    failing = Failing("A", "", lambda: "a plan", lambda: None, "")
    keeper.add(failing)
    keeper.activate(Switch(), 9)
    failing.failures = 5000
    failing.retry_at = 0
    keeper._look_after(failing)
    assert failing.tries == 2 and failing.failures == 5001
    assert failing.retry_at - time.monotonic() <= 60


def test_an_unexpected_failure_with_one_query_does_not_leave_the_others_alone(keeper, monkeypatch):
    monkeypatch.setattr(queries, "WATCH_SECONDS", 0.01)
    keeper.add(Odd("A", "", lambda: "a plan", lambda: None, ""))
    keeper.add(query("B"))
    keeper.activate(Switch(), 9)
    keeper.open()
    try:
        keeper.get("B").stop()  # as if Spark had ended it
        deadline = time.monotonic() + 10
        while keeper.get("B").streaming is None:
            assert time.monotonic() < deadline and keeper.thread.is_alive
            time.sleep(0.01)
    finally:
        keeper.close()


def test_what_could_not_even_start_is_degraded_and_says_why(keeper):
    failing = Failing("A", "", lambda: "a plan", lambda: None, "")
    keeper.add(failing)
    assert states(keeper) == {"A": "UNRESPONSIVE"}
    keeper.activate(Switch(), 9)
    assert states(keeper) == {"A": "DEGRADED"}
    assert failing.errors[-1].error_message == "no"
    Query.start(failing)  # what it wanted is there
    assert states(keeper) == {"A": "RUNNING"}
    keeper._failed(failing, "a worker died")
    assert states(keeper) == {"A": "ERROR"}


def test_what_cannot_be_planned_is_degraded_until_it_can(keeper):
    plans = [RuntimeError("no such function"), "a plan"]

    def plan():
        found = plans.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    made = Query("A", "", plan, lambda: None, "")
    keeper.add(made)
    assert states(keeper) == {"A": "DEGRADED"}
    assert made.errors[-1].error_message == "no such function"
    assert made.prepare() == made.planned == "a plan"


class Exact(Query):
    """Does not start without the records that it misses, unless it is told to."""

    def start(self, may_run=lambda: True):
        if not self.accepts_loss:
            raise DataLossError("30 records are gone. RESUME A; goes on.")
        super().start(may_run)


def test_a_query_that_stopped_for_lost_records_waits_for_a_person(keeper):
    exact = Exact("A", "", lambda: "a plan", lambda: None, "")
    keeper.add(exact)
    keeper.resume("A")  # as it stands in the command log: it does not count for what comes later
    keeper.activate(Switch(), 9)
    assert states(keeper) == {"A": "ERROR"} and exact.is_stopped
    keeper._look_after_all()
    assert exact.streaming is None
    assert [e.error_message for e in exact.errors] == ["30 records are gone. RESUME A; goes on."]
    keeper.resume("A")
    assert states(keeper) == {"A": "RUNNING"}


def test_a_query_that_misses_records_looks_for_them_at_once_and_then_with_patience(keeper):
    keeper.add(query("A"))
    keeper.activate(Switch(), 9)
    for state, failures in (("RUNNING", 1), ("ERROR", 2)):
        running = keeper.get("A").streaming
        running.isActive = False
        running.exception = lambda: RuntimeError("[KAFKA_DATA_LOSS.START_OFFSET_RESET] …")
        keeper._look_after_all()
        assert states(keeper) == {"A": state} and keeper.get("A").failures == failures


class Kafka:
    def __init__(self, **ids):
        self.ids = ids

    def identify(self, names):
        return {name: (self.ids[name], Topic(name, (1, 1))) for name in names if name in self.ids}


def test_a_query_starts_again_when_its_topic_is_another_one(keeper):
    keeper.add(query("A"))
    keeper.add(query("B"))
    keeper.activate(Switch(), 9)
    a, b = keeper
    a.reading = Reading({}, {"t": Seen("1", 1)}, Memory())
    b.reading = Reading({}, {"t": Seen("1", 1), "u": Seen("2", 1)}, Memory())
    before = a.streaming, b.streaming
    TopicWatch(Kafka(t="1"), keeper).look()  # what is gone is not another one
    assert (a.streaming, b.streaming) == before
    assert b.reading.seen == {"t": Seen("1", 2), "u": Seen("2", 1)}
    TopicWatch(Kafka(t="1", u="3"), keeper).look()
    assert a.streaming is before[0] and b.streaming is not before[1]
    assert before[1].stopped
