"""Which partition a record belongs to, where not its whole key decides.

The key of a windowed record bears its window. Kafka Streams leaves the window out when it chooses
the partition, so that all windows of a key are together; Kafka's clients would not.
"""

from __future__ import annotations

import pyarrow as pa
from confluent_kafka import murmur2

ANY = -1  # the client chooses


def partitions_of(keys: pa.Array, count: int, without: int = 0) -> list[int]:
    """The partition, of `count`, of each key less its last `without` bytes."""
    end = -without or None
    return [
        ANY if key is None or len(key) < without else murmur2(key[:end], count)
        for key in keys.to_pylist()
    ]
