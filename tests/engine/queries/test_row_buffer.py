"""Rows on their way to a client: never many in memory, whoever reads them."""

from __future__ import annotations

import itertools
import socket
import threading
from types import SimpleNamespace

import pyarrow as pa
import pytest

from headrace.engine.queries.row_buffer import RowBuffer
from headrace.engine.tables.pull import (
    FIRST_RECORDS,
    MOST_RECORDS,
    PullAnswer,
    slices,
)
from headrace.engine.tables.row_store import RowStore, Update
from headrace.engine.tables.rows import RowReader
from headrace.model.requests import ResultRow
from headrace.model.schema import Column, Namespace, Schema
from headrace.model.sources import Serde, Source, SourceKind, WindowedKey, WindowType
from headrace.model.types import STRING
from headrace.plan.pull import Bound, KeyConstraint, Range
from headrace.spark.internals import state_sockets
from headrace.spark.sink import packed_rows as packed
from headrace.spark.sink.packed_rows import PackedRows
from server_process import eventually


def batch(rows: int, size: int, first: int = 0) -> pa.RecordBatch:
    numbers = list(range(first, first + rows))
    return pa.RecordBatch.from_pydict({"n": numbers, "t": ["x" * size for _ in numbers]})


def evaluated(batches, directory) -> PackedRows:
    """What one task makes of its rows."""
    (found,) = (
        row for made in packed._packer(directory)(iter(batches)) for row in made.to_pylist()
    )
    return PackedRows(found["size"], ((found["rows"], found["file"]),), directory)


def test_few_rows_travel_with_the_task(tmp_path):
    directory = str(tmp_path / "rows")
    found = evaluated([batch(10, 10), batch(0, 0), batch(5, 10, 10)], directory)
    assert not (tmp_path / "rows").exists()
    assert [n for chunk in found.chunks() for n in chunk.column(0).to_pylist()] == list(range(15))


def test_many_rows_are_written_down_and_read_in_small_chunks(tmp_path):
    found = evaluated([batch(10_000, 200), batch(10_000, 200, 10_000)], str(tmp_path))
    assert found.size > 4_000_000
    assert len(list(tmp_path.iterdir())) == 1
    numbers = []
    for chunk in found.chunks():
        assert chunk.nbytes <= 2 * packed.CHUNK_BYTES
        numbers += chunk.column(0).to_pylist()
    assert numbers == list(range(20_000))
    assert list(tmp_path.iterdir()) == []  # read once


def test_one_row_that_is_larger_than_a_chunk(tmp_path):
    found = evaluated([batch(3, 3 * packed.CHUNK_BYTES)], str(tmp_path))
    assert [chunk.num_rows for chunk in found.chunks()] == [1, 1, 1]


def test_without_a_shared_disk_all_travels_with_the_task():
    found = evaluated([batch(10_000, 200)], None)
    assert sum(chunk.num_rows for chunk in found.chunks()) == 10_000


def test_a_task_that_fails_leaves_no_file(tmp_path):
    def failing():
        yield batch(10_000, 200)
        assert len(list(tmp_path.iterdir())) == 1
        raise RuntimeError("in a step before")

    with pytest.raises(RuntimeError):
        list(packed._packer(str(tmp_path))(failing()))
    assert list(tmp_path.iterdir()) == []


def test_a_task_without_rows_says_nothing(tmp_path):
    assert list(packed._packer(str(tmp_path))(iter([batch(0, 0)]))) == []


# ------------------------------------------------------------------------------------ waiting


def rows_of(size: int) -> PackedRows:
    return PackedRows(size, (), None)


def waiting_writer(buffer: RowBuffer) -> tuple[threading.Thread, list[bool]]:
    """A writer that waits for room, and then what it was told."""
    told: list[bool] = []
    thread = threading.Thread(target=lambda: told.append(buffer.wait_for_room()), daemon=True)
    thread.start()
    eventually(lambda: buffer.is_full, 5)
    return thread, told


def test_nothing_more_is_made_while_so_many_bytes_wait():
    buffer = RowBuffer(most=100)
    assert buffer.wait_for_room()
    buffer.put(rows_of(60))
    assert buffer.wait_for_room()
    buffer.put(rows_of(1000))  # a large one goes over the limit, once
    thread, told = waiting_writer(buffer)
    assert buffer.size == 1060
    assert buffer.get(5).size == 60
    thread.join(0.1)
    assert thread.is_alive()
    assert buffer.get(5).size == 1000
    thread.join(5)
    assert told == [True] and not buffer.is_full
    assert buffer.get(0) is None


def test_who_brings_is_let_go_when_nobody_reads_any_more(tmp_path):
    buffer = RowBuffer(most=10)
    buffer.put(rows_of(10))
    thread, told = waiting_writer(buffer)
    buffer.close()
    thread.join(5)
    assert told == [False]
    buffer.put(evaluated([batch(10_000, 200)], str(tmp_path)))
    assert list(tmp_path.iterdir()) == []  # its rows are deleted
    assert buffer.get(5) is None


