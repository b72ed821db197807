"""Ends queries whose micro-batch makes no progress, as one record can block it for ever.

A function that does not come to an end with some record is the usual reason. Nothing fails then, so
somebody has to look. What makes any progress, however slow, is left alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from headrace.engine.queries.persistent import PersistentQuery, QueryKeeper
from headrace.engine.queries.push import PushQueries
from headrace.engine.supervised import SupervisedThread
from headrace.spark.runtime.progress import Batch, Tasks, TaskWatch

LOG = logging.getLogger(__name__)

MOST_BETWEEN_LOOKS = 5.0
# A persistent query that stood still has more time in its next attempts: up to 16 times as much.
MOST_DOUBLINGS = 4
# So long after it was ended, a task that still runs is one that nothing ends.
UNENDED_SECONDS = 60.0


class SparkWork(Protocol):
    """What Spark computes for one pull query."""

    @property
    def id(self) -> str: ...

    def fail(self, reason: str) -> None: ...


@dataclass(frozen=True)
class Watched:
    """One watched query: its current work (None if it is idle), the time limit, and how to end
    it."""

    run: str
    at: Hashable
    seconds: float
    end: Callable[[str], None]


@dataclass
class _Still:
    at: Hashable
    seconds: float = 0.0


class StallWatch:
    """Ends work that made no progress for `seconds`. `give_up` is called if Spark cannot end it."""

    def __init__(
        self,
        tasks: TaskWatch,
        queries: QueryKeeper,
        pushes: PushQueries,
        pulls: Callable[[], Iterable[SparkWork]],
        seconds: float,
        give_up: Callable[[str], None],
    ) -> None:
        self._tasks = tasks
        self._queries, self._pushes, self._pulls = queries, pushes, pulls
        self._seconds = seconds
        self._give_up = give_up
        self._between = min(seconds / 4, MOST_BETWEEN_LOOKS)
        self._looked_at: float | None = None
        self._still: dict[str, _Still] = {}
        self._unended: dict[int, float] = {}
        self.thread = SupervisedThread("stall-watch", self._run)

    def open(self) -> None:
        self.thread.start()

    def close(self) -> None:
        """Stops the thread, without waiting for a query that it is ending."""
        self.thread.stopping.set()

    def _run(self) -> None:
        while not self.thread.stopping.wait(self._between):
            self.look(time.monotonic())

    def look(self, now: float) -> None:
        """Checks all queries; time for which this process was suspended does not count."""
        before = now if self._looked_at is None else self._looked_at
        passed, self._looked_at = min(now - before, 2 * self._between), now
        tasks = self._tasks.look()
        still = {}
        for watched in self._all(tasks):
            if watched.at is None:
                continue
            seen = self._still.get(watched.run)
            if seen is None or seen.at != watched.at:
                seen = _Still(watched.at, -passed)
            seen.seconds += passed
            still[watched.run] = seen
            if seen.seconds >= watched.seconds:
                del still[watched.run]
                self._end(watched, seen.seconds)
        self._still = still
        self._look_for_unended(tasks.unended, passed)

    def _end(self, watched: Watched, seconds: float) -> None:
        try:
            watched.end(
                f"Its batch made no progress for {seconds:.0f} s and was ended: no record was "
                "read, no task has finished. Perhaps one of its records keeps a function from "
                "coming to an end. (ksql.query.stall.timeout.ms says after how long.)"
            )
        except Exception:  # one query that cannot be ended must not shield the others
            LOG.exception("What stood still could not be ended; it is tried again")

    def _look_for_unended(self, unended: dict[int, str], passed: float) -> None:
        self._unended = {task: self._unended.get(task, -passed) + passed for task in unended}
        for task, seconds in self._unended.items():
            if seconds >= UNENDED_SECONDS:
                self._give_up(
                    f"A task that was ended {seconds:.0f} s ago still keeps a core busy, in "
                    f"{unended[task]}: only the end of Spark's JVM ends it"
                )
                return

    # ------------------------------------------------------------------ what is looked at

    def _all(self, tasks: Tasks) -> Iterator[Watched]:
        for query in self._queries.all_known():
            watched = self._persistent(query, tasks)
            if watched is not None:
                yield watched
        for push in self._pushes:
            yield Watched(push.run, _working(push.run, tasks), self._seconds, push.fail)
        for pull in self._pulls():
            yield Watched(pull.id, _working(pull.id, tasks), self._seconds, pull.fail)

    def _persistent(self, query: PersistentQuery, tasks: Tasks) -> Watched | None:
        streaming = query.streaming
        if streaming is None:
            return None
        run = str(streaming.runId)
        batch = Batch.of(streaming)
        if batch.finished:
            query.stalls = 0
        work = tasks.work.get(run)
        waits = batch.at is None or (work is not None and not work.running)
        at = None if waits else (batch.at, work)
        patience = self._seconds * 2 ** min(query.stalls, MOST_DOUBLINGS)

        def end(reason: str) -> None:
            if not self._queries.end_stalled(query.id, streaming, reason):
                self._give_up(f"Query {query.id} stands still, and Spark cannot stop it")

        return Watched(run, at, patience, end)


def _working(name: str, tasks: Tasks) -> Hashable:
    work = tasks.work.get(name)
    return work if work is not None and work.running else None
