"""How many records a server has read and written, and how fast."""

from headrace.engine.queries.statistics import TopicStatistics


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


def told(statistics):
    return {s.name: (s.value, s.timestamp) for s in statistics}


def test_totals_and_rates_of_a_topic():
    clock = Clock()
    counts = TopicStatistics(clock)
    counts.produced("t", 40)
    clock.now += 50
    counts.produced("t", 60)
    counts.consumed("t", 7)
    counts.consumed("other", 1)
    counts.failed("t", 2)
    assert told(counts.of("t")) == {
        "messages-per-sec": (1.0, 1_000_050_000),
        "total-messages": (100.0, 1_000_050_000),
        "consumer-messages-per-sec": (0.07, 1_000_050_000),
        "consumer-total-messages": (7.0, 1_000_050_000),
    }
    assert told(counts.failures_of("t")) == {
        "consumer-failed-messages-per-sec": (0.02, 1_000_050_000),
        "consumer-failed-messages": (2.0, 1_000_050_000),
    }
    clock.now += 60
    assert told(counts.of("t"))["messages-per-sec"] == (0.6, 1_000_050_000)
    clock.now += 60
    assert told(counts.of("t"))["messages-per-sec"] == (0.0, 1_000_050_000)
    assert told(counts.of("t"))["total-messages"] == (100.0, 1_000_050_000)


def test_a_topic_of_which_nothing_is_known():
    counts = TopicStatistics()
    counts.produced("t", 0)
    assert counts.of("t") == counts.failures_of("t") == ()
