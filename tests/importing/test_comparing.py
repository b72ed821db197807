"""When two topics hold the same."""

from __future__ import annotations

import json

import pytest

from headrace.importing.comparing import TopicComparer, meanings, shown_text
from headrace.kafka.admin import TopicAdmin, TopicSpec
from headrace.kafka.client import KafkaConnection
from headrace.kafka.records import NewRecord, RecordWriter


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (b'{"A": 1, "B": [1.50, true]}', b'{"B":[1.5,true],"A":1.0}'),
        (b"1.0E10", b"10000000000"),
        (b'"x"', b' "x" '),
        (b"not json", b"not json"),
        (None, None),
    ],
)
def test_what_says_the_same(left: bytes | None, right: bytes | None) -> None:
    meaning = meanings(None)
    assert meaning(left) == meaning(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (b'{"A": 1}', b'{"A": "1"}'),
        (b'{"A": null}', b"{}"),
        (b"true", b"1"),
        (b"null", None),
        (b"[1, 2]", b"[2, 1]"),
        (b"a,b", b"a, b"),
    ],
)
def test_what_does_not(left: bytes | None, right: bytes | None) -> None:
    meaning = meanings(None)
    assert meaning(left) != meaning(right)


def test_numbers_of_any_size_are_compared() -> None:
    meaning = meanings(None)
    assert meaning(b"1e999999") != meaning(b"1e999998")
    assert len(meaning(b"1e999999") or b"") < 20


@pytest.mark.parametrize(
    ("key", "shown"),
    [(None, "null"), ("ä 1".encode(), "ä 1"), (b"u\x00\xff\n", "u\\x00\\xff\\x0a")],
)
def test_keys_are_shown_on_one_line(key: bytes | None, shown: str) -> None:
    assert shown_text(key) == shown


@pytest.mark.heavy
def test_topics(kafka: KafkaConnection, admin: TopicAdmin, writer: RecordWriter) -> None:
    def write(topic: str, policy: str, *records: tuple[str | None, object]) -> None:
        admin.create(TopicSpec(topic, 2, 1, {"cleanup.policy": policy}))
        writer.write_all(
            NewRecord(
                topic,
                None if key is None else key.encode(),
                None if value is None else json.dumps(value).encode(),
                timestamp=1000 + i,
            )
            for i, (key, value) in enumerate(records)
        )

    write("stream", "delete", ("a", 1), ("b", 2), ("a", 3), (None, 4), (None, 5))
    write("stream-alike", "delete", ("b", 2), ("a", 1.0), (None, 5), ("a", 3), (None, 4))
    write("stream-other", "delete", ("a", 3), ("b", 2), ("a", 1), (None, 4))
    comparer = TopicComparer(kafka)
    alike = comparer.compare("stream", "stream-alike")
    assert alike.same and not alike.as_table
    assert (alike.records, alike.keys) == ((5, 5), (3, 3))
    assert not TopicComparer(kafka, timestamps=True).compare("stream", "stream-alike").same
    other = comparer.compare("stream", "stream-other")
    assert other.differing == 2
    by_key = {d.key: d for d in other.shown}
    assert (by_key["a"].left, by_key["a"].right) == (("1", "3"), ("3", "1"))
    assert by_key["null"].right == ("4",)
    unordered = TopicComparer(kafka, any_order=True).compare("stream", "stream-other")
    assert [d.key for d in unordered.shown] == ["null"]

    write("table", "compact", ("a", 1), ("a", 2), ("b", 1), ("b", None))
    write("table-alike", "compact", ("a", 2))
    found = comparer.compare("table", "table-alike")
    assert found.same and found.as_table
    assert not TopicComparer(kafka, as_table=False).compare("table", "table-alike").same
    assert comparer.compare("table", "table").same
