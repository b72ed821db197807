"""Whether this process was frozen: a task that was must not write any more.

While a server and its workers are frozen, another server takes its queries over. When they wake,
the JVM stops the queries (`query_watchdog.py`), but a task in the middle of its work may be faster:
its rows are older than what the other server has written since, and a table would end with them.
Runs on executors.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

# Nobody takes over from a server that was silent for less.
MOST_SECONDS = 10.0
# A process that has just woken begins nothing either: the JVM may not have stopped its queries yet.
REST_SECONDS = 5.0
_TICK_SECONDS = 1.0
# A process that works, and has no time to look, is not frozen.
_WORK_SECONDS = 1.0


class FrozenError(RuntimeError):
    """A task was frozen; its batch runs again, here or where it runs by now."""


class FreezeDetector:
    """Notices when time has passed in which the process has done nothing at all. Somebody has to
    look more often than that: `watch` does."""

    def __init__(
        self,
        most: float = MOST_SECONDS,
        rest: float = REST_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        worked: Callable[[], float] = time.process_time,
    ) -> None:
        self._most, self._rest = most, rest
        self._clock, self._worked = clock, worked
        self._lock = threading.Lock()
        self._seen, self._seen_work = clock(), worked()
        self._woke_at = float("-inf")
        self._watched_by: int | None = None

    def begin(self) -> float:
        """When a task begins, for `check`."""
        self._watch()
        self._look()
        return self._clock()

    def check(self, began: float) -> None:
        """Raises if the process was frozen since then, or not long before."""
        self._look()
        if self._woke_at > began - self._rest:
            raise FrozenError(
                f"The process was frozen for more than {self._most:.0f} s: another server may run "
                "the query by now."
            )

    def _look(self) -> None:
        with self._lock:
            now, work = self._clock(), self._worked()
            idle = now - self._seen > self._most and work - self._seen_work < _WORK_SECONDS
            if idle:
                self._woke_at = now
            self._seen, self._seen_work = now, work

    def _watch(self) -> None:
        """Looks from now on; threads stay behind when a process is forked."""
        if self._watched_by == os.getpid():
            return
        self._watched_by = os.getpid()
        self._lock = threading.Lock()
        self._seen, self._seen_work = self._clock(), self._worked()
        threading.Thread(target=self._run, name="freeze-detector", daemon=True).start()

    def _run(self) -> None:
        while True:
            time.sleep(min(_TICK_SECONDS, self._most / 4))
            self._look()


_process = FreezeDetector()


def begin() -> float:
    """When a task of this process begins, for `check`."""
    return _process.begin()


def check(began: float) -> None:
    """Raises if this process was frozen since then, or not long before."""
    _process.check(began)
