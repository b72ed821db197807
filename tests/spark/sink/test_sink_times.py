"""The times that the sink gives to librdkafka, to which 0 means now."""

from __future__ import annotations

import pyarrow as pa

from headrace.spark.sink import kafka as sink


class Producer:
    def __init__(self) -> None:
        self.sent: list[tuple[bytes, int]] = []

    def produce(self, topic, value, key, partition, callback, on_delivery, timestamp):
        self.sent.append((value, timestamp))

    def poll(self, timeout):
        return 0


def test_time_zero_is_a_millisecond_late_and_keeps_its_place():
    producer = Producer()
    task = sink._Task(sink.SinkTarget("Q", "t", ()), producer)
    values = {sink.KEY: [b"k"] * 3, sink.VALUE: [b"a", b"b", b"c"], sink.TIME: [5, 0, 7]}
    task.produce(pa.RecordBatch.from_pydict(values))
    assert producer.sent == [(b"a", 5), (b"b", 1), (b"c", 7)]
