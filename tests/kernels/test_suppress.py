from kernel_feeding import Runner

from headrace.spark.kernels.suppress import Suppress


def row(key, start, end, value, time):
    return (0, key, (start, end, value is not None, value), time)


def test_a_window_speaks_once_when_it_closes():
    runner = Runner(Suppress(wait=5))
    assert runner.feed(row("a", 0, 10, 1, 3), row("a", 0, 10, 2, 9), row("b", 10, 20, 1, 14)) == []
    assert runner.feed(row("b", 10, 20, 2, 15)) == [(("a", 0, 10), (2,), 9)]
    assert runner.tick(25) == [(("b", 10, 20), (2,), 15)]
    assert runner.size() == 0


def test_a_window_that_was_taken_back_says_nothing():
    runner = Runner(Suppress(wait=4))
    runner.feed(row("a", 0, 3, 1, 3), row("a", 0, 3, None, 3), row("a", 0, 5, 2, 5))
    assert runner.tick(10) == [(("a", 0, 5), (2,), 5)]


def test_a_restored_kernel_remembers():
    runner = Runner(Suppress(wait=0))
    runner.feed(row("a", 0, 10, 1, 3))
    runner.reopen()
    assert runner.tick(10) == [(("a", 0, 10), (1,), 3)]
