"""Follows what running queries have done: counts it, and commits their offsets to Kafka.

Spark keeps offsets in checkpoints, where nothing but Spark looks. For tools that show how far
consumers are behind, each query has a consumer group of ksqlDB's name, to which the offsets of its
last finished batch are committed. Nobody reads them: a query whose offsets cannot be committed
goes on, and its group is behind until they can.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from py4j.protocol import Py4JError

from headrace.engine.environment import Environment
from headrace.engine.failure_reasons import reason_of
from headrace.engine.queries.persistent import PersistentQuery, QueryKeeper
from headrace.engine.queries.statistics import TopicStatistics
from headrace.engine.supervised import SupervisedThread
from headrace.kafka.admin import Positions
from headrace.model.errors import HeadraceError
from headrace.plan import nodes as n
from headrace.spark.runtime.progress import BatchReport, reports_since

LOG = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
COMMIT_SECONDS = 2.0
# How long Kafka may take for all commits of a moment.
TIMEOUT_SECONDS = 10.0
# Kafka forgets what a group without members has committed after some days, and a server that was
# frozen may have committed older offsets: what has not changed is committed again now and then.
REFRESH_SECONDS = 600.0
FIRST_BACKOFF, MOST_BACKOFF = 5.0, 300.0


@dataclass
class _Seen:
    """What is counted of a query: up to which batch, which positions, and which unread records."""

    batch: str | None = None
    positions: dict[str, Mapping[int, int]] = field(default_factory=dict)
    unread: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)


@dataclass
class _Commit:
    """What was committed for a query, when it may be the next time, and why that failed."""

    positions: Positions | None = None
    at: float = float("-inf")
    wait: float = 0.0
    failure: str | None = None


class QueryProgress:
    """The thread `query-progress`. It looks at the queries that run here, and at no others: `holds`
    says whether this server is the one that runs the queries."""

    def __init__(
        self,
        env: Callable[[], Environment],
        queries: QueryKeeper,
        holds: Callable[[], bool],
        statistics: TopicStatistics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._env = env
        self._queries = queries
        self._holds = holds
        self._statistics = statistics
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self._commits: dict[str, _Commit] = {}
        self._leaving: dict[str, _Commit] = {}
        self._lock = threading.Lock()
        self.thread = SupervisedThread("query-progress", self._run)

    def open(self) -> None:
        self.thread.start()

    def close(self) -> None:
        """Stops the thread, without waiting for Kafka."""
        self.thread.stopping.set()

    def forget(self, query_id: str) -> None:
        """Deletes the consumer group of a query that has ended, soon."""
        with self._lock:
            self._leaving[query_id] = _Commit()

    def _run(self) -> None:
        while not self.thread.stopping.wait(LOOK_SECONDS):
            self.look()

    def look(self) -> None:
        queries = {query.id: query for query in self._queries.all_known()}
        for query in queries.values():
            self._follow(query)
        for known in (self._seen, self._commits):
            for id_ in [id_ for id_ in known if id_ not in queries]:
                del known[id_]
        if self._queries.active and self._holds():
            self._commit(queries)
            self._delete(queries)

    # ------------------------------------------------------------------ counting

    def _follow(self, query: PersistentQuery) -> None:
        ended, running = query.ended, query.streaming
        seen = self._seen.setdefault(query.id, _Seen())
        for streaming in (ended, running):
            try:
                reports = [] if streaming is None else reports_since(streaming, seen.batch)
            except Py4JError as e:  # Spark is going, or gone
                LOG.debug("The progress of %s is not known: %s", query.id, reason_of(e))
                continue
            for report in reports:
                self._count(query, seen, report)
                if streaming is query.streaming or query.streaming is None:
                    query.reached = {**query.positions, **report.reached}
        if query.ended is ended:
            query.ended = None
        self._count_unread(seen, query.unread)

    def _count(self, query: PersistentQuery, seen: _Seen, report: BatchReport) -> None:
        for topic, partitions in report.reached.items():
            before = seen.positions.get(topic, query.positions.get(topic, {}))
            read = sum(max(0, o - before.get(p, o)) for p, o in partitions.items())
            self._statistics.consumed(topic, read)
            seen.positions[topic] = partitions
        seen.batch = report.at
        planned = query.planned
        if planned is None or not isinstance(planned.node, n.Write):
            return
        in_kafka = self._env().in_kafka
        self._statistics.produced(in_kafka(planned.node.topic), report.observed.get("written", 0))
        topics = dict.fromkeys(source.topic for source in n.sources(planned.node))
        for i, topic in enumerate(topics):
            self._statistics.failed(in_kafka(topic), report.observed.get(f"unread{i}", 0))

    def _count_unread(self, seen: _Seen, unread: Counter[str]) -> None:
        if seen.unread is not unread:  # it has started again
            seen.unread, seen.counted = unread, Counter()
        for topic, count in list(unread.items()):
            self._statistics.failed(self._env().in_kafka(topic), count - seen.counted[topic])
            seen.counted[topic] = count

    # ------------------------------------------------------------------ consumer groups

    def _commit(self, queries: Mapping[str, PersistentQuery]) -> None:
        now = self._clock()
        due: dict[str, Positions] = {}
        for query in queries.values():
            known = self._commits.setdefault(query.id, _Commit())
            changed = query.positions != known.positions
            pause = known.wait or (COMMIT_SECONDS if changed else REFRESH_SECONDS)
            if query.positions and now - known.at >= pause:
                due[query.id] = query.positions
        if not due:
            return
        group = self._env().query_group
        groups = {group(id_): positions for id_, positions in due.items()}
        failures = self._env().admin.commit(groups, TIMEOUT_SECONDS)
        for id_, positions in due.items():
            failure = failures.get(group(id_))
            what = f"The offsets of query {id_} are not committed to Kafka"
            self._note(self._commits[id_], what, failure, now)
            if failure is None:
                self._commits[id_].positions = positions

    def _delete(self, known: Collection[str]) -> None:
        now = self._clock()
        with self._lock:
            for id_ in [id_ for id_ in self._leaving if id_ in known]:
                del self._leaving[id_]  # there is a query of this name again
            due = [id_ for id_, c in self._leaving.items() if now - c.at >= c.wait]
        if not due:
            return
        group = self._env().query_group
        failures = self._env().admin.delete_groups([group(id_) for id_ in due], TIMEOUT_SECONDS)
        with self._lock:
            for id_ in due:
                failure = failures.get(group(id_))
                if failure is None:
                    self._leaving.pop(id_, None)
                elif id_ in self._leaving:
                    what = f"The consumer group of query {id_}, which has ended, is not deleted"
                    self._note(self._leaving[id_], what, failure, now)

    def _note(self, done: _Commit, what: str, failure: HeadraceError | None, now: float) -> None:
        """Waits longer after each failure, and tells each reason once."""
        done.at = now
        if failure is None:
            done.wait, done.failure = 0.0, None
            return
        done.wait = min(max(FIRST_BACKOFF, 2 * done.wait), MOST_BACKOFF)
        if done.failure != str(failure):
            done.failure = str(failure)
            LOG.warning("%s: %s", what, failure)
