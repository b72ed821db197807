"""Records of time 0, which librdkafka alone would stamp with the current time."""

import pytest

from headrace.topics.records import NewRecord

pytestmark = pytest.mark.heavy


def test_time_zero_keeps_its_time_and_its_place(writer, reader, topic):
    records = [
        NewRecord(topic, b"k", b"0", timestamp=5, partition=0),
        NewRecord(topic, b"k", b"1", (("h", b"x"),), timestamp=0, partition=0),
        NewRecord(topic, None, None, timestamp=0, partition=0),
        NewRecord(topic, b"k", b"3", timestamp=7, partition=0),
    ]
    written = writer.write_all(records)
    assert [w.offset for w in written] == [0, 1, 2, 3]
    found = list(reader.read(topic))
    assert [(r.timestamp, r.value) for r in found] == [(5, b"0"), (0, b"1"), (0, None), (7, b"3")]
    assert found[1].headers == (("h", b"x"),)


def test_keys_choose_the_same_partition_at_any_time(writer, topic):
    keys = [f"key {i}".encode() for i in range(20)]
    late = writer.write_all([NewRecord(topic, key, b"", timestamp=1) for key in keys])
    early = writer.write_all([NewRecord(topic, key, b"", timestamp=0) for key in keys])
    assert [w.partition for w in early] == [w.partition for w in late]


def test_a_header_without_value_makes_time_zero_a_millisecond_late(writer, reader, topic):
    writer.write(NewRecord(topic, b"k", b"v", (("h", None),), timestamp=0))
    (found,) = reader.read(topic)
    assert (found.timestamp, found.headers) == (1, (("h", None),))
