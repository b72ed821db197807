"""A process that was frozen does not write what it had in hand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from headrace.spark import awake, sink
from headrace.spark.awake import Awake, FrozenError


class Times:
    def __init__(self):
        self.now = self.work = 100.0

    def awake(self):
        return Awake(10, 5, lambda: self.now, lambda: self.work)

    def pass_(self, seconds, work=0.0):
        self.now += seconds
        self.work += work


def test_a_task_that_was_frozen_and_one_that_begins_right_after():
    times = Times()
    awake = times.awake()
    began = awake.begin()
    times.pass_(9)
    awake.check(began)
    times.pass_(11)
    with pytest.raises(FrozenError, match="frozen for more than 10 s"):
        awake.check(began)
    times.pass_(4)
    with pytest.raises(FrozenError):
        awake.check(awake.begin())
    times.pass_(4)
    awake.check(awake.begin())


def test_a_process_that_works_without_pause_is_not_frozen():
    """A regular expression, say, which lets no other thread run."""
    times = Times()
    awake = times.awake()
    began = awake.begin()
    times.pass_(60, work=30)
    awake.check(began)


FROZEN = """
import sys
from headrace.spark.awake import Awake
awake = Awake(3, 0.1)
began = awake.begin()
for line in sys.stdin:
    awake.check(began)
    print(line, end="", flush=True)
"""


def test_a_process_is_stopped_and_goes_on():
    process = subprocess.Popen(
        [sys.executable, "-c", FROZEN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        process.stdin.write("one\n")
        process.stdin.flush()
        assert process.stdout.readline() == "one\n"
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(4)  # longer than it may be frozen
        os.kill(process.pid, signal.SIGCONT)
        told, failed = process.communicate("two\n", timeout=20)
    assert told == "" and "FrozenError" in failed


class Producer:
    def __init__(self):
        self.rows = []

    def produce(self, topic, value, *rest):
        self.rows.append(value)

    def poll(self, timeout):
        return 0

    def flush(self, timeout):
        return 0


def test_the_sink_writes_nothing_more(monkeypatch):
    times, producer = Times(), Producer()
    monkeypatch.setattr(awake, "_process", times.awake())
    monkeypatch.setattr(sink, "producer_for", lambda client: producer)

    def batch(value):
        columns = {"$key": pa.array([b"k"]), "$value": pa.array([value]), "$time": pa.array([1])}
        return pa.RecordBatch.from_pydict(columns)

    def batches():
        yield batch(b"before")
        times.pass_(30)
        yield batch(b"after")

    writer = sink._writer(sink.SinkTarget("Q", "SINK", ()))
    with pytest.raises(FrozenError):
        list(writer(batches()))
    assert producer.rows == [b"before"]
    cloudpickle.dumps(writer)  # as Spark does to send it to workers
