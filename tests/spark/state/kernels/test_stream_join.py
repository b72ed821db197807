from headrace.spark.state.kernels.stream_join import StreamStreamJoin
from kernel_feeding import Runner


def left(key, value, time):
    return (0, key, None if value is None else (value,), time)


def right(key, value, time):
    return (1, key, None if value is None else (value,), time)


def join(kind, before=10, after=10, grace=None):
    return Runner(StreamStreamJoin.of(kind, (1, 1), before, after, grace))


def test_rows_meet_within_the_span_at_the_later_time():
    streams = join("INNER", before=5, after=10)
    assert streams.feed(left(1, "l", 100)) == []
    assert streams.feed(right(1, "a", 94), right(1, "b", 95), right(1, "c", 110)) == [
        (1, ("l", "b"), 100),
        (1, ("l", "c"), 110),
    ]
    assert streams.feed(right(1, "d", 111), right(2, "e", 100)) == []


def test_a_row_meets_all_that_are_there_in_order_of_time():
    streams = join("INNER")
    streams.feed(right(1, "b", 5), right(1, "a", 3), right(1, "c", 5))
    assert [r[1] for r in streams.feed(left(1, "l", 4))] == [("l", "a"), ("l", "b"), ("l", "c")]


def test_without_grace_unmatched_rows_leave_at_once():
    streams = join("LEFT")
    assert streams.feed(left(1, "l", 0)) == [(1, ("l", None), 0)]
    assert streams.feed(right(1, "r", 5), right(2, "s", 5)) == [(1, ("l", "r"), 5)]
    both = join("OUTER")
    assert both.feed(left(1, "l", 0), right(2, "r", 1)) == [
        (1, ("l", None), 0),
        (2, (None, "r"), 1),
    ]


def test_with_grace_unmatched_rows_leave_when_no_match_can_come():
    streams = join("LEFT", grace=5)
    assert streams.feed(left(1, "l", 0), left(2, "m", 1)) == []
    assert streams.feed(right(1, "r", 10)) == [(1, ("l", "r"), 10)]
    assert streams.feed(left(3, "n", 16)) == []
    assert streams.feed(left(3, "o", 17)) == [(2, ("m", None), 1)]
    assert streams.tick(50) == [(3, ("n", None), 16), (3, ("o", None), 17)]


def test_waiting_rows_of_both_sides_leave_in_order():
    streams = join("OUTER", grace=0)
    streams.feed(left(1, "l", 0), right(2, "r", 0), left(3, "m", 1))
    assert streams.feed(right(9, "x", 20)) == [
        (2, (None, "r"), 0),
        (1, ("l", None), 0),
        (3, ("m", None), 1),
    ]


def test_a_row_that_comes_when_its_span_is_over_does_not_wait():
    streams = join("LEFT", grace=60)
    streams.feed(left(1, "l", 100))
    assert streams.feed(left(2, "m", 50)) == [(2, ("m", None), 50)]


def test_each_side_forgets_by_its_own_time():
    streams = join("RIGHT", grace=10)
    streams.feed(left(1, "B", 300))
    assert streams.feed(left(2, "C", 90), right(2, "c", 90)) == [(2, (None, "c"), 90)]
    assert streams.late == 1
    assert streams.feed(right(3, "d", 85)) == [(3, (None, "d"), 85)]
    assert streams.feed(left(3, "D", 90)) == [(3, ("D", "d"), 90)]


def test_a_right_join_spans_from_the_right_row():
    streams = join("RIGHT", before=5, after=0)
    streams.feed(left(1, "l", 95))
    assert streams.feed(right(1, "r", 100)) == [(1, ("l", "r"), 100)]
    other = join("LEFT", before=5, after=0)
    other.feed(left(1, "l", 95))
    assert other.feed(right(1, "r", 100)) == []


def test_rows_without_key_or_values():
    streams = join("LEFT")
    assert streams.feed(left(None, "l", 0), left(1, None, 0), right(None, "r", 0)) == [
        (None, ("l", None), 0)
    ]


def test_state_is_bounded_and_restored():
    streams = join("LEFT", grace=10)
    for i in range(1000):
        streams.feed(left(i % 5, "l", i * 10), right(i % 7, "r", i * 10))
        if i % 100 == 0:
            streams.reopen()
    assert streams.size() <= 15
    assert sum(len(r) for rows in streams.kernel._rows for r in rows.values()) <= 10


def test_restored_rows_still_wait_and_meet():
    streams = join("LEFT", grace=0)
    streams.feed(left(1, "l", 0), left(2, "m", 0))
    streams.reopen()
    assert streams.feed(right(1, "r", 5)) == [(1, ("l", "r"), 5)]
    assert streams.feed(left(9, "x", 11)) == [(2, ("m", None), 0)]