def test_a_writer_without_room_can_be_barred_and_what_waits_stays():
    buffer = RowBuffer(most=10)
    assert not buffer.bar()  # nobody waits
    buffer.put(rows_of(10))
    thread, told = waiting_writer(buffer)
    assert buffer.bar()
    thread.join(5)
    assert told == [False] and buffer.get(5).size == 10
    assert not buffer.wait_for_room()  # until it is let in again
    buffer.admit()
    assert buffer.wait_for_room()


# ------------------------------------------------------------------------------------ pulling


def test_a_topic_is_read_in_growing_pieces():
    begin, end = {0: 10, 1: 0, 2: 7}, {0: 3_000_000, 1: 40_000, 2: 7}
    pieces = list(slices(begin, end))
    assert pieces[0][0] == begin
    assert pieces[-1][1] == end
    for (_, high), (low, _) in itertools.pairwise(pieces):
        assert high == low
    sizes = [sum(high.values()) - sum(low.values()) for low, high in pieces]
    assert sizes[0] <= FIRST_RECORDS
    assert max(sizes) <= MOST_RECORDS
    assert list(slices({0: 5}, {0: 5})) == []
    assert list(slices({0: 5}, {0: 3})) == []  # made again meanwhile
    assert list(slices({0: 5}, {0: 6, 1: 1})) == [({0: 5, 1: 0}, {0: 6, 1: 1})]  # grown meanwhile


@pytest.mark.parametrize(
    ("limit", "rows", "message"),
    [(None, 6, "done"), (4, 4, "limit"), (6, 6, "limit"), (9, 6, "done")],
)
def test_an_answer_ends_at_its_limit(limit, rows, message):
    asked: list[int] = []
    ended: list[bool] = []

    def batches():
        for i in range(3):
            asked.append(i)
            yield [ResultRow([i]), ResultRow([i])]

    answer = PullAnswer(Schema(), batches(), limit, ("limit", "done"), lambda: ended.append(True))
    found = []
    while (batch := answer.next_batch(1)) is not None:
        found += batch
    assert len(found) == rows
    assert (answer.final_message, ended) == (message, [True])
    assert len(asked) == (rows + 1) // 2  # nothing is computed that nobody gets
    answer.close()
    assert ended == [True]


# ------------------------------------------------------------------------------------ lines


def test_python_hangs_up_after_the_jvm(monkeypatch):
    pairs = [socket.socketpair() for _ in range(4)]
    lines = [
        SimpleNamespace(_client_socket=ours, sockfile=ours.makefile("rwb")) for ours, _ in pairs
    ]
    waiting = list(lines)
    monkeypatch.setattr(state_sockets, "_open", waiting)
    for other in (pairs[2][1], pairs[3][1]):
        other.send(b"an answer that nobody read")
    for other in (pairs[1][1], pairs[3][1]):
        other.close()
    state_sockets.close_ended()
    assert waiting == [lines[0], lines[2]]
    assert [ours.fileno() == -1 for ours, _ in pairs] == [False, True, False, True]
    for line in waiting:
        line._client_socket.close()


# ------------------------------------------------------------------------------------ constraints


def table(window: WindowedKey | None = None) -> RowReader:
    columns = (Column("K", STRING, Namespace.KEY), Column("V", STRING))
    source = Source(
        "T", SourceKind.TABLE, Schema(columns), "t", Serde("KAFKA"), Serde("JSON"), window=window
    )
    return RowReader(SimpleNamespace(registry=None), source)


def between(low: str | None, high: str | None) -> KeyConstraint:
    lower = None if low is None else Bound(low, True)
    upper = None if high is None else Bound(high, True)
    return KeyConstraint(range=Range(lower, upper))


def store_of(path, *keys: bytes) -> RowStore:
    store = RowStore(path, "a")
    store.apply([Update(key, b"{}", 1, 0, i, ()) for i, key in enumerate(keys)], {0: len(keys)})
    return store


@pytest.mark.parametrize(
    ("constraints", "found"),
    [
        ((KeyConstraint(("c",)), KeyConstraint(("a",)), KeyConstraint(("c",))), "ca"),
        ((between("b", "d"), between("c", None)), "bcde"),
        ((between("d", None), between(None, None)), "deabc"),
        (
            (
                KeyConstraint(("b",)),
                between("a", "c"),
                KeyConstraint(("a",)),
                KeyConstraint(("e",)),
            ),
            "bace",
        ),
        ((KeyConstraint(("none",)), between("x", "z")), ""),
    ],
)
def test_each_record_is_found_once_by_several_lookups(tmp_path, constraints, found):
    store = store_of(tmp_path / "t.rows", *(letter.encode() for letter in "abcde"))
    assert b"".join(r.key for r in table().find_all(store, constraints)).decode() == found


def test_windows_of_a_key_are_found_once(tmp_path):
    windowed = table(WindowedKey(WindowType.TUMBLING, 10))
    keys = [k + start.to_bytes(8, "big") for k in (b"a", b"ab") for start in (0, 10, 20)]
    store = store_of(tmp_path / "t.rows", *keys)
    late = Range(Bound(10, True))
    constraints = (
        KeyConstraint(("a",), window_start=late),
        KeyConstraint(("a",)),
        KeyConstraint(("ab",)),
    )
    found = [r.key for r in windowed.find_all(store, constraints)]
    assert found == [keys[1], keys[2], keys[0], *keys[3:]]
