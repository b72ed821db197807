import random
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from headrace.spark.state import wire as wires
from headrace.spark.state.bucket import carry
from headrace.spark.state.kernel_step import KernelStep, SideLayout, StepLayout
from headrace.spark.state.kernels.kernel import BEGINNING, Output, Store, freeze
from headrace.spark.state.kernels.stream_table_join import StreamTableJoin
from headrace.spark.state.wire import Inbox, Parcel

NEVER = [BEGINNING, BEGINNING]
ENTRIES = pa.string()


@dataclass(frozen=True)
class Spec:
    """What packing and unpacking ask of a kernel."""

    timed: bool = True
    carries: bool = False
    right_first: bool = False
    windowed: bool = False


def wire(sides=1, output=None, coalesce=False, buckets=4, **spec):
    tail = [
        (wires.NULL, pa.bool_()),
        (wires.TIME, pa.int64()),
        (wires.ORDER, pa.int64()),
        (wires.NOW, pa.int64()),
        (wires.PARTITION, pa.int32()),
        (wires.OFFSET, pa.int64()),
    ]
    schemas = [
        pa.schema([("k0", pa.string()), (f"v{i}_0", pa.int64()), *tail]) for i in range(sides)
    ]
    output = output or pa.schema(
        [
            ("k", pa.string()),
            ("v", pa.int64()),
            (wires.TIME, pa.int64()),
            (wires.NULL, pa.bool_()),
            (wires.PARTITION, pa.int32()),
            (wires.OFFSET, pa.int64()),
            (wires.ERRORS, ENTRIES),
            (wires.DEAD, pa.bool_()),
            (wires.ORDER, pa.int64()),
        ]
    )
    key = StructType([StructField("k", StringType())])
    step = KernelStep(Spec(**spec), key, StructType(), coalesce, buckets=buckets, entry=str)
    return StepLayout(step, tuple(SideLayout(s, 1, 1) for s in schemas), output)


def batch(rows, side=0):
    """Rows of a side are (bucket, key, value, time, offset[, errors, dead[, order]])."""
    ordered = any(len(row) > 7 for row in rows)
    rows = [(*row, *(None, False, None)[len(row) - 5 :]) for row in rows]
    columns = {
        wires.BUCKET: pa.array([r[0] for r in rows], pa.int32()),
        "k0": pa.array([r[1] for r in rows], pa.string()),
        f"v{side}_0": pa.array([r[2] for r in rows], pa.int64()),
        wires.TIME: pa.array([r[3] for r in rows], pa.int64()),
        wires.NULL: pa.array([r[2] is None for r in rows]),
        wires.PARTITION: pa.array([0] * len(rows), pa.int32()),
        wires.OFFSET: pa.array([r[4] for r in rows], pa.int64()),
        wires.ERRORS: pa.array([r[5] for r in rows], ENTRIES),
        wires.DEAD: pa.array([r[6] for r in rows]),
    }
    if ordered:
        columns[wires.ORDER] = pa.array([r[7] for r in rows], pa.int64())
    return pa.RecordBatch.from_pydict(columns)


def pack(wire_, *batches, sequence=0, side=0):
    parcels = {}
    for packed in wires.packer(wire_, side)(iter(batches)):
        for row in packed.to_pylist():
            row["sequence"] = sequence
            parcels.setdefault(row["bucket"], []).append(Parcel(**row))
    return parcels


def unpack(wire_, results):
    packed = pa.RecordBatch.from_pydict({"data": pa.array(list(results), pa.binary())})
    return [r for b in wires.unpacker(wire_.output)(iter([packed])) for r in b.to_pylist()]


def test_rows_reach_their_bucket_in_order_with_the_stream_time_of_the_task():
    w = wire()
    rows = [(0, "a", 1, 10, 0), (1, "b", 2, 30, 1), (0, "a", None, 20, 2), (1, "b", 4, 5, 3)]
    parcels = pack(w, batch(rows[:2]), batch(rows[2:]))
    first, second, *others = wires.labels(4)
    inbox = Inbox(w, parcels[first], NEVER)
    assert list(inbox.rows()) == [(0, 0, "a", (1,), 10, 10), (1, 0, "a", None, 20, 30)]
    assert list(Inbox(w, parcels[second], [40, NEVER[1]]).rows()) == [
        (0, 0, "b", (2,), 30, 40),
        (1, 0, "b", (4,), 5, 40),
    ]
    for label in others:
        quiet = Inbox(w, parcels[label], NEVER)
        assert (quiet.count, quiet.ticks, quiet.times[0]) == (0, {0: 30}, 30)


def test_sequences_merge_by_stream_time_and_stay_in_order_within():
    w = wire(sides=2, timed=False)
    left = pack(w, batch([(0, "a", 1, 10, 0), (0, "a", 2, 5, 1), (0, "a", 3, 30, 2)]))
    right = pack(w, batch([(0, "a", 7, 10, 0), (0, "a", 8, 20, 1)], 1), sequence=1, side=1)
    (label,) = left
    inbox = Inbox(w, [*right[label], *left[label]], NEVER)
    assert [(r[1], r[3]) for r in inbox.rows()] == [
        (0, (1,)),
        (0, (2,)),
        (1, (7,)),
        (1, (8,)),
        (0, (3,)),
    ]


