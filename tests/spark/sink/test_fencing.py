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

from headrace.spark.sink import fencing
from headrace.spark.sink import kafka as sink
from headrace.spark.sink.fencing import FreezeDetector, FrozenError


class Times:
    def __init__(self):
        self.now = self.work = 100.0

    def detector(self):
        return FreezeDetector(10, 5, lambda: self.now, lambda: self.work)

    def pass_(self, seconds, work=0.0):
        self.now += seconds
        self.work += work


def test_a_task_that_was_frozen_and_one_that_begins_right_after():
    times = Times()
    detector = times.detector()
    began = detector.begin()
    times.pass_(9)
    detector.check(began)
    times.pass_(11)
    with pytest.raises(FrozenError, match="frozen for more than 10 s"):
        detector.check(began)
    times.pass_(4)
    with pytest.raises(FrozenError):
        detector.check(detector.begin())
    times.pass_(4)
    detector.check(detector.begin())


def test_a_process_that_works_without_pause_is_not_frozen():
    """A regular expression, say, which lets no other thread run."""
    times = Times()
    detector = times.detector()
    began = detector.begin()
    times.pass_(60, work=30)
    detector.check(began)


FROZEN = """
import sys
from headrace.spark.sink.fencing import FreezeDetector
detector = FreezeDetector(3, 0.1)
began = detector.begin()
for line in sys.stdin:
    detector.check(began)
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
    monkeypatch.setattr(fencing, "_process", times.detector())
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
