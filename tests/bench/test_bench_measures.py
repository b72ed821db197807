"""Measures, with the server, Kafka and the sides pretended."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from headrace.bench.figures import HEADRACE, STREAMS, Absent, Samples
from headrace.bench.measures import Run
from headrace.bench.workloads import latency, many_queries


class Consumer:
    """Has one message of before, and then one for each record that was written."""

    def __init__(self, topic):
        self.topic = topic

    def assign(self, partitions):
        assert len(partitions) == 2

    def poll(self, seconds):
        return SimpleNamespace(error=lambda: None) if self.topic.take() else None

    def close(self):
        pass


class Topic:
    def __init__(self):
        self.messages = 1
        self.records = []

    def take(self):
        self.messages -= 1
        return self.messages >= 0

    def write(self, record):
        self.records.append(record)
        self.messages = 1


@pytest.fixture
def topic(monkeypatch):
    topic = Topic()

    @contextmanager
    def writer(*_, **__):
        yield topic

    monkeypatch.setattr(latency, "RecordWriter", writer)
    return topic


class BenchServer:
    def __init__(self, topic):
        self.kafka = SimpleNamespace(consumer=lambda **_: Consumer(topic))
        self.admin = SimpleNamespace(delete=lambda name: None)
        self.forgotten = False

    def source(self, source, size):
        return f"{source.name}_{size.records}"

    def sink(self, name):
        return name

    def forget_sources(self):
        self.forgotten = True


class Side:
    def __init__(self, name, reason=None):
        self.name, self.reason = name, reason

    def why_not(self, job):
        return self.reason

    @contextmanager
    def running(self, job, topics, sink):
        yield


def test_latencies_of_all_ways_and_sides(topic):
    at = BenchServer(topic)
    sides = (Side(HEADRACE), Side(STREAMS, "no JDK"))
    run = Run(at, 1000, 3, sides, lambda text: None, pytest.fail)
    rows = {row.name: row for row in latency.MEASURES[0].run(run)}
    assert len(rows) == 2 * len(latency.WAYS)
    assert len(rows["latency-join-p50"].cells[HEADRACE].values) == 3
    assert rows["latency-stateless-p50"].cells[STREAMS] == Absent("no JDK")
    assert isinstance(rows["latency-aggregate-p99"].cells[HEADRACE], Samples)
    # This aggregate has a form for Headrace alone.
    assert set(rows["latency-kernel-p50"].cells) == {HEADRACE}
    # A warm-up goes before each, and no record is written twice.
    assert len(topic.records) == len(latency.WAYS) * (latency.WARM_UP + latency.TRIPS)
    stateless = [r.key for r in topic.records if r.topic.startswith("orders")]
    assert len(set(stateless)) == len(stateless)
    assert at.forgotten


def test_the_slowest_query_is_what_is_behind():
    def query(offset):
        end = {"endOffset": {"many": {"0": offset, "1": 5}}}
        return SimpleNamespace(streaming=SimpleNamespace(lastProgress={"sources": [end]}))

    at = SimpleNamespace(
        admin=SimpleNamespace(end_offsets=lambda topic: {0: 10, 1: 5}),
        server=SimpleNamespace(engine=SimpleNamespace(queries=[query(10), query(7)])),
    )
    assert many_queries._lag(at, "many") == 3
