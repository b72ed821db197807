"""Partitions of keys: those that Kafka's clients choose, with the window left out."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.sink.partitions import ANY, partitions_of

# What Kafka's Java producer makes of a key, before it is made positive.
HASHES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"abc": 479470107,
}


@pytest.mark.parametrize("count", [1, 2, 12, 1000])
def test_the_hash_is_that_of_kafkas_clients(count):
    expected = [(hashed & 0x7FFFFFFF) % count for hashed in HASHES.values()]
    assert partitions_of(pa.array(HASHES, pa.binary()), count) == expected


def test_a_record_without_a_key_goes_anywhere():
    assert partitions_of(pa.array([None], pa.binary()), 5) == [ANY]


@given(st.lists(st.binary(max_size=12), min_size=3), st.sampled_from((8, 16)))
def test_windows_of_a_key_are_together(keys, width):
    windowed = pa.array([key + bytes([i % 250] * width) for i, key in enumerate(keys)])
    alone = pa.array(keys, pa.binary())
    assert partitions_of(windowed, 5, width) == partitions_of(alone, 5)
    assert partitions_of(windowed[2:], 5, width) == partitions_of(alone[2:], 5)


def test_a_key_shorter_than_a_window_goes_anywhere():
    assert partitions_of(pa.array([b"abc"]), 5, 8) == [ANY]
