"""An interrupt is heard whenever it comes, and heard once."""

import os
import signal
import threading

import pytest

from headrace.cli.interrupts import ignored, interruptible

PATIENCE = 30


@pytest.fixture
def silence():
    """A pipe in which nothing comes; its end is a failure that does not hang."""
    reading, writing = os.pipe()
    end = threading.Timer(PATIENCE, os.write, (writing, b"!"))
    end.start()
    yield reading
    end.cancel()
    end.join()
    os.close(writing)
    os.close(reading)


@pytest.fixture(autouse=True)
def handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) in (signal.default_int_handler, signal.SIG_IGN)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_one_that_ends_no_system_call(silence):
    """As when it comes just before the call: here another thread gets it."""

    def interrupt():
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), interruptible(always=False):
        threading.Timer(0.1, interrupt).start()
        assert os.read(silence, 1) != b"!"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_one_whose_exception_is_dropped(silence):
    class Finalized:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), interruptible(always=False):
        Finalized()
        assert os.read(silence, 1) != b"!"


def test_more_of_them_do_not_disturb_the_cleaning_up():
    cleaned = False
    with pytest.raises(KeyboardInterrupt), interruptible(always=False):
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)
            cleaned = True
    assert cleaned


def test_ignored_ones_stay_ignored_for_scripts_only():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interruptible(always=False):
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruptible(always=True):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def test_ignored_but_where_they_are_heeded():
    before = signal.getsignal(signal.SIGINT)
    with ignored():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), interruptible(always=True):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == before
