"""A thousand windows pass; what is kept, in memory and durable, is what is still open."""

import pytest
from test_bucket_log import FakeCells

from headrace.spark.state.kernels.aggregate import StreamAggregate, TimeWindow
from headrace.spark.state.kernels.kernel import Output
from headrace.spark.state.kernels.session_aggregate import SessionAggregate, SessionWindow
from headrace.spark.state.kernels.steps import Call
from headrace.spark.state.kernels.stream_join import StreamStreamJoin
from headrace.spark.state.log import Bucket, Memory
from kernel_feeding import Count

COUNT = (Call("COUNT", Count(), ()),)
SIZE, GRACE, KEYS = 60_000, 120_000, 20

KERNELS = {
    "tumbling": (StreamAggregate(COUNT, window=TimeWindow.of(SIZE, grace=GRACE)), 3),
    "hopping": (StreamAggregate(COUNT, window=TimeWindow.of(SIZE, SIZE // 4, GRACE)), 12),
    "final": (StreamAggregate(COUNT, window=TimeWindow.of(SIZE, grace=GRACE), final=True), 3),
    "sessions": (SessionAggregate(COUNT, SessionWindow.of(SIZE // 4, GRACE)), 4),
    "inner": (StreamStreamJoin.of("INNER", (1, 1), SIZE, SIZE, GRACE), 10),
    "outer": (StreamStreamJoin.of("OUTER", (1, 1), SIZE, SIZE, GRACE), 14),
}


@pytest.mark.parametrize("name", KERNELS)
def test_state_beyond_windows_and_grace_is_dropped(name):
    spec, windows = KERNELS[name]
    cells, memory = FakeCells(), Memory(10**9)
    entries, stored = [], []
    for window in range(1000):
        bucket = Bucket.open(cells, spec, memory)
        now = window * SIZE
        sides = (0, 1) if "JOIN" in type(spec).__name__.upper() else (0,)
        rows = [(i, side, f"k{i}", (i,), now + i, now + i) for i in range(KEYS) for side in sides]
        out = Output()
        bucket.kernel.run([(at, *row[1:]) for at, row in enumerate(rows)], out)
        for side in sides:
            bucket.store.times[side] = now + KEYS - 1
        for side in sides:
            bucket.kernel.advance(side, bucket.store.now, out)
        bucket.commit(cells, memory)
        entries.append(sum(len(table.data) for table in bucket.store.tables))
        stored.append(sum(map(len, cells.cells.values())))
    assert max(entries) <= KEYS * windows
    assert max(entries[100:]) == max(entries[900:])
    # Runs are merged as they come, so what is stored may be some times what is open.
    assert max(stored[900:]) <= 1.1 * max(stored[100:200])
    assert cells.written / 1000 < 4 * max(stored)
