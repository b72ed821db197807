"""Parks push queries whose clients do not read: what they hold in Spark is for those who do.

A parked query goes on from its checkpoint when its client has read what waits for it. It was ended
before it evaluated a batch, which then runs for the first time: no row is lost, none comes twice.
"""

from __future__ import annotations

import time

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from headrace.engine.failure_reasons import reason_of
from headrace.engine.queries.push import PushQueries
from headrace.engine.supervised import SupervisedThread

BETWEEN_LOOKS = 0.2


class Parking:
    """Looks after the push queries of one server: which have started, which nobody reads."""

    def __init__(self, pushes: PushQueries) -> None:
        self._pushes = pushes
        self.thread = SupervisedThread("push-parking", self._run)

    def open(self) -> None:
        self.thread.start()

    def close(self) -> None:
        """Stops the thread, without waiting for a query that it is ending."""
        self.thread.stopping.set()

    def _run(self) -> None:
        while not self.thread.stopping.wait(BETWEEN_LOOKS):
            self.look(time.monotonic())

    def look(self, now: float) -> None:
        for push in self._pushes:
            try:
                push.look_after(now)
            except (Py4JError, PySparkException) as e:
                if not self.thread.stopping.is_set():
                    push.fail(f"It could not be parked: {reason_of(e)}")
