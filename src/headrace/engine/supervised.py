"""Threads that are restarted when they fail, and that the health check shows.

ARCHITECTURE.md lists them all. None may end in silence: whatever its work raises is logged, and
the work begins anew after a backoff.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from headrace.model.errors import HeadraceError

LOG = logging.getLogger(__name__)

INITIAL_SECONDS = 0.5
MOST_SECONDS = 30.0
# Work that has gone on for so long after a failure is well again.
SETTLE_SECONDS = 5.0


class SupervisedThread:
    """Runs `work` in a thread until it returns, which it does when `stopping` is set.

    If it raises, it runs again after a backoff. `failed` is told first, for what cannot wait.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], None],
        *,
        initial: float = INITIAL_SECONDS,
        most: float = MOST_SECONDS,
        failed: Callable[[Exception], None] = lambda failure: None,
    ) -> None:
        self.name = name
        self.stopping = threading.Event()
        self._work = work
        self._initial, self._most = initial, most
        self._failed = failed
        self._reason: str | None = None
        self._working_since = float("inf")
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Returns when the work has ended; it may be called by the work itself."""
        self.stopping.set()
        if self.is_alive and self._thread is not threading.current_thread():
            assert self._thread is not None
            self._thread.join()

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def failure(self) -> str | None:
        """Why the thread does not work right now; None if it does, or need not."""
        if self._thread is None or self.stopping.is_set():
            return None
        if not self._thread.is_alive():
            return self._reason or "the thread has ended"
        if time.monotonic() - self._working_since > SETTLE_SECONDS:
            return None
        return self._reason

    def _run(self) -> None:
        backoff = self._initial
        while not self.stopping.is_set():
            self._working_since = began = time.monotonic()
            try:
                self._work()
                return
            except Exception as failure:  # no thread may end in silence
                self._working_since = float("inf")
                if time.monotonic() - began > self._most:
                    backoff = self._initial
                self._note(failure, backoff)
            self.stopping.wait(backoff)
            backoff = min(2 * backoff, self._most)

    def _note(self, failure: Exception, backoff: float) -> None:
        self._reason = str(failure) or type(failure).__name__
        if self.stopping.is_set():
            return
        # What we raise says it all in its sentence; of anything else the trace is wanted.
        LOG.warning(
            "%s failed and goes on in %.1f s: %s",
            self.name,
            backoff,
            self._reason,
            exc_info=None if isinstance(failure, HeadraceError) else failure,
        )
        try:
            self._failed(failure)
        except Exception:  # the work goes on, whoever could not be told
            LOG.exception("The failure of %s could not be told", self.name)
