"""The rows of a topic on disk."""

from __future__ import annotations

import sqlite3
import time

import pytest

from headrace.engine.tables import row_store as rowstore
from headrace.engine.tables.row_store import RowStore, Update, headers_of


def update(key: bytes, value: bytes | None, offset: int, headers=(), partition: int = 0) -> Update:
    return Update(key, value, 1000 + offset, partition, offset, headers)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t.rows"


def keys(records) -> list[bytes]:
    return [r.key for r in records]


def test_the_last_record_of_a_key_counts(path):
    store = RowStore(path, "a")
    store.apply([update(b"k", b"1", 0), update(b"j", b"2", 1), update(b"k", b"3", 2)], {0: 3})

    assert store.get(b"k") == (b"k", b"3", 1002, 0, 2, None)
    assert store.get(b"j").value == b"2"
    assert store.get(b"none") is None
    assert store.positions() == {0: 3}


def test_a_record_without_value_deletes(path):
    store = RowStore(path, "a")
    store.apply([update(b"k", b"1", 0), update(b"j", b"1", 1), update(b"k", None, 2)], {0: 3})
    store.apply([update(b"j", None, 3)], {0: 4})

    assert keys(store.scan()) == []


def test_ranges_are_in_the_order_of_bytes(path):
    store = RowStore(path, "a")
    store.apply([update(k, b"v", i) for i, k in enumerate((b"b", b"a", b"\xff", b"ab", b""))], {})

    assert keys(store.scan()) == [b"", b"a", b"ab", b"b", b"\xff"]
    assert keys(store.scan(b"a", b"b")) == [b"a", b"ab"]
    assert keys(store.scan(b"ab")) == [b"ab", b"b", b"\xff"]


def test_a_scan_goes_from_partition_to_partition(path):
    store = RowStore(path, "a")
    rows = ((b"a", 1), (b"b", 0), (b"c", 1), (b"d", 0))
    store.apply([update(k, b"v", i, partition=p) for i, (k, p) in enumerate(rows)], {0: 4, 1: 4})

    assert keys(store.scan()) == [b"b", b"d", b"a", b"c"]
    assert keys(store.scan(b"b", b"d")) == [b"b", b"c"]


def test_a_scan_sees_what_was_there_when_it_began(path):
    store = RowStore(path, "a")
    store.apply([update(b"%d" % i, b"v", i) for i in range(10)], {0: 10})
    scan = store.scan()
    next(scan)
    store.apply([update(b"9", None, 11)], {0: 12})

    assert len(list(scan)) == 9


def test_it_goes_on_where_it_stopped(path):
    store = RowStore(path, "a")
    store.apply([update(b"k", b"1", 6)], {0: 7, 1: 3})
    store.close()

    again = RowStore(path, "a")
    assert again.positions() == {0: 7, 1: 3}
    assert again.get(b"k").value == b"1"


@pytest.mark.parametrize("change", ["topic", "absence", "damage"])
def test_what_cannot_be_trusted_is_dropped(path, change, monkeypatch):
    store = RowStore(path, "a")
    store.apply([update(b"k", b"1", 0)], {0: 1})
    store.close()
    if change == "absence":
        later = time.time() + rowstore.MAX_ABSENCE_SECONDS + 1
        monkeypatch.setattr(time, "time", lambda: later)
    if change == "damage":
        path.write_bytes(b"not a database" * 1000)

    again = RowStore(path, "b" if change == "topic" else "a")
    assert again.positions() == {}
    assert again.get(b"k") is None


def test_what_the_topic_forgot_is_forgotten(path):
    store = RowStore(path, "a")
    store.expire({0: 0, 1: 0})
    store.apply(
        [update(b"old", b"1", 3), update(b"new", b"1", 7), update(b"other", b"1", 2, partition=1)],
        {0: 8, 1: 3},
    )
    store.expire({0: 5, 1: 0})

    assert keys(store.scan()) == [b"new", b"other"]
    assert store.positions() == {0: 8, 1: 3}


def test_headers_are_kept(path):
    store = RowStore(path, "a")
    store.apply([update(b"k", b"1", 0, (("a", b"\x00\xff"), ("a", None)))], {0: 1})

    assert list(headers_of(store.get(b"k"))) == [("a", b"\x00\xff"), ("a", None)]


@pytest.mark.parametrize(("code", "kept"), [("SQLITE_FULL", True), ("SQLITE_CORRUPT", False)])
def test_only_a_damaged_file_is_given_up(path, monkeypatch, code, kept):
    """A full disk is no damage: the rows are still there when it has room again."""
    store = RowStore(path, "a")
    store.apply([update(b"k", b"1", 0)], {0: 1})
    store.close()
    prepared, calls = RowStore._prepared_writer, []

    def failing(self):
        calls.append(self)
        if len(calls) == 1:
            failure = sqlite3.OperationalError(code)
            failure.sqlite_errorcode = getattr(sqlite3, code)
            raise failure
        return prepared(self)

    monkeypatch.setattr(RowStore, "_prepared_writer", failing)
    if kept:
        with pytest.raises(sqlite3.OperationalError):
            RowStore(path, "a")
    found = RowStore(path, "a").get(b"k")
    assert (found is not None) == kept