def latest(wire_):
    return replace(wire_, sides=tuple(replace(side, latest=True) for side in wire_.sides))


def test_the_last_row_of_a_key_stands_for_a_tables_updates():
    w = latest(wire(timed=False))
    rows = [
        (0, "a", 1, 10, 0),
        (0, "b", 2, 10, 1),
        (0, "a", 3, 40, 2),
        (0, "c", 4, 10, 3),
        (0, "b", None, 10, 4),
        (0, None, 5, 10, 5),
    ]
    (parcels,) = pack(w, batch(rows[:3]), batch(rows[3:])).values()
    seen = [(key, values) for _, _, key, values, _, _ in Inbox(w, parcels, NEVER).rows()]
    assert seen == [("a", (3,)), ("c", (4,)), ("b", None), (None, (5,))]


def test_the_last_row_is_the_last_in_the_order_of_all_tasks():
    w = latest(wire(timed=False))
    (first,) = pack(w, batch([(0, "a", 1, 50, 0)])).values()
    (second,) = pack(w, batch([(0, "a", 2, 20, 0)]), sequence=1).values()
    assert [r[3] for r in Inbox(w, [*first, *second], NEVER).rows()] == [(1,)]


@pytest.mark.parametrize(
    "type_, keys",
    [
        (pa.list_(pa.int32()), [[1], [2], [1], None]),
        (pa.binary(), [b"1", b"2", b"1", None]),
        (pa.float64(), [0.5, 1.5, 0.5, None]),
    ],
)
def test_keys_of_any_type_and_number_have_a_last_row(type_, keys):
    tail = [(wires.ORDER, pa.int64())]
    table = pa.table(
        [pa.array(keys, type_), pa.array(list("xxxx")), pa.array(range(4)), pa.array([0] * 4)],
        schema=pa.schema([("k0", type_), ("k1", pa.string()), ("v", pa.int64()), *tail]),
    )
    kept = wires._latest(table, SideLayout(table.schema, 2, 1))
    assert kept.column("v").to_pylist() == [1, 2, 3]


def test_rows_of_an_earlier_kernel_are_put_back_in_order():
    w = wire(timed=False)
    w = replace(w, sides=(replace(w.sides[0], ordered=True),))
    rows = [
        (0, "b", 1, 30, 2, None, False, 30),
        (0, "a", 2, 10, 0, None, False, 10),
        (0, "c", 3, 10, 1, None, False, 30),
    ]
    (parcels,) = pack(w, batch(rows)).values()
    assert [r[2] for r in Inbox(w, parcels, NEVER).rows()] == ["a", "c", "b"]


def test_log_entries_leave_on_dead_rows_of_their_own():
    w = wire(timed=False)
    rows = [(1, "a", 1, 10, 0, "broken", True), (1, "b", 2, 11, 1, "odd", False)]
    parcels = pack(w, batch(rows))
    first, second, *_ = wires.labels(4)
    dead = unpack(w, Inbox(w, parcels[first], NEVER).results(Output()))
    assert [(r["k"], r[wires.ERRORS], r[wires.DEAD]) for r in dead] == [
        (None, "broken", True),
        (None, "odd", True),
    ]
    assert [r[2] for r in Inbox(w, parcels[second], NEVER).rows()] == ["b"]


def test_results_carry_the_place_of_the_row_that_caused_them():
    w = wire()
    parcels = pack(w, batch([(0, "a", 1, 10, 5), (0, "b", 2, 8, 6)]))
    inbox = Inbox(w, parcels[wires.labels(4)[0]], NEVER)
    list(inbox.rows())
    out = Output()
    out.rows = [(1, "b", (7,), 8), (0, "a", None, 10), (-1, "z", (9,), 1)]
    out.late = 3
    out.failures = [(0, "no")]
    results = unpack(w, inbox.results(out))
    shown = [(r["k"], r["v"], r[wires.NULL], r[wires.OFFSET], r[wires.ORDER]) for r in results[:3]]
    assert shown == [
        ("b", 7, False, 6, 10),
        ("a", None, True, 5, 10),
        ("z", 9, False, 6, 10),
    ]
    assert [(r[wires.DEAD], r[wires.ERRORS]) for r in results[3:]] == [
        (True, "no"),
        (True, wires.skipping(3)),
    ]


def test_results_tell_no_place_where_no_kernel_asks_for_it():
    w = wire()
    unplaced = [field for field in w.output if field.name not in wires.PLACE]
    w = replace(w, output=pa.schema(unplaced))
    rows = [(0, "a", 1, 10, 5), (0, "b", 2, 8, 6, "broken", True)]
    inbox = Inbox(w, pack(w, batch(rows))[wires.labels(4)[0]], NEVER)
    list(inbox.rows())
    out = Output()
    out.rows = [(0, "a", (7,), 8)]
    told = [("k", "v", wires.TIME, wires.NULL, wires.ERRORS, wires.DEAD)]
    told += [tuple(r.values()) for r in unpack(w, inbox.results(out))]
    assert told[0] == tuple(w.output.names)
    assert told[1:] == [(None, None, 8, None, "broken", True), ("a", 7, 8, False, None, False)]


