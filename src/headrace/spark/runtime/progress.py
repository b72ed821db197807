"""Whether Spark's tasks get anywhere, as its own counters tell.

How many records a running task has read comes with its executor's heartbeats, every ten seconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headrace.spark.internals.java_objects import java_context, java_query, jvm_of
from headrace.spark.runtime.session import is_local
from headrace.spark.sink.kafka import OBSERVED

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


@dataclass(frozen=True)
class BatchReport:
    """What Spark tells of a micro-batch: when it began, the offsets of the records that come next,
    by topic and partition, and the sums that the program observes."""

    at: str
    reached: dict[str, dict[int, int]]
    observed: dict[str, int]


def reports_since(query: StreamingQuery, seen: str | None) -> list[BatchReport]:
    """The batches that have finished since the one of that time; Spark keeps the last hundred."""
    running = java_query(query)
    last = running.lastProgress()
    if last is None or str(last.timestamp()) == seen:
        return []
    reports: list[BatchReport] = []
    updates = running.recentProgress()
    for i in range(len(updates) - 1, -1, -1):
        if seen is not None and str(updates[i].timestamp()) <= seen:
            break
        reports.append(_report(json.loads(updates[i].json())))
    return reports[::-1]


def reached_by(query: StreamingQuery) -> dict[str, dict[int, int]]:
    """Where its last finished batch ended; empty if none has."""
    last = java_query(query).lastProgress()
    return {} if last is None else _report(json.loads(last.json())).reached


def _report(progress: dict[str, Any]) -> BatchReport:
    reached: dict[str, dict[int, int]] = {}
    for source in progress["sources"]:
        for topic, partitions in (source["endOffset"] or {}).items():
            at = reached.setdefault(topic, {})
            for partition, offset in partitions.items():
                # Of several sources that read the same topic, the one that is least far counts.
                at[int(partition)] = min(offset, at.get(int(partition), offset))
    observed = progress.get("observedMetrics", {}).get(OBSERVED, {})
    return BatchReport(
        progress["timestamp"], reached, {name: sum_ or 0 for name, sum_ in observed.items()}
    )
