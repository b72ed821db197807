import random

import pytest

from headrace.spark.state.kernels.foreign_key_join import ForeignKeyJoin, References
from kernel_feeding import Runner


class Tables:
    """Both kernels. Left rows are (key, (foreign, value) or None), right rows (key, value)."""

    def __init__(self, outer):
        self.references = Runner(References(1, 1, 1, outer))
        self.join = Runner(ForeignKeyJoin(1, 1, outer))

    def left(self, key, foreign, value=None, time=0):
        row = None if value is None else (foreign, value)
        messages = self.references.feed((0, key, row, time))
        return self.join.feed(*[(0, *message) for message in messages])

    def right(self, key, value, time=0):
        return self.join.feed((1, key, None if value is None else (value,), time))


def test_inner_results_come_from_both_sides():
    tables = Tables(outer=False)
    assert tables.left("l1", "f", "a", 5) == []
    assert tables.right("f", "x", 3) == [("l1", ("a", "x"), 3)]
    assert tables.left("l2", "f", "b", 1) == [("l2", ("b", "x"), 3)]
    assert tables.right("f", "y", 9) == [("l1", ("a", "y"), 9), ("l2", ("b", "y"), 9)]


def test_inner_tombstones():
    tables = Tables(outer=False)
    tables.right("f", "x", 1)
    tables.left("l", "f", "a", 2)
    assert tables.right("f", None, 3) == [("l", None, 3)]
    assert tables.left("l", None, None, 4) == [("l", None, 4)]
    assert tables.left("l", None, None, 5) == []
    assert tables.join.size() == tables.references.size() == 0


def test_a_row_that_moves_says_so_once():
    for outer in (False, True):
        tables = Tables(outer)
        tables.right("f", "x")
        tables.right("g", "y")
        tables.left("l", "f", "a")
        assert tables.left("l", "g", "a", 2) == [("l", ("a", "y"), 2)]
        assert tables.right("f", "z", 3) == []


def test_a_row_that_moves_to_nothing():
    inner, outer = Tables(False), Tables(True)
    for tables in (inner, outer):
        tables.right("f", "x")
        tables.left("l", "f", "a")
    assert inner.left("l", "none", "a", 2) == [("l", None, 2)]
    assert outer.left("l", "none", "a", 2) == [("l", ("a", None), 2)]
    assert inner.left("l", "f", "a", 3) == [("l", ("a", "x"), 3)]
    assert inner.left("l", None, "a", 4) == [("l", None, 4)]
    assert outer.left("l", None, "a", 4) == [("l", ("a", None), 4)]
    assert inner.left("l", "f", "a", 5) == [("l", ("a", "x"), 5)]


def test_left_keeps_rows_without_a_match():
    tables = Tables(outer=True)
    assert tables.left("l", "f", "a", 1) == [("l", ("a", None), 1)]
    assert tables.left("m", None, "b", 2) == [("m", ("b", None), 2)]
    assert tables.right("f", "x", 3) == [("l", ("a", "x"), 3)]
    assert tables.right("f", None, 4) == [("l", ("a", None), 4)]
    assert tables.left("l", None, None, 5) == [("l", None, 5)]
    assert tables.left("m", None, None, 6) == [("m", None, 6)]


def test_a_restored_kernel_knows_who_refers():
    tables = Tables(outer=False)
    tables.left("l", "f", "a")
    tables.join.reopen()
    assert tables.right("f", "x") == [("l", ("a", "x"), 0)]


@pytest.mark.parametrize("outer", [False, True])
def test_the_result_is_the_join_of_what_the_tables_hold(outer):
    chance = random.Random(3)
    tables = Tables(outer)
    left, right, result = {}, {}, {}
    for step in range(2000):
        if chance.random() < 0.6:
            key, foreign = chance.randrange(20), chance.choice([*range(8), None])
            if chance.random() < 0.2:
                left.pop(key, None)
                said = tables.left(key, None)
            else:
                left[key] = (foreign, step)
                said = tables.left(key, foreign, step)
        else:
            key = chance.randrange(8)
            if chance.random() < 0.3:
                right.pop(key, None)
                said = tables.right(key, None)
            else:
                right[key] = step
                said = tables.right(key, step)
        for key, values, _ in said:
            result.pop(key, None)
            if values is not None:
                result[key] = values
        assert result == {
            key: (value, right.get(foreign))
            for key, (foreign, value) in left.items()
            if outer or foreign in right
        }
