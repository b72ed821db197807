"""Who writes a part of a batch, and who finds it written: transactions on a pretended broker."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from headrace.spark.sink import transactions
from headrace.spark.sink.transactions import Place, Transaction

CLIENT = (("bootstrap.servers", "nowhere:9092"), ("linger.ms", "5"))


class Broker:
    """What is committed, and which producer of an id is the last that was let in."""

    def __init__(self):
        self.owner = {}
        self.committed = {}
        self.rows = []
        self.opened = 0
        self.positions = []
        self.left_open = set()  # ids of producers that were killed in a transaction

    def reached(self, client, place, patience=0):
        if place.writer_id in self.left_open:
            raise KafkaException(KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT))
        return self.committed.get(place.writer_id)


class FakeProducer:
    def __init__(self, broker, settings):
        self.broker, self.id = broker, settings["transactional.id"]
        self.pending, self.offset, self.closed = [], None, False
        broker.opened += 1

    def init_transactions(self, timeout):
        self.broker.owner[self.id] = self
        self.broker.left_open.discard(self.id)

    def begin_transaction(self):
        self.pending, self.offset = [], None

    def produce(self, row):
        self.pending.append(row)

    def send_offsets_to_transaction(self, positions, group, timeout):
        (self.offset,) = positions
        self.broker.positions += positions

    def commit_transaction(self, timeout):
        if self.broker.owner[self.id] is not self:
            raise KafkaException(KafkaError(KafkaError._FENCED))
        self.broker.rows += self.pending
        self.broker.committed[self.id] = self.offset.offset

    def abort_transaction(self, timeout):
        self.pending = []

    def close(self):
        self.closed = True


class FakeConsumer:
    def __init__(self, settings):
        assert "linger.ms" not in settings

    def consumer_group_metadata(self):
        return "group"

    def close(self):
        pass


@pytest.fixture
def broker(monkeypatch):
    made = Broker()
    monkeypatch.setattr(transactions, "Producer", lambda s: FakeProducer(made, s))
    monkeypatch.setattr(transactions, "Consumer", FakeConsumer)
    monkeypatch.setattr(transactions, "_reached", made.reached)
    return made


@pytest.fixture
def workers(monkeypatch):
    """Switches between worker processes: each has producers of its own."""
    kept = {}

    def switch(name):
        monkeypatch.setattr(
            transactions, "_writers", kept.setdefault(name, type(transactions._writers)())
        )

    switch("a")
    return switch


def write(batch, *rows, task=0, group="q"):
    transaction = Transaction(CLIENT, {}, Place(group, "SINK", task, batch))
    if not transaction.done:
        for row in rows:
            transaction.producer.produce(row)
    transaction.commit()
    return transaction


def test_a_batch_that_runs_again_writes_nothing(broker, workers):
    assert not write(0, "a").done
    assert write(0, "a").done
    assert not write(1, "b").done
    assert broker.rows == ["a", "b"]


def test_a_producer_is_used_again(broker, workers):
    for batch in range(5):
        write(batch, batch)
    assert broker.rows == [0, 1, 2, 3, 4]
    assert broker.opened == 1


def test_tasks_that_move_between_processes_open_new_producers(broker, workers):
    for batch, worker in enumerate("abba"):
        workers(worker)
        write(batch, batch)
    assert broker.rows == [0, 1, 2, 3]
    assert broker.opened == 3


def test_parts_of_a_batch_are_told_apart(broker, workers):
    write(7, "left", task=0)
    assert not write(7, "right", task=1).done
    assert write(7, "left", task=0).done
    assert not write(7, "other checkpoint", task=0, group="q2").done
    assert broker.rows == ["left", "right", "other checkpoint"]


def test_a_sink_may_have_fewer_partitions_than_there_are_tasks(broker, workers):
    for task in range(3):
        write(4, "row", task=task)
    kept = [(p.topic, p.partition, p.offset) for p in broker.positions]
    assert kept == [("SINK", 0, 5)] * 3, "a broker refuses offsets of partitions that are not there"


def test_who_was_left_behind_cannot_commit(broker, workers):
    zombie = Transaction(CLIENT, {}, Place("q", "SINK", 0, 3))
    zombie.producer.produce("twice")
    workers("b")
    write(3, "once")
    with pytest.raises(KafkaException):
        zombie.commit()
    assert broker.rows == ["once"]


def test_what_a_killed_process_left_open_is_ended_by_the_next(broker, workers):
    """Also by one that has a producer from before."""
    write(0, "a")
    workers("b")
    write(1, "b")
    broker.left_open.add("q-0")
    workers("a")
    write(2, "c")
    assert broker.rows == ["a", "b", "c"] and broker.opened == 3


def test_after_a_failure_a_new_producer_is_opened(broker, workers):
    write(0, "a")
    failed = Transaction(CLIENT, {}, Place("q", "SINK", 0, 1))
    failed.producer.produce("half")
    failed.abort()
    write(1, "whole")
    assert broker.rows == ["a", "whole"]
    assert broker.opened == 2


def test_few_producers_are_kept(broker, workers, monkeypatch):
    monkeypatch.setattr(transactions, "KEPT", 2)
    for task in range(4):
        write(0, task, task=task)
    assert len(transactions._writers) == 2
    assert [broker.owner[f"q-{task}"].closed for task in range(4)] == [True, True, False, False]
