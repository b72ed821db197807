"""How often queries look for records; Spark is pretended."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError

from headrace.spark import pacing
from headrace.spark.pacing import Pace, pause_between_looks


@pytest.mark.parametrize(
    ("queries", "resting", "milliseconds"),
    [(1, False, 20), (2, False, 20), (5, False, 50), (1, True, 80), (20, True, 800)],
)
def test_the_more_queries_and_the_less_work_the_longer_the_pause(queries, resting, milliseconds):
    assert pause_between_looks(queries, resting) == milliseconds


def test_a_pause_is_never_longer_than_a_second():
    assert pause_between_looks(500, False) == pause_between_looks(40, True) == 1000


class Spark:
    """A streaming query's Java end, and the pauses it was told to make."""

    def __init__(self):
        self.progress = None
        self.pauses = []
        self._jsq = self

    def worked(self, at, rows):
        self.progress = SimpleNamespace(numInputRows=lambda: rows, timestamp=lambda: at)

    def lastProgress(self):
        return self.progress

    def streamingQuery(self):
        return self

    def setLong(self, execution, milliseconds):
        self.pauses.append(milliseconds)


@pytest.fixture
def spark(monkeypatch):
    made = Spark()
    monkeypatch.setattr(pacing, "field", lambda *names: made)
    return made


def test_a_query_rests_when_nothing_came_for_a_while_and_wakes_with_its_next_batch(spark):
    pace = Pace(spark, now=0.0)
    pace.adjust(1, 1.0)
    assert spark.pauses == []  # as Spark started it
    pace.adjust(1, 6.0)
    assert spark.pauses == [80]
    spark.worked("noon", 3)
    pace.adjust(1, 7.0)
    assert spark.pauses == [80, 20]
    spark.worked("a minute past noon", 0)  # Spark says every ten seconds that there was nothing
    pace.adjust(1, 11.0)
    assert spark.pauses == [80, 20]
    pace.adjust(1, 13.0)
    assert spark.pauses == [80, 20, 80]


def test_a_spark_that_is_built_differently_looks_as_often_as_ever(monkeypatch):
    def unknown(*names):
        raise Py4JError("no such field")

    monkeypatch.setattr(pacing, "field", unknown)
    Pace(Spark(), now=0.0).adjust(9, 60.0)