def test_left_rows_are_carried_past_the_kernel():
    output = wire().output.insert(2, pa.field("w", pa.int64()))
    w = wire(sides=2, timed=False, carries=True, right_first=True, output=output)
    left = pack(w, batch([(0, "a", 1, 10, 0), (0, "b", None, 15, 1), (0, "c", 3, 30, 2)]))
    right = pack(w, batch([(0, "a", 7, 5, 0), (0, "c", 8, 20, 1)], 1), sequence=1, side=1)
    (label,) = left
    inbox = Inbox(w, [*right[label], *left[label]], NEVER)
    rows = list(inbox.rows())
    assert [(r[2], r[3]) for r in rows] == [
        ("a", (7,)),
        ("a", ()),
        ("b", None),
        ("c", (8,)),
        ("c", ()),
    ]
    out = Output()
    out.rows = [(4, "c", (8,), 30), (1, "a", (None,), 10)]
    shown = [(r["k"], r["v"], r["w"], r[wires.OFFSET]) for r in unpack(w, inbox.results(out))]
    assert shown == [("c", 3, 8, 2), ("a", 1, None, 0)]


def test_rows_asked_for_key_by_key_meet_what_they_would_meet_row_by_row():
    output = wire().output.insert(2, pa.field("w", pa.int64()))
    w = wire(sides=2, timed=False, carries=True, right_first=True, buckets=1, output=output)
    chance = random.Random(7)
    by_key = 0
    for number in range(200):
        kernel = StreamTableJoin(left_outer=bool(number % 2), right_width=1)
        keys = ["a", "b", "c", None][: chance.randint(1, 4)]
        moments = 4 if number % 3 else 40  # few: all of the table's rows may come first

        def rows(count, begin, end, keys=keys):
            times = sorted(chance.randrange(begin, end) for _ in range(count))
            values = [chance.choice([None, 1, 2, 3]) for _ in times]
            made = zip(times, values, strict=True)
            return [(0, chance.choice(keys), v, t, at) for at, (t, v) in enumerate(made)]

        parcels = []
        for task in range(2):
            begin = chance.choice([0, moments])
            left = batch(rows(chance.randint(0, 6), begin, begin + moments))
            right = batch(rows(chance.randint(0, 3), 0, moments), 1)
            for side, part in enumerate((left, right)):
                packed = pack(w, part, sequence=task, side=side)
                parcels += packed.get(wires.labels(1)[0], [])
        inbox = Inbox(w, parcels, NEVER)
        expected = Output()
        kernel.open(Store(1)).run(inbox.rows(), expected)
        said = Output()
        if inbox.count:
            carry(kernel.open(Store(1)), inbox, said)
        by_key += bool(said.matches)
        shown = unpack(w, inbox.results(said))
        assert shown == unpack(w, inbox.results(expected)), number
    assert 50 < by_key < 190  # both ways were gone


def test_coalescing_keeps_the_last_row_of_a_key():
    w = wire(coalesce=True)
    parcels = pack(w, batch([(0, "a", 1, 10, 5)]))
    inbox = Inbox(w, parcels[wires.labels(4)[0]], NEVER)
    list(inbox.rows())
    out = Output()
    out.rows = [(0, "a", (1,), 1), (0, "b", (2,), 1), (0, "a", (3,), 1)]
    assert [(r["k"], r["v"]) for r in unpack(w, inbox.results(out))] == [("a", 3), ("b", 2)]


def test_nested_keys_are_frozen():
    assert freeze([{"a": [1]}, None]) == (((1,),), None)


def test_labels_spread_evenly_over_tasks():
    for tasks in (2, 4, 8):
        places = [wires._murmur3(label) % tasks for label in wires.labels(16)]
        assert [places.count(t) for t in range(tasks)] == [16 // tasks] * tasks


def test_keys_of_several_columns_may_have_to_be_whole():
    table = pa.table({"k0": ["a", "a", None], "k1": ["b", None, None]})
    assert wires._keys(table, SideLayout(table.schema, 2, 0)) == [("a", "b"), ("a", None), None]
    whole = SideLayout(table.schema, 2, 0, whole_keys=True)
    assert wires._keys(table, whole) == [("a", "b"), None, None]


def test_tasks_go_by_the_partition_they_read_whatever_their_number():
    w = wire()
    rows = batch([(0, "a", 1, 10, 0), (1, "b", 2, 30, 1)])
    at = rows.schema.get_field_index(wires.PARTITION)
    read = rows.set_column(at, wires.PARTITION, pa.array([5, 5], pa.int32()))
    (packed, _) = wires.packer(w, 0)(iter([read]))
    assert set(packed.column("sequence").to_pylist()) == {5}
