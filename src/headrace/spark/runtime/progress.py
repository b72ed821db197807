"""Whether Spark's tasks get anywhere, as its own counters tell.

How many records a running task has read comes with its executor's heartbeats, every ten seconds.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headrace.spark.internals.java_objects import java_context, java_query, jvm_of
from headrace.spark.runtime.session import is_local

_RUN = re.compile(r"^runId = (\S+)$", re.MULTILINE)
_TASK_THREAD = re.compile(
    r"Executor task launch worker for task .* in stage (\d+)\.(\d+) \(TID (\d+)\)"
)
_OVER = frozenset({"COMPLETE", "FAILED", "SKIPPED"})
_WAITS_FOR_DATA = "Waiting for data to arrive"
# Parts of a stack that say how a task came to where it is, not where that is.
_PLUMBING = ("java.lang.", "jdk.internal.", "sun.nio.")


@dataclass(frozen=True)
class Work:
    """What the tasks of one query have done. Of two that are equal, the later one saw nothing new;
    unless no task was running, because others have the cores."""

    running: int
    done: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Tasks:
    """All tasks of a moment: by the run of a streaming query, or by the description of other jobs;
    and those that were ended and run on, by their ids, with what they do."""

    work: dict[str, Work]
    unended: dict[int, str]


class TaskWatch:
    """Looks at the tasks of one Spark."""

    def __init__(self, spark: SparkSession) -> None:
        context = spark.sparkContext
        self._store = java_context(context).sc().statusStore()
        self._threads = jvm_of(spark).java.lang.Thread
        self._here = is_local(str(context.master))

    def look(self) -> Tasks:
        found = self._store.activeStages()
        work: dict[str, Work] = {}
        ended = set()
        for stage in (found.apply(i) for i in range(found.size())):
            if str(stage.status()) in _OVER:  # and is kept for the tasks that it still has
                ended.add((stage.stageId(), stage.attemptId()))
                continue
            name = _name(stage)
            seen = work.get(name, Work(0, ()))
            running = seen.running + stage.numActiveTasks()
            work[name] = Work(running, (*seen.done, _done(stage)))
        return Tasks(work, self._unended(ended) if ended and self._here else {})

    def _unended(self, stages: set[tuple[int, int]]) -> dict[int, str]:
        """Of these stages, what still runs. Spark itself ends an executor that keeps on with such a
        task, but never the driver."""
        unended = {}
        for thread in self._threads.getAllStackTraces().keySet():
            task = _TASK_THREAD.fullmatch(str(thread.getName()))
            if task is not None and (int(task[1]), int(task[2])) in stages:
                unended[int(task[3])] = _place(thread)
        return unended


def _name(stage: JavaObject) -> str:
    description = stage.description()
    text = str(description.get()) if description.isDefined() else ""
    run = _RUN.search(text)
    return text if run is None else run[1]


def _done(stage: JavaObject) -> tuple[int, ...]:
    return (
        stage.stageId(),
        stage.attemptId(),
        stage.numCompleteTasks(),
        stage.numFailedTasks(),
        stage.inputRecords(),
        stage.shuffleReadRecords(),
        stage.shuffleWriteRecords(),
        stage.outputRecords(),
    )


def _place(thread: JavaObject) -> str:
    """The method that a thread is in."""
    frames = [f"{f.getClassName()}.{f.getMethodName()}" for f in thread.getStackTrace()[:10]]
    own = [frame for frame in frames if not frame.startswith(_PLUMBING)]
    return next(iter(own or frames), "an unknown place")


@dataclass(frozen=True)
class Batch:
    """A streaming query at a moment: whether it has finished a batch since it started, and what it
    is at; None if it waits for records."""

    finished: bool
    at: Hashable

    @staticmethod
    def of(query: StreamingQuery) -> Batch:
        running = java_query(query)
        progress, status = running.lastProgress(), running.status()
        last = None if progress is None else (progress.batchId(), str(progress.timestamp()))
        message = str(status.message())
        waits = not status.isTriggerActive() or message == _WAITS_FOR_DATA
        return Batch(last is not None, None if waits else (last, message))


def has_begun(query: StreamingQuery) -> bool:
    """Whether it is through with its first batch, or waits for its first records, or has ended."""
    running = java_query(query)
    if not running.isActive() or has_progressed(query):
        return True
    return str(running.status().message()) == _WAITS_FOR_DATA


def has_progressed(query: StreamingQuery) -> bool:
    """Whether it has read records, or looked in vain for some, since it started."""
    return java_query(query).lastProgress() is not None
