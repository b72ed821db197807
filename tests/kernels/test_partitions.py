"""Partitions of keys: those that Kafka's clients choose, with the window left out."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

from headrace.spark.partitions import ANY, partitions_of


@given(st.lists(st.none() | st.binary(max_size=20)), st.integers(1, 12))
def test_the_hash_is_that_of_kafkas_clients(keys, count):
    expected = [ANY if k is None else (murmur2(k) & 0x7FFFFFFF) % count for k in keys]
    assert partitions_of(pa.array(keys, pa.binary()), count) == expected


@given(st.lists(st.binary(max_size=12), min_size=3), st.sampled_from((8, 16)))
def test_windows_of_a_key_are_together(keys, width):
    windowed = pa.array([key + bytes([i % 250] * width) for i, key in enumerate(keys)])
    alone = pa.array(keys, pa.binary())
    assert partitions_of(windowed, 5, width) == partitions_of(alone, 5)
    assert partitions_of(windowed[2:], 5, width) == partitions_of(alone[2:], 5)


def test_a_key_shorter_than_a_window_goes_anywhere():
    assert partitions_of(pa.array([b"abc"]), 5, 8) == [ANY]
