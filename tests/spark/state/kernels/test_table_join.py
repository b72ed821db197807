import pytest

from headrace.spark.state.kernels.presence import Presence
from headrace.spark.state.kernels.table_join import TableTableJoin
from kernel_feeding import Runner


def left(key, value, time=0):
    return (0, key, None if value is None else (value,), time)


def right(key, value, time=0):
    return (1, key, None if value is None else (value,), time)


def join(kind):
    return Runner(TableTableJoin(1, 1, kind in ("LEFT", "OUTER"), kind in ("RIGHT", "OUTER")))


@pytest.mark.parametrize("kind", ["INNER", "LEFT", "RIGHT", "OUTER"])
def test_matches_have_the_later_time(kind):
    tables = join(kind)
    tables.feed(left(1, "l", 7))
    assert tables.feed(right(1, "r", 3)) == [(1, ("l", "r"), 7)]
    assert tables.feed(left(1, "m", 9)) == [(1, ("m", "r"), 9)]


def test_inner():
    tables = join("INNER")
    assert tables.feed(left(1, "l"), left(2, None)) == []
    tables.feed(right(1, "r"))
    assert tables.feed(right(1, None, 4)) == [(1, None, 4)]
    assert tables.feed(left(1, None, 5)) == []
    assert tables.size() == 0


def test_inner_tells_of_a_tombstone_wherever_the_other_side_has_a_row():
    tables = join("INNER")
    tables.feed(right(1, "r", 8))
    assert tables.feed(left(1, None, 5)) == [(1, None, 8)]


def test_left():
    tables = join("LEFT")
    assert tables.feed(left(1, "l", 2)) == [(1, ("l", None), 2)]
    assert tables.feed(right(2, "r")) == []
    tables.feed(right(1, "r", 3))
    assert tables.feed(right(1, None, 4)) == [(1, ("l", None), 4)]
    assert tables.feed(left(1, None, 5)) == [(1, None, 5)]
    assert tables.feed(left(1, None, 6)) == []


def test_right():
    tables = join("RIGHT")
    assert tables.feed(left(1, "l")) == []
    assert tables.feed(right(2, "r", 3)) == [(2, (None, "r"), 3)]
    tables.feed(right(1, "r"))
    assert tables.feed(left(1, None, 4)) == [(1, (None, "r"), 4)]
    assert tables.feed(right(1, None, 5)) == [(1, None, 5)]


def test_outer():
    tables = join("OUTER")
    assert tables.feed(left(1, "l"), right(2, "r")) == [
        (1, ("l", None), 0),
        (2, (None, "r"), 0),
    ]
    tables.feed(right(1, "r"))
    assert tables.feed(left(1, None)) == [(1, (None, "r"), 0)]
    assert tables.feed(right(1, None)) == [(1, None, 0)]
    assert tables.feed(right(1, None)) == []


def test_rows_without_a_key_are_left_out():
    assert join("OUTER").feed(left(None, "l")) == []


def test_presence_keeps_tombstones_to_keys_that_had_a_row():
    rows = Runner(Presence())
    assert rows.feed(left(1, None), left(1, "a"), left(1, None), left(1, None)) == [
        (1, ("a",), 0),
        (1, None, 0),
    ]
    assert rows.size() == 0
