from headrace.spark.state.kernels.steps import Call
from headrace.spark.state.kernels.table_aggregate import GroupChanges, TableAggregate
from kernel_feeding import Count, Runner, Sum


class Grouping:
    """Both kernels, one behind the other: rows are (key, (group, value) or None, time)."""

    def __init__(self, **options):
        self.changes = Runner(GroupChanges(group_width=1, value_width=1))
        calls = (Call("COUNT", Count(), ()), Call("SUM", Sum(), (0,)))
        self.groups = Runner(TableAggregate(calls, value_width=1, **options))

    def feed(self, *rows):
        messages = self.changes.feed(*[(0, *row) for row in rows])
        return self.groups.feed(*[(0, *message) for message in messages])


def test_rows_join_leave_and_change_groups():
    table = Grouping()
    assert table.feed((1, ("x", 10), 0)) == [("x", (1, 10), 0)]
    assert table.feed((2, ("x", 5), 3)) == [("x", (2, 15), 3)]
    assert table.feed((1, ("y", 10), 1)) == [("x", (1, 5), 3), ("y", (1, 10), 1)]
    assert table.feed((2, None, 9)) == [("x", (0, 0), 9)]


def test_a_change_within_a_group_is_one_result():
    table = Grouping()
    table.feed((1, ("x", 10), 0))
    assert table.feed((1, ("x", 7), 0)) == [("x", (1, 7), 0)]


def test_a_row_without_a_group_is_in_none():
    table = Grouping()
    assert table.feed((1, (None, 10), 0)) == []
    assert table.feed((1, ("x", 10), 0)) == [("x", (1, 10), 0)]
    assert table.feed((1, (None, 10), 0)) == [("x", (0, 0), 0)]
    assert table.feed((1, None, 0)) == []
    assert table.changes.size() == 0


def test_a_tombstone_of_an_unknown_row_says_nothing():
    assert Grouping().feed((1, None, 0)) == []


def test_coalesced_groups_speak_once_a_batch():
    table = Grouping(coalesce=True)
    assert table.feed((1, ("x", 1), 0), (2, ("x", 2), 0), (1, ("y", 1), 0)) == [
        ("x", (1, 2), 0),
        ("y", (1, 1), 0),
    ]


def test_groups_of_several_columns():
    changes = Runner(GroupChanges(group_width=2, value_width=0))
    assert changes.feed((0, 1, ("a", "b"), 0)) == [(("a", "b"), (1,), 0)]
    assert changes.feed((0, 1, ("a", None), 0)) == [(("a", "b"), (0,), 0)]
