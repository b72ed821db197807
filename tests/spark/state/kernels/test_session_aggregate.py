import random

from headrace.functions.declare.declaration import CallContext
from headrace.functions.registry import REGISTRY
from headrace.model.types import INTEGER
from headrace.spark.state.kernels.session_aggregate import SessionAggregate, SessionWindow
from headrace.spark.state.kernels.steps import Call
from kernel_feeding import Count, Last, Runner

COUNT = Call("COUNT", Count(), ())


def row(key, value, time):
    return (0, key, (value,), time)


def runner(gap=10, grace=None, calls=(COUNT,), **options):
    return Runner(SessionAggregate(calls, SessionWindow.of(gap, grace), **options))


def test_a_row_extends_its_session():
    assert runner().feed(row("a", 1, 0), row("a", 1, 8)) == [
        (("a", 0, 0), (1,), 0),
        (("a", 0, 0), None, 0),
        (("a", 0, 8), (2,), 8),
    ]


def test_coalesced_sessions_speak_once_a_batch():
    r = runner(coalesce=True)
    assert r.feed(row("a", 1, 0), row("b", 1, 3), row("a", 1, 8)) == [
        (("b", 3, 3), (1,), 3),
        (("a", 0, 8), (2,), 8),
    ], "nobody has heard of (a, 0, 0)"
    assert r.feed(row("a", 1, 12), row("a", 1, 14)) == [
        (("a", 0, 8), None, 8),
        (("a", 0, 14), (4,), 14),
    ]
    assert r.feed(row("a", 1, 2)) == [(("a", 0, 14), (5,), 14)], "it is still the same session"


def test_a_coalesced_session_that_closes_in_its_batch_is_told():
    r = runner(gap=10, grace=0, coalesce=True)
    assert r.feed(row("a", 1, 0), row("a", 1, 5), row("b", 1, 100)) == [
        (("a", 0, 5), (2,), 5),
        (("b", 100, 100), (1,), 100),
    ]
    assert r.size() == 1


def test_coalesced_or_not_sessions_end_the_same():
    chance = random.Random(3)
    each, last = runner(grace=1000), runner(grace=1000, coalesce=True)
    tables = {}, {}
    for _ in range(200):
        rows = [
            row(f"k{chance.randrange(4)}", 1, chance.randrange(2000))
            for _ in range(chance.randrange(1, 12))
        ]
        for r, table in zip((each, last), tables, strict=True):
            for key, values, time in r.feed(*rows):
                table[key] = (values, time)
        live = [{k: v for k, v in table.items() if v[0] is not None} for table in tables]
        assert live[0] == live[1]
        assert each.store.tables[0].data == last.store.tables[0].data


def test_the_gap_is_inclusive():
    r = runner()
    r.feed(row("a", 1, 0))
    assert r.feed(row("a", 1, 10))[-1] == (("a", 0, 10), (2,), 10)
    assert r.feed(row("a", 1, 21)) == [(("a", 21, 21), (1,), 21)]


def test_a_row_of_the_same_time_replaces_without_a_tombstone():
    assert runner().feed(row("a", 1, 5), row("a", 1, 5)) == [
        (("a", 5, 5), (1,), 5),
        (("a", 5, 5), (2,), 5),
    ]


def test_a_row_between_connects_sessions():
    r = runner(calls=(Call("COLLECT", Last(), (0,)),))
    r.feed(row("a", "x", 0), row("a", "y", 15))
    assert r.feed(row("a", "z", 8)) == [
        (("a", 0, 0), None, 0),
        (("a", 15, 15), None, 15),
        (("a", 0, 15), (["x", "y", "z"],), 15),
    ]
    assert r.size() == 1


def test_sessions_of_other_keys_are_left_alone():
    r = runner()
    assert r.feed(row("a", 1, 0), row("b", 1, 1)) == [
        (("a", 0, 0), (1,), 0),
        (("b", 1, 1), (1,), 1),
    ]


def test_late_rows_are_dropped_unless_they_reach_an_open_session():
    r = runner(gap=10, grace=5)
    r.feed(row("a", 1, 0), row("a", 1, 30))
    assert r.feed(row("a", 1, 14)) == []
    assert r.late == 1
    assert r.feed(row("a", 1, 15)) == [(("a", 15, 15), (1,), 15)]
    assert r.feed(row("a", 1, 20))[-1] == (("a", 15, 30), (3,), 30)


def test_final_sessions_leave_when_they_close():
    r = runner(gap=10, grace=0, final=True)
    assert r.feed(row("a", 1, 0), row("a", 1, 5), row("b", 1, 15)) == []
    assert r.feed(row("b", 1, 16)) == [(("a", 0, 5), (2,), 5)]
    assert r.tick(27) == [(("b", 15, 16), (2,), 16)]
    assert r.size() == 0


def test_closed_sessions_are_forgotten():
    r = runner(gap=10, grace=10)
    for i in range(1000):
        r.feed(row("a", 1, i * 100))
    assert r.size() == 1
    assert len(r.kernel._sessions) == 1


def test_a_restored_kernel_knows_the_sessions():
    r = runner()
    r.feed(row("a", 1, 0), row("a", 1, 30))
    r.reopen()
    assert r.feed(row("a", 1, 25))[-1] == (("a", 25, 30), (2,), 30)


def test_sessions_merged_elsewhere_are_not_merged_again():
    r = runner()
    r.feed(row("a", 1, 0))
    here = r.kernel
    r.reopen()
    r.feed(row("a", 1, 5))
    here.restored(0, [("a", 0, 5)])
    r.kernel = here
    assert r.feed(row("a", 1, 7)) == [(("a", 0, 5), None, 5), (("a", 0, 7), (3,), 7)]


def by_offset(*functions, **options):
    context = CallContext((INTEGER,), INTEGER, (None,))
    calls = [
        Call(f, REGISTRY.find(f, f"{f}(A)").step(context), (0,))
        for f in functions or ("EARLIEST_BY_OFFSET", "LATEST_BY_OFFSET")
    ]
    return runner(calls=tuple(calls), grace=1000, **options)


def test_merged_sessions_know_which_row_came_first():
    r = by_offset()
    r.feed(row("a", 1, 15))
    r.reopen()
    r.feed(row("a", 2, 0))
    r.reopen()
    assert r.feed(row("a", None, 8))[-1] == (("a", 0, 15), (1, 2), 15)
    assert r.feed(row("a", 3, 30), row("a", None, 22))[-1] == (("a", 0, 30), (1, 3), 30)


def test_rows_that_come_again_leave_the_same_state():
    rows = [row(f"k{i % 3}", i, 25 * (i % 7)) for i in range(40)]
    first, again = by_offset(), by_offset()
    for at in range(0, 40, 5):
        first.feed(*rows[at : at + 5])
        again.feed(*rows[at : at + 5])
        again.reopen()
    assert first.store.tables[0].data == again.store.tables[0].data


def test_closed_sessions_leave_no_number_behind():
    r = runner(gap=10, grace=10, calls=by_offset().spec.calls)
    for i in range(100):
        r.feed(row(f"k{i}", 1, i * 100))
    assert len(r.kernel._arrivals) == 1
