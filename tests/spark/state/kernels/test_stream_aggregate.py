from headrace.spark.state.kernels.aggregate import StreamAggregate, TimeWindow
from headrace.spark.state.kernels.steps import Call
from kernel_feeding import Count, Last, Picky, Runner, Sum

COUNT = Call("COUNT", Count(), ())
SUM = Call("SUM", Sum(), (0,))


def row(key, value, time):
    return (0, key, None if value is None else (value,), time)


def test_every_row_gives_the_group_so_far_at_the_highest_time():
    runner = Runner(StreamAggregate((COUNT, SUM)))
    assert runner.feed(row("a", 1, 5), row("b", 2, 3), row("a", 4, 2)) == [
        ("a", (1, 1), 5),
        ("b", (1, 2), 3),
        ("a", (2, 5), 5),
    ]
    assert runner.feed(row("a", 1, 9)) == [("a", (3, 6), 9)]


def test_rows_without_key_or_values_are_left_out():
    runner = Runner(StreamAggregate((COUNT,)))
    assert runner.feed(row(None, 1, 0), row("a", None, 0)) == []


def test_coalesced_groups_speak_once_a_batch():
    runner = Runner(StreamAggregate((COUNT,), coalesce=True))
    assert runner.feed(row("a", 1, 0), row("b", 1, 1), row("a", 1, 2)) == [
        ("a", (2,), 2),
        ("b", (1,), 1),
    ]


def test_carried_columns_are_those_of_the_latest_row():
    runner = Runner(StreamAggregate((Call("SUM", Sum(), (1,)),), carried=1))
    rows = [(0, "a", ("x", 1), 0), (0, "a", ("y", 2), 0)]
    assert runner.feed(*rows) == [("a", ("x", 1), 0), ("a", ("y", 3), 0)]


def test_states_may_change_in_place():
    runner = Runner(StreamAggregate((Call("COLLECT", Last(), (0,)),)))
    assert runner.feed(row("a", 1, 0), row("a", 2, 0)) == [("a", ([1],), 0), ("a", ([1, 2],), 0)]
    assert runner.store.tables[0].changed == {"a"}


def test_a_failing_function_keeps_its_state_and_is_reported():
    runner = Runner(StreamAggregate((COUNT, Call("PICKY", Picky(), (0,)))))
    assert runner.feed(row("a", 1, 0), row("a", -1, 0)) == [("a", (1, 1), 0), ("a", (2, 1), 0)]
    assert runner.failures == ["PICKY failed: negative"]


def test_a_row_that_no_function_takes_tells_nothing():
    runner = Runner(StreamAggregate((Call("PICKY", Picky(), (0,)),)))
    assert runner.feed(row("a", 1, 0), row("a", -1, 0)) == [("a", (1,), 0)]
    assert runner.failures == ["PICKY failed: negative"]


def test_tumbling_windows():
    runner = Runner(StreamAggregate((COUNT,), window=TimeWindow.of(10, grace=0)))
    assert runner.feed(row("a", 1, 0), row("a", 1, 9), row("a", 1, 10)) == [
        (("a", 0, 10), (1,), 0),
        (("a", 0, 10), (2,), 9),
        (("a", 10, 20), (1,), 10),
    ]


def test_hopping_windows_hold_a_row_several_times():
    runner = Runner(StreamAggregate((COUNT,), window=TimeWindow.of(30, 10)))
    assert [r[0] for r in runner.feed(row("a", 1, 25))] == [
        ("a", 0, 30),
        ("a", 10, 40),
        ("a", 20, 50),
    ]


def test_late_rows_are_dropped_and_counted():
    runner = Runner(StreamAggregate((COUNT,), window=TimeWindow.of(10, grace=5)))
    runner.feed(row("a", 1, 0), row("a", 1, 14))
    assert runner.feed(row("a", 1, 1)) == [(("a", 0, 10), (2,), 1)]
    assert runner.feed(row("b", 1, 15), row("a", 1, 9)) == [(("b", 10, 20), (1,), 15)]
    assert runner.late == 1


def test_time_of_other_buckets_closes_windows():
    runner = Runner(StreamAggregate((COUNT,), window=TimeWindow.of(10, grace=0)))
    runner.feed(row("a", 1, 3))
    assert runner.tick(10) == []
    assert runner.size() == 0
    assert runner.feed(row("a", 1, 4)) == []
    assert runner.late == 1


def test_final_results_leave_when_the_window_closes():
    runner = Runner(StreamAggregate((COUNT,), window=TimeWindow.of(10, grace=2), final=True))
    assert runner.feed(row("b", 1, 1), row("a", 1, 2), row("a", 1, 11)) == []
    assert runner.feed(row("a", 1, 12)) == [
        (("a", 0, 10), (1,), 2),
        (("b", 0, 10), (1,), 1),
    ]
    assert runner.tick(22) == [(("a", 10, 20), (2,), 12)]
    assert runner.size() == 0


def test_final_results_leave_before_later_rows_are_seen():
    runner = Runner(StreamAggregate((COUNT,), window=TimeWindow.of(10, grace=0), final=True))
    assert runner.feed(row("a", 1, 1), row("a", 1, 10), row("a", 1, 20)) == [
        (("a", 0, 10), (1,), 1),
        (("a", 10, 20), (1,), 10),
    ]


def test_a_restored_kernel_closes_windows_it_did_not_open():
    runner = Runner(StreamAggregate((COUNT,), window=TimeWindow.of(10, grace=0), final=True))
    runner.feed(row("a", 1, 1))
    runner.reopen()
    assert runner.tick(10) == [(("a", 0, 10), (1,), 1)]


def test_state_stays_bounded_over_many_windows():
    runner = Runner(StreamAggregate((COUNT,), window=TimeWindow.of(10, grace=20)))
    sizes = []
    for window in range(1000):
        runner.feed(*[row(f"k{i}", 1, window * 10) for i in range(5)])
        sizes.append(runner.size())
    assert max(sizes) <= 15
    assert runner.feed(row("k0", 1, 5)) == []


def test_retention_forgets_results_that_a_jump_of_time_leaves_behind():
    window = TimeWindow.of(10, grace=5)
    rows = [row("a", 1, 0), row("a", 1, 10), row("a", 1, 29)]
    kept = Runner(StreamAggregate((COUNT,), window=window, final=True))
    assert [r[0] for r in kept.feed(*rows)] == [("a", 0, 10), ("a", 10, 20)]
    forgetful = Runner(StreamAggregate((COUNT,), window=window, final=True, retention=15))
    assert [r[0] for r in forgetful.feed(*rows)] == [("a", 10, 20)]
    assert forgetful.size() == 1
