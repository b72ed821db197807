"""Threads that the server depends on go on after a failure, and tell of it."""

import logging
import threading

from headrace.engine.supervised import SupervisedThread
from headrace.model.errors import HeadraceError


def failing(times, error, then):
    """Work that fails so many times before it does what it should."""
    left = [error] * times

    def work():
        if left:
            raise left.pop()
        then.set()
        thread.stopping.wait()

    thread = SupervisedThread("worker", work, initial=0.001, most=0.01)
    return thread


def test_work_that_fails_begins_again(caplog):
    recovered = threading.Event()
    thread = failing(2000, ValueError("a bug"), recovered)
    thread._most = 0.00001  # the 1,024th failure of a doubled backoff must not overflow
    with caplog.at_level(logging.CRITICAL, "headrace.engine.supervised"):
        thread.start()
        assert recovered.wait(30)
    assert thread.is_alive
    thread.stop()
    assert not thread.is_alive


def test_a_failure_is_seen_until_the_work_has_settled():
    waiting = threading.Event()
    told = []

    def work():
        waiting.set()
        raise HeadraceError("Kafka is away")

    thread = SupervisedThread("worker", work, initial=60, failed=told.append)
    assert thread.failure is None
    thread.start()
    assert waiting.wait(10)
    deadline = threading.Event()
    while thread.failure is None:
        assert not deadline.wait(0.01)
    assert thread.failure == "Kafka is away"
    thread.stop()
    assert [str(failure) for failure in told] == ["Kafka is away"]
    assert thread.failure is None


def test_a_recovered_thread_is_well(monkeypatch):
    monkeypatch.setattr("headrace.engine.supervised.SETTLE_SECONDS", 0.05)
    recovered = threading.Event()
    thread = failing(1, OSError("no space"), recovered)
    thread.start()
    assert recovered.wait(10)
    while thread.failure is not None:
        assert not thread.stopping.wait(0.01)
    thread.stop()


def test_our_own_errors_are_one_line(caplog):
    recovered = threading.Event()
    thread = failing(1, HeadraceError("the broker is away"), recovered)
    thread.start()
    assert recovered.wait(10)
    thread.stop()
    (line,) = [record for record in caplog.records if record.name == "headrace.engine.supervised"]
    assert "worker failed and goes on" in line.getMessage()
    assert line.exc_info is None


def test_it_can_stop_itself():
    ended = threading.Event()

    def work():
        thread.stop()
        ended.set()

    thread = SupervisedThread("worker", work)
    thread.start()
    assert ended.wait(10)
