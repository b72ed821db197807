"""How often queries look for records; Spark is pretended."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError

from headrace.spark.internals import polling
from headrace.spark.internals.polling import PollingDelay, polling_delay_ms


@pytest.mark.parametrize(
    ("queries", "idle", "milliseconds"),
    [(1, False, 20), (2, False, 20), (5, False, 50), (1, True, 80), (20, True, 800)],
)
def test_the_more_queries_and_the_less_work_the_longer_the_pause(queries, idle, milliseconds):
    assert polling_delay_ms(queries, idle) == milliseconds


def test_a_pause_is_never_longer_than_a_second():
    assert polling_delay_ms(500, False) == polling_delay_ms(40, True) == 1000


class Spark:
    """A streaming query's Java end, and the delays it was told to make."""

    def __init__(self):
        self.progress = None
        self.delays = []
        self._jsq = self

    def worked(self, at, rows):
        self.progress = SimpleNamespace(numInputRows=lambda: rows, timestamp=lambda: at)

    def lastProgress(self):
        return self.progress

    def streamingQuery(self):
        return self

    def setLong(self, execution, milliseconds):
        self.delays.append(milliseconds)


@pytest.fixture
def spark(monkeypatch):
    made = Spark()
    monkeypatch.setattr(polling, "field", lambda *names: made)
    return made


def test_a_query_rests_when_nothing_came_for_a_while_and_wakes_with_its_next_batch(spark):
    delay = PollingDelay(spark, now=0.0)
    delay.adjust(1, 1.0)
    assert spark.delays == []  # as Spark started it
    delay.adjust(1, 6.0)
    assert spark.delays == [80]
    spark.worked("noon", 3)
    delay.adjust(1, 7.0)
    assert spark.delays == [80, 20]
    spark.worked("a minute past noon", 0)  # Spark says every ten seconds that there was nothing
    delay.adjust(1, 11.0)
    assert spark.delays == [80, 20]
    delay.adjust(1, 13.0)
    assert spark.delays == [80, 20, 80]


def test_a_spark_that_is_built_differently_looks_as_often_as_ever(monkeypatch):
    def unknown(*names):
        raise Py4JError("no such field")

    monkeypatch.setattr(polling, "field", unknown)
    PollingDelay(Spark(), now=0.0).adjust(9, 60.0)
