"""Topics on a real broker."""

from __future__ import annotations

import time
import uuid

import pytest
from confluent_kafka import TopicPartition

from headrace.kafka.admin import Topic, TopicAdmin, TopicSpec
from headrace.kafka.client import KafkaConnection, TopicExistsError, UnknownTopicError
from headrace.kafka.ports import free_port
from headrace.kafka.records import NewRecord, RecordWriter
from headrace.model.errors import HeadraceError, UnavailableError


@pytest.mark.heavy
def test_a_topic_from_creation_to_deletion(admin: TopicAdmin) -> None:
    name = f"shipments-{uuid.uuid4()}"
    assert not admin.exists(name)
    configs = {"cleanup.policy": "compact", "retention.ms": "1234567"}
    admin.create(TopicSpec(name, partitions=2, replicas=1, configs=configs))

    assert admin.exists(name)
    assert admin.describe(name) == Topic(name, (1, 1)) == admin.topics()[name]
    assert configs.items() <= admin.configs(name).items()
    admin.set_configs(name, {"retention.ms": "7"})
    assert admin.configs(name)["retention.ms"] == "7"
    assert admin.configs(name)["cleanup.policy"] == "compact"
    admin.add_partitions(name, 3)
    assert admin.describe(name).partitions == 3
    with pytest.raises(TopicExistsError, match=f"Topic '{name}' already exists"):
        admin.create(TopicSpec(name))

    admin.delete(name)
    assert name not in admin.topics()
    with pytest.raises(UnknownTopicError, match=f"Topic '{name}' does not exist"):
        admin.describe(name)
    with pytest.raises(UnknownTopicError):
        admin.delete(name)


@pytest.mark.heavy
def test_a_topic_of_the_same_name_is_a_new_one(admin: TopicAdmin, writer: RecordWriter) -> None:
    name = f"again-{uuid.uuid4()}"
    known = set()
    for _ in range(20):
        admin.ensure(TopicSpec(name))
        known.add(admin.id(name))
        writer.write(NewRecord(name, value=b"x"))
        assert admin.end_offsets(name) == {0: 1}
        admin.delete(name)
    assert len(known) == 20


@pytest.mark.heavy
def test_offsets_by_time_and_by_consumer_group(
    admin: TopicAdmin, writer: RecordWriter, kafka: KafkaConnection
) -> None:
    name, group = f"times-{uuid.uuid4()}", f"readers-{uuid.uuid4()}"
    admin.create(TopicSpec(name, partitions=3))
    for partition, times in enumerate([(1000, 2000, 3000), (5000,), ()]):
        writer.write_all(
            NewRecord(name, value=b"x", timestamp=t, partition=partition) for t in times
        )
    assert admin.offsets_at(name, 1) == {0: 0, 1: 0, 2: 0}
    assert admin.offsets_at(name, 2000) == {0: 1, 1: 0, 2: 0}
    assert admin.offsets_at(name, 2001) == {0: 2, 1: 0, 2: 0}
    assert admin.offsets_at(name, 9000) == {0: 3, 1: 1, 2: 0}

    assert admin.group_positions(group) == {}
    consumer = kafka.consumer(group_id=group)
    consumer.commit(
        offsets=[TopicPartition(name, 0, 2), TopicPartition(name, 1, 1)], asynchronous=False
    )
    consumer.close()
    assert admin.group_positions(group) == {name: {0: 2, 1: 1}}

    assert admin.members(group) == 0
    member = kafka.consumer(group_id=group)
    member.subscribe([name])
    deadline = time.monotonic() + 30
    while not admin.members(group):
        assert time.monotonic() < deadline
        member.poll(0.1)
    member.close()


