"""Ctrl-C: interrupts running statements, and is ignored between them."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

_LOOK_SECONDS = 0.2
_UNHEARD_SECONDS = 1.0


@contextmanager
def interruptible(*, always: bool) -> Iterator[None]:
    """A context in which an interrupt raises KeyboardInterrupt.

    `always`: also where the process was started with interrupts ignored. Shells do that with what
    they start in the background. A script honours it; a person at a terminal means what he types.
    """
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN and not always:
        yield
        return
    watch = _Watch()
    signal.signal(signal.SIGALRM, watch.look)
    signal.signal(signal.SIGINT, watch.interrupt)
    signal.setitimer(signal.ITIMER_REAL, _LOOK_SECONDS, _LOOK_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


@contextmanager
def ignored() -> Iterator[None]:
    """A context in which interrupts are ignored, except inside `interruptible`."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Watch:
    """The signal handler, which delivers each interrupt once.

    Left alone, Python may miss one. It may come after Python's last look for signals and before a
    system call that waits: a clock ends such waiting, for a look. And its exception may be raised
    where exceptions are dropped, as in a finalizer: after a while it is raised again. Further ones
    do not disturb the cleaning up after the first.
    """

    def __init__(self) -> None:
        self._came: float | None = None

    def interrupt(self, *_: object) -> None:
        if self._came is None:
            self._came = time.monotonic()
            raise KeyboardInterrupt

    def look(self, *_: object) -> None:
        if self._came is not None and time.monotonic() - self._came > _UNHEARD_SECONDS:
            self._came = time.monotonic()
            raise KeyboardInterrupt
