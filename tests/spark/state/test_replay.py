"""Batches that are lost and run again, on workers that die or remember the wrong thing.

Spark keeps the cells of the last finished batch; everything else may be gone or be of an attempt
that never counted. Whatever happens in between, a batch that counts says what it says in a life
without accidents.
"""

from __future__ import annotations

import copy
import random

import pytest
from test_bucket_log import FakeCells

from headrace.spark.state.kernels.aggregate import StreamAggregate, TimeWindow
from headrace.spark.state.kernels.foreign_key_join import ForeignKeyJoin, References
from headrace.spark.state.kernels.kernel import Output
from headrace.spark.state.kernels.presence import Presence
from headrace.spark.state.kernels.session_aggregate import SessionAggregate, SessionWindow
from headrace.spark.state.kernels.steps import Call
from headrace.spark.state.kernels.stream_join import StreamStreamJoin
from headrace.spark.state.kernels.stream_table_join import StreamTableJoin
from headrace.spark.state.kernels.table_aggregate import GroupChanges, TableAggregate
from headrace.spark.state.kernels.table_join import TableTableJoin
from headrace.spark.state.log import Bucket, Memory
from kernel_feeding import Count, Last, Sum

CALLS = (Call("COUNT", Count(), ()), Call("LAST", Last(), (0,)))
UNDOABLE = (Call("COUNT", Count(), ()), Call("SUM", Sum(), (0,)))
WINDOW = TimeWindow.of(50, grace=100)

# Kernels one behind the other; rows of the right side go to the last one.
QUERIES = {
    "aggregate": (StreamAggregate(CALLS),),
    "coalesced": (StreamAggregate(CALLS, coalesce=True),),
    "tumbling": (StreamAggregate(CALLS, window=WINDOW),),
    "hopping": (StreamAggregate(CALLS, window=TimeWindow.of(50, 20, 100)),),
    "final": (StreamAggregate(CALLS, window=WINDOW, final=True),),
    "sessions": (SessionAggregate(CALLS, SessionWindow.of(20, 100)),),
    "final sessions": (SessionAggregate(CALLS, SessionWindow.of(20, 100), final=True),),
    "stream inner": (StreamStreamJoin.of("INNER", (1, 1), 30, 30, 100),),
    "stream left": (StreamStreamJoin.of("LEFT", (1, 1), 30, 30, 100),),
    "stream outer": (StreamStreamJoin.of("OUTER", (1, 1), 30, 30, 100),),
    "stream table": (StreamTableJoin(left_outer=True, right_width=1),),
    "tables": (TableTableJoin(1, 1, True, True),),
    "presence": (Presence(),),
    "group by": (GroupChanges(1, 1), TableAggregate(UNDOABLE, 1)),
    "foreign key": (References(1, 1, 1, True), ForeignKeyJoin(1, 1, True)),
}
TABLES = {"stream table", "tables", "presence", "group by", "foreign key"}
TWO_SIDED = {"stream inner", "stream left", "stream outer", "stream table", "tables", "foreign key"}


def random_batch(chance, name, batch):
    """(side, key, values, time); times move on and are sometimes late."""
    rows = []
    for i in range(chance.randrange(1, 12)):
        side = chance.randrange(2) if name in TWO_SIDED else 0
        time = max(0, batch * 40 + i - (chance.randrange(150) if chance.random() < 0.2 else 0))
        values = (chance.randrange(100),)
        if name in ("group by", "foreign key") and side == 0:
            values = (f"k{chance.randrange(5)}", *values)
        if name in TABLES and chance.random() < 0.2 and not (name == "stream table" and side == 0):
            values = None
        rows.append((side, f"k{chance.randrange(8)}", values, time))
    return rows


def run(specs, cells, memory, rows, until=None):
    """One attempt at a batch: what the last kernel says. `until`: it dies before that kernel."""
    mine = [row for row in rows if row[0] == 0]
    right = [row for row in rows if row[0] == 1]
    said = []
    for number, spec in enumerate(specs):
        if number == until:
            raise ConnectionError
        bucket = Bucket.open(cells[number], spec, memory)
        last = number == len(specs) - 1
        given = sorted([*mine, *(right if last else [])], key=lambda row: row[3])
        out = Output()
        now = list(bucket.store.times)
        numbered = []
        for at, (side, key, values, time) in enumerate(given):
            now[side] = max(now[side], time)
            numbered.append((at, side, key, values, time, now[side]))
        bucket.kernel.run(numbered, out)
        if spec.timed:
            bucket.store.times = now
            for side in sorted({row[0] for row in given}):
                if now[side] == bucket.store.now:
                    bucket.kernel.advance(side, bucket.store.now, out)
        bucket.commit(cells[number], memory)
        said = [(key, copy.deepcopy(values), time) for _, key, values, time in out.rows]
        mine = [(0, key, values, time) for key, values, time in said]
    return said


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("seed", range(3))
def test_a_batch_says_the_same_whatever_happened_before(name, seed):
    specs, chance = QUERIES[name], random.Random(f"{name} {seed}")
    calm = [FakeCells() for _ in specs]
    durable = [FakeCells() for _ in specs]
    workers = [Memory(10**9), Memory(10**9)]
    accidents = 0
    for number in range(120):
        rows = random_batch(chance, name, number)
        expected = run(specs, calm, Memory(0), copy.deepcopy(rows))
        while chance.random() < 0.4:
            accidents += 1
            lost, worker = copy.deepcopy(durable), chance.randrange(2)
            fate = chance.choice(("whole", "half", "killed"))
            try:
                until = chance.randrange(len(specs)) if fate == "half" else None
                run(specs, lost, workers[worker], copy.deepcopy(rows), until)
            except ConnectionError:
                pass
            if fate == "killed":
                workers[worker] = Memory(10**9)
        attempt = copy.deepcopy(durable)
        assert run(specs, attempt, chance.choice(workers), copy.deepcopy(rows)) == expected
        durable = attempt
    assert accidents > 20
