"""What the sink does with a transaction: all of a task's rows, or none."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.spark.sink import kafka as sink
from headrace.spark.sink import transactions
from headrace.spark.sink.kafka import SinkTarget

TARGET = SinkTarget("Q", "SINK", (("bootstrap.servers", "nowhere"),), transactions="name")


class FakeProducer:
    def __init__(self):
        self.rows = []
        self.failure = None

    def produce(self, topic, value, key, partition, callback, on_delivery, timestamp):
        if self.failure:
            raise self.failure
        self.rows.append((topic, key, value, timestamp))

    def poll(self, timeout):
        return 0

    def flush(self, timeout):
        return 0


class FakeTransaction:
    def __init__(self):
        self.producer = FakeProducer()
        self.done = False
        self.told = []
        self.place = None

    def open(self, client, settings, place):
        self.place = place
        return self

    def commit(self):
        self.told.append("commit")

    def abort(self):
        self.told.append("abort")


class Task:
    """What Spark tells a worker."""

    def partitionId(self):
        return 1

    def getLocalProperty(self, name):
        return {"streaming.sql.batchId": "5", "sql.streaming.queryId": "uuid"}[name]


@pytest.fixture
def transaction(monkeypatch):
    made = FakeTransaction()
    monkeypatch.setattr(sink, "Transaction", made.open)
    monkeypatch.setattr(transactions.TaskContext, "get", lambda: Task())
    return made


def batch(*rows, **more):
    keys, values, times = zip(*rows, strict=True)
    columns = {"$key": pa.array(keys), "$value": pa.array(values), "$time": pa.array(times)}
    columns |= {f"${name}": pa.array([value] * len(rows)) for name, value in more.items()}
    return pa.RecordBatch.from_pydict(columns)


def write(*batches):
    (counts,) = sink._writer(TARGET)(iter(batches))
    return counts.to_pylist()


def test_rows_are_written_and_committed_together(transaction):
    assert write(batch((b"a", b"1", 10)), batch((b"b", b"2", 20)))[0]["written"] == 2
    assert transaction.producer.rows == [("SINK", b"a", b"1", 10), ("SINK", b"b", b"2", 20)]
    assert transaction.told == ["commit"]
    place = transaction.place
    assert (place.group, place.topic, place.task, place.batch) == ("name-uuid", "SINK", 1, 5)


def test_rows_may_tell_which_task_they_are_of(transaction):
    write(batch((b"a", b"1", 10), task=7))
    assert transaction.place.task == 7


def test_what_was_written_before_is_not_written_again(transaction):
    transaction.done = True
    assert write(batch((b"a", b"1", 10)))[0]["written"] == 1
    assert transaction.producer.rows == []


def test_a_failure_aborts(transaction):
    transaction.producer.failure = RuntimeError("broken")
    with pytest.raises(RuntimeError):
        write(batch((b"a", b"1", 10)))
    assert transaction.told == ["abort"]


def test_a_failure_of_an_earlier_step_aborts(transaction):
    def batches():
        yield batch((b"a", b"1", 10))
        raise EOFError

    with pytest.raises(EOFError):
        list(sink._writer(TARGET)(batches()))
    assert transaction.told == ["abort"]


def test_no_rows_no_transaction(transaction):
    assert write()[0]["written"] == 0
    assert transaction.place is None


def test_time_0_is_1_here(transaction):
    write(batch((b"a", b"1", 0)))
    assert transaction.producer.rows == [("SINK", b"a", b"1", 1)]
