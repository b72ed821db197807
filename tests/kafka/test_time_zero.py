"""Records of time 0, which librdkafka takes for "now": they are written a millisecond late."""

import pytest

from headrace.kafka.records import NewRecord

pytestmark = pytest.mark.heavy


def test_time_zero_is_the_earliest_that_can_be_written(writer, reader, topic):
    records = [
        NewRecord(topic, b"k", b"0", timestamp=5, partition=0),
        NewRecord(topic, b"k", b"1", (("h", b"x"), ("n", None)), timestamp=0, partition=0),
        NewRecord(topic, None, None, timestamp=0, partition=0),
        NewRecord(topic, b"k", b"3", timestamp=7, partition=0),
    ]
    written = writer.write_all(records)
    assert [w.offset for w in written] == [0, 1, 2, 3]
    found = list(reader.read(topic))
    assert [(r.timestamp, r.value) for r in found] == [(5, b"0"), (1, b"1"), (1, None), (7, b"3")]
    assert found[1].headers == (("h", b"x"), ("n", None))
