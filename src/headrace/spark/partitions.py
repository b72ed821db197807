"""Which partition a record belongs to, where not its whole key decides.

The key of a windowed record bears its window. Kafka Streams leaves the window out when it chooses
the partition, so that all windows of a key are together; Kafka's clients would not. The hash is
the one of Kafka's Java producer, for a whole column at a time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

ANY = -1  # the client chooses

_Words = npt.NDArray[np.uint32]
_M = np.uint32(0x5BD1E995)
_SEED = 0x9747B28C


def partitions_of(keys: pa.Array, count: int, without: int = 0) -> list[int]:
    """The partition, of `count`, of each key less its last `without` bytes."""
    places = np.full(len(keys), ANY, dtype=np.int64)
    column = keys.cast(pa.large_binary())
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int64)
    offsets = offsets[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(column.buffers()[2] or b"", dtype=np.uint8)
    lengths = np.diff(offsets) - without
    lengths[~keys.is_valid().to_numpy(zero_copy_only=False)] = ANY
    for length in np.unique(lengths[lengths >= 0]).tolist():
        (rows,) = np.nonzero(lengths == length)
        hashed = _murmur2(data[offsets[rows][:, None] + np.arange(length)])
        places[rows] = (hashed & np.uint32(0x7FFFFFFF)).astype(np.int64) % count
    found: list[int] = places.tolist()
    return found


def _murmur2(keys: npt.NDArray[np.uint8]) -> _Words:
    """Of keys of one length, a row each."""
    count, length = keys.shape
    h: _Words = np.full(count, (_SEED ^ length) & 0xFFFFFFFF, dtype=np.uint32)
    whole = length // 4 * 4
    for at in range(0, whole, 4):
        k = _word(keys[:, at : at + 4]) * _M
        k = (k ^ (k >> np.uint32(24))) * _M
        h = h * _M ^ k
    if whole < length:
        h = (h ^ _word(keys[:, whole:])) * _M
    h = (h ^ (h >> np.uint32(13))) * _M
    return h ^ (h >> np.uint32(15))


def _word(part: npt.NDArray[np.uint8]) -> _Words:
    """Up to four bytes, the lowest first."""
    word: _Words = np.zeros(len(part), dtype=np.uint32)
    for i in range(part.shape[1]):
        word |= part[:, i].astype(np.uint32) << np.uint32(8 * i)
    return word
