"""Records written and read on a real broker."""

from __future__ import annotations

import threading
import uuid

import pytest

from headrace.kafka.admin import TopicAdmin, TopicSpec
from headrace.kafka.client import KafkaConnection, UnknownTopicError
from headrace.kafka.records import (
    NewRecord,
    Record,
    RecordReader,
    RecordWriter,
    Written,
)
from headrace.model.errors import HeadraceError

pytestmark = pytest.mark.heavy


def test_a_record_comes_back_as_it_went(
    writer: RecordWriter, reader: RecordReader, topic: str
) -> None:
    headers = (("trace", b"\x00\x01"), ("trace", None), ("empty", b""))
    written = writer.write(NewRecord(topic, b"k", b"v", headers, timestamp=1234, partition=2))
    assert written == Written(2, 0)
    assert list(reader.read(topic)) == [Record(topic, 2, 0, 1234, b"k", b"v", headers)]


def test_null_and_empty_are_different(
    writer: RecordWriter, reader: RecordReader, topic: str
) -> None:
    writer.write_all(
        [
            NewRecord(topic, None, None, partition=0),
            NewRecord(topic, b"", b"", partition=0),
        ]
    )
    assert [(r.key, r.value, r.headers) for r in reader.read(topic)] == [
        (None, None, ()),
        (b"", b"", ()),
    ]


def test_keys_choose_partitions_as_in_java(
    writer: RecordWriter, admin: TopicAdmin, topic: str
) -> None:
    # murmur2 as Kafka's Java producer computes it: toPositive(murmur2(key)) % 3
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    for key, murmur2 in known.items():
        written = writer.write(NewRecord(topic, key, b"v"))
        assert written.partition == (murmur2 & 0x7FFFFFFF) % 3


def test_reading_a_range(writer: RecordWriter, reader: RecordReader, topic: str) -> None:
    values = [str(n).encode() for n in range(10)]
    writer.write_all(NewRecord(topic, value=value, partition=1) for value in values)
    assert [r.value for r in reader.read(topic, start={1: 7})] == values[7:]
    assert [r.value for r in reader.read(topic, start={1: 2}, end={1: 5})] == values[2:5]
    assert list(reader.read(topic, start={1: 10})) == []
    assert [r.value for r in reader.read(topic, end={0: 0, 1: 1})] == values[:1]


def test_reading_many_records(writer: RecordWriter, reader: RecordReader, topic: str) -> None:
    written = writer.write_all(NewRecord(topic, str(n).encode(), b"v") for n in range(20_000))
    assert len(written) == 20_000
    records = list(reader.read(topic))
    assert {(r.partition, r.offset) for r in records} == {(w.partition, w.offset) for w in written}


def test_reading_ends_where_a_transaction_left_its_marker(
    kafka: KafkaConnection, writer: RecordWriter, reader: RecordReader, topic: str
) -> None:
    producer = kafka.producer(transactional_id=f"t{uuid.uuid4()}")
    producer.init_transactions(15)
    for value, commit in ((b"kept", True), (b"given up", False)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(15)
        if commit:
            producer.commit_transaction(15)
        else:
            producer.abort_transaction(15)
    assert [r.value for r in reader.read(topic)] == [b"kept"]


def test_tail(writer: RecordWriter, reader: RecordReader, topic: str) -> None:
    writer.write(NewRecord(topic, value=b"before", partition=0))
    stop = threading.Event()
    tail = reader.tail(topic, start={0: 0}, stop=stop)
    assert next(tail).value == b"before"
    writer.write(NewRecord(topic, value=b"after", partition=2))
    assert next(tail).value == b"after"
    stop.set()
    assert list(tail) == []


def test_a_topic_that_is_not_there(writer: RecordWriter, reader: RecordReader) -> None:
    with pytest.raises(UnknownTopicError, match="Topic 'nowhere' does not exist"):
        list(reader.read("nowhere"))


def test_a_record_that_is_too_large(
    kafka: KafkaConnection, admin: TopicAdmin, writer: RecordWriter
) -> None:
    name = f"small-{uuid.uuid4()}"
    admin.create(TopicSpec(name, configs={"max.message.bytes": "1000"}))
    with pytest.raises(HeadraceError, match=f"A record is too large for topic '{name}'"):
        writer.write(NewRecord(name, value=b"x" * 5000))
    with pytest.raises(HeadraceError, match="has no such partition"):
        writer.write(NewRecord(name, value=b"x", partition=9))