def test_a_deleted_topic_is_waited_for_until_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka acknowledges a deletion before every broker knows of it."""
    admin = TopicAdmin(KafkaConnection({"bootstrap.servers": "127.0.0.1:1"}))
    deleted: list[str] = []
    still_seen = [True, True, False, True, False]
    monkeypatch.setattr(admin, "_finish", lambda name, call: deleted.append(name))
    monkeypatch.setattr(admin, "exists", lambda name: still_seen.pop(0))
    admin.delete("going")
    assert (deleted, still_seen) == (["going"], [True, False])
    admin.delete("gone")
    assert (deleted, still_seen) == (["going", "gone"], [])


def test_changed_configs_and_added_partitions_are_waited_for_until_they_are_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    admin = TopicAdmin(KafkaConnection({"bootstrap.servers": "127.0.0.1:1"}))
    monkeypatch.setattr(admin, "_finish", lambda name, call: None)
    retention, partitions = ["9", "9", "7"], [2, 2, 3]
    monkeypatch.setattr(admin, "configs", lambda name: {"retention.ms": retention.pop(0), "a": "b"})
    monkeypatch.setattr(admin, "describe", lambda name: Topic(name, (1,) * partitions.pop(0)))
    admin.set_configs("changed", {"retention.ms": "7"})
    admin.add_partitions("grown", 3)
    assert (retention, partitions) == ([], [])


@pytest.mark.heavy
def test_offsets(admin: TopicAdmin, writer: RecordWriter, topic: str) -> None:
    assert admin.begin_offsets(topic) == admin.end_offsets(topic) == {0: 0, 1: 0, 2: 0}
    for timestamp in (1000, 2000, 3000):
        writer.write(NewRecord(topic, partition=1, timestamp=timestamp))
    assert admin.end_offsets(topic) == {0: 0, 1: 3, 2: 0}


@pytest.mark.heavy
def test_a_topic_that_kafka_refuses(admin: TopicAdmin) -> None:
    with pytest.raises(HeadraceError, match="Kafka refused the request about 'no spaces'"):
        admin.create(TopicSpec("no spaces"))
    with pytest.raises(HeadraceError, match="eplication"):
        admin.create(TopicSpec(f"t{uuid.uuid4()}", replicas=7))


def test_no_broker() -> None:
    port = free_port()
    connection = KafkaConnection({"bootstrap.servers": f"127.0.0.1:{port}"}, timeout=0.5)
    started = time.monotonic()
    with pytest.raises(UnavailableError, match=f"Kafka at 127.0.0.1:{port} does not answer: "):
        TopicAdmin(connection).topics()
    with pytest.raises(UnavailableError):
        TopicAdmin(connection).describe("t")
    with pytest.raises(UnavailableError):
        RecordWriter(connection).write(NewRecord("t", value=b""))
    assert time.monotonic() - started < 10


@pytest.mark.heavy
def test_offsets_of_a_group_without_members(admin: TopicAdmin, topic: str) -> None:
    """As lag tools see them: committed, changed, also backwards, and gone with the group."""
    group, other = f"g-{uuid.uuid4()}", f"g-{uuid.uuid4()}"
    assert admin.commit({group: {topic: {0: 5, 1: 7}}, other: {topic: {2: 1}}}, 15) == {}
    assert admin.group_positions(group) == {topic: {0: 5, 1: 7}}
    assert admin.group_positions(other) == {topic: {2: 1}}
    assert {group, other} <= set(admin.groups())
    assert admin.commit({group: {topic: {0: 2}}}, 15) == {}
    assert admin.group_positions(group) == {topic: {0: 2, 1: 7}}

    assert admin.delete_groups([group, "never-there"], 15) == {}
    assert admin.group_positions(group) == {}
    assert group not in admin.groups()
    assert other in admin.groups()


@pytest.mark.heavy
def test_offsets_of_a_topic_that_is_gone(admin: TopicAdmin, topic: str) -> None:
    group, gone = f"g-{uuid.uuid4()}", f"gone-{uuid.uuid4()}"
    failures = admin.commit({group: {topic: {0: 1}, gone: {0: 1}}}, 15)
    assert str(failures[group]) == f"Topic '{gone}' does not exist in Kafka."
    assert admin.group_positions(group) == {topic: {0: 1}}


@pytest.mark.heavy
def test_offsets_of_a_group_with_members(
    admin: TopicAdmin, topic: str, kafka: KafkaConnection
) -> None:
    """Such as a ksqlDB that still runs under our name: it is told, and nothing is overwritten."""
    group = f"g-{uuid.uuid4()}"
    consumer = kafka.consumer(group_id=group)
    consumer.subscribe([topic])
    deadline = time.monotonic() + 20
    while not consumer.assignment() and time.monotonic() < deadline:
        consumer.poll(0.1)
    failures = admin.commit({group: {topic: {0: 1}}}, 15)
    assert list(failures) == [group]
    assert admin.group_positions(group) == {}
    assert list(admin.delete_groups([group], 15)) == [group]
    consumer.close()


def test_groups_of_a_broker_that_is_away() -> None:
    admin = TopicAdmin(
        KafkaConnection({"bootstrap.servers": f"127.0.0.1:{free_port()}"}, timeout=1)
    )
    began = time.monotonic()
    failures = admin.commit({"a": {"t": {0: 1}}, "b": {"t": {0: 1}}}, 1)
    assert all(isinstance(failures[group], UnavailableError) for group in ("a", "b"))
    assert isinstance(admin.delete_groups(["a"], 1)["a"], UnavailableError)
    assert time.monotonic() - began < 8
