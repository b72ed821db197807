from headrace.spark.state.kernels.stream_table_join import StreamTableJoin
from kernel_feeding import Runner


def stream(key, value, time=0):
    return (0, key, None if value is None else (value,), time)


def table(key, value, time=0):
    return (1, key, None if value is None else (value,), time)


def test_inner_join_meets_what_the_table_holds_then():
    runner = Runner(StreamTableJoin(left_outer=False, right_width=1))
    assert runner.feed(
        stream("a", "s0", 5), table("a", "t0", 9), stream("a", "s1", 6), stream("b", "s2", 7)
    ) == [("a", ("s1", "t0"), 6)]


def test_left_join_keeps_rows_without_a_match():
    runner = Runner(StreamTableJoin(left_outer=True, right_width=2))
    assert runner.feed(stream("a", "s", 1), stream(None, "n", 2)) == [
        ("a", ("s", None, None), 1),
        (None, ("n", None, None), 2),
    ]


def test_tombstones_take_the_table_row_away():
    runner = Runner(StreamTableJoin(left_outer=False, right_width=1))
    runner.feed(table("a", "t"))
    assert runner.feed(table("a", None), stream("a", "s")) == []
    assert runner.size() == 0


def test_a_stream_row_without_values_never_joins():
    for outer in (False, True):
        runner = Runner(StreamTableJoin(outer, 1))
        assert runner.feed(table("a", "t"), stream("a", None)) == []
