import random

import pytest

from headrace.spark.state import log as bucket_log
from headrace.spark.state.kernels.aggregate import StreamAggregate, TimeWindow
from headrace.spark.state.kernels.kernel import Output
from headrace.spark.state.kernels.steps import Call
from headrace.spark.state.kernels.stream_table_join import StreamTableJoin
from headrace.spark.state.log import Bucket, Memory, StateMismatchError
from kernel_feeding import Count

SPEC = StreamTableJoin(left_outer=False, right_width=1)


class FakeCells:
    def __init__(self):
        self.cells = {}
        self.read = 0
        self.written = 0
        self.calls = []

    def get(self, run, part):
        self.calls.append(("get", run, part))
        data = self.cells.get((run, part))
        self.read += len(data or b"")
        return data

    def put(self, run, part, data):
        self.calls.append(("put", run, part))
        self.written += len(data)
        self.cells[run, part] = data

    def remove(self, run, part):
        self.calls.append(("remove", run, part))
        del self.cells[run, part]


def put(cells, memory, entries, spec=SPEC):
    bucket = Bucket.open(cells, spec, memory)
    rows = [(i, 1, k, None if v is None else (v,), 0, 0) for i, (k, v) in enumerate(entries)]
    bucket.kernel.run(rows, Output())
    bucket.commit(cells, memory)


def content(cells, memory, spec=SPEC):
    return dict(Bucket.open(cells, spec, memory).store.tables[0].data)


@pytest.mark.parametrize("recent_bytes", [0, 300, 8192])
def test_any_worker_sees_what_any_other_committed(monkeypatch, recent_bytes):
    monkeypatch.setattr(bucket_log, "RECENT_BYTES", recent_bytes)
    chance = random.Random(7)
    cells = FakeCells()
    workers = [Memory(10**9) for _ in range(3)]
    expected = {}
    for batch in range(300):
        entries = [
            (f"k{chance.randrange(200)}", None if chance.random() < 0.3 else batch)
            for _ in range(chance.randrange(1, 9))
        ]
        for key, value in entries:
            if value is None:
                expected.pop(key, None)
            else:
                expected[key] = (value,)
        put(cells, chance.choice(workers), entries)
        assert len(cells.cells) < 15
        if batch % 10 == 0:
            assert content(cells, Memory(0)) == expected
    assert content(cells, Memory(0)) == expected


def test_a_failed_attempts_memory_is_not_taken_for_the_committed_one():
    cells, memory = FakeCells(), Memory(10**9)
    put(cells, memory, [("a", 1)])
    before = dict(cells.cells)
    put(cells, memory, [("a", 2)])
    cells.cells = before  # Spark threw that attempt away
    assert content(cells, memory) == {"a": (1,)}
    put(cells, memory, [("b", 3)])
    assert content(cells, memory) == {"a": (1,), "b": (3,)}


def test_a_batch_that_failed_half_way_leaves_no_memory():
    cells, memory = FakeCells(), Memory(10**9)
    put(cells, memory, [("a", 1)])
    bucket = Bucket.open(cells, SPEC, memory)
    bucket.store.tables[0].put("a", (9,))
    assert content(cells, memory) == {"a": (1,)}


def test_cost_follows_changes_not_state():
    def cost(entries):
        cells, memory = FakeCells(), Memory(10**9)
        put(cells, memory, [(f"k{i}", i) for i in range(entries)])
        cells.read = cells.written = 0
        for batch in range(3_000):
            put(cells, memory, [(f"k{batch}", -1)])
        assert len(cells.cells) > 2, "changes have become runs of their own"
        return cells.read + cells.written

    assert cost(100_000) == pytest.approx(cost(20_000), rel=0.1)


def test_a_small_change_reads_and_writes_the_head_alone():
    cells, memory = FakeCells(), Memory(10**9)
    put(cells, memory, [(f"k{i}", i) for i in range(5_000)])
    cells.calls.clear()
    put(cells, memory, [("k7", -1)])
    assert cells.calls == [("get", 0, 0), ("put", 0, 0)]
    assert content(cells, Memory(0))["k7"] == (-1,)


def test_nothing_changed_nothing_written():
    cells, memory = FakeCells(), Memory(10**9)
    put(cells, memory, [("a", 1)])
    cells.written = 0
    put(cells, memory, [])
    assert cells.written == 0


def test_large_state_is_split_into_parts(monkeypatch):
    monkeypatch.setattr(bucket_log, "PART_BYTES", 100)
    monkeypatch.setattr(bucket_log, "RECENT_BYTES", 0)
    cells = FakeCells()
    put(cells, Memory(0), [(f"k{i}", i) for i in range(100)])
    assert len(cells.cells) > 5
    assert len(content(cells, Memory(0))) == 100


def test_state_of_something_else_is_refused():
    cells = FakeCells()
    put(cells, Memory(0), [("a", 1)])
    other = StreamAggregate((Call("COUNT", Count(), ()),))
    with pytest.raises(StateMismatchError, match="stream-table join"):
        Bucket.open(cells, other, Memory(0))


def test_state_of_an_unknown_format_is_refused(monkeypatch):
    cells = FakeCells()
    put(cells, Memory(0), [("a", 1)])
    monkeypatch.setattr(bucket_log, "FORMAT", bucket_log.FORMAT + 1)
    with pytest.raises(StateMismatchError, match=f"reads format {bucket_log.FORMAT}"):
        Bucket.open(cells, SPEC, Memory(0))


def test_stream_time_alone_is_durable():
    spec = StreamAggregate((Call("COUNT", Count(), ()),), window=TimeWindow.of(10, grace=0))
    cells = FakeCells()
    bucket = Bucket.open(cells, spec, Memory(0))
    bucket.store.times = [77, 5]
    bucket.commit(cells, Memory(0))
    assert Bucket.open(cells, spec, Memory(0)).store.times == [77, 5]


def test_memory_is_bounded():
    memory = Memory(200_000)
    cells = [FakeCells() for _ in range(20)]
    for c in cells:
        put(c, memory, [(f"k{i}", i) for i in range(500)])
    assert 1 <= len(memory) < 10
    assert all(len(content(c, memory)) == 500 for c in cells)
