"""Persistent queries: started, watched, and restarted with exponential backoff.

Every server knows all queries; they run on the one that holds the lease on them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from headrace.engine.failure_reasons import reason_of
from headrace.engine.queries.losses import DataLossError, Reading, is_data_loss
from headrace.engine.queries.program import Program
from headrace.engine.supervised import SupervisedThread
from headrace.kafka.admin import Positions
from headrace.model.entities import QueryError, QueryState
from headrace.plan.query import Planned
from headrace.spark.internals.arrow_batches import stop_counting_bytes
from headrace.spark.internals.java_objects import java_query
from headrace.spark.internals.polling import PollingDelay
from headrace.spark.internals.query_watchdog import QueryWatchdog
from headrace.spark.internals.scheduler_pools import pool_of
from headrace.spark.rows.optimistic import OPTIMISTIC, OptimisticDecoding
from headrace.spark.runtime.checkpoint import check_state
from headrace.spark.state.log import StateMismatchError

LOG = logging.getLogger(__name__)

WATCH_SECONDS = 0.5
KEPT_ERRORS = 10
STOPPING_THREADS = 8
# Longer than it takes to stop a query.
ENDING_SECONDS = 120.0


class NotHoldingError(Exception):
    """This server does not hold the lease any more and may not run queries."""


@dataclass
class PersistentQuery:
    """A query that runs until it is terminated. `plan` gives its plan, and raises while there is
    none; `build` makes its DataFrame program anew, and is told whether it may do without records
    that were deleted.

    At first its program decodes optimistically; when that fails, it is one that can do all.
    """

    id: str
    statement: str
    plan: Callable[[], Planned]
    build: Callable[[Planned, OptimisticDecoding, bool], Program]
    checkpoint: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    errors: list[QueryError] = field(default_factory=list)
    streaming: StreamingQuery | None = None
    paused: bool = False
    failures: int = 0
    retry_at: float | None = None
    started_at: float = 0.0
    polling: PollingDelay | None = None
    decoding: OptimisticDecoding = OPTIMISTIC
    degraded: bool = False  # what it needs is not there: it could not even be started
    stalls: int = 0  # so often its batch made no progress; none has been finished since
    planned: Planned | None = None
    accepts_loss: bool = False
    reading: Reading | None = None  # its topics, and what it has lost there, as it last started
    reached: Positions | None = None  # where its last finished batch ended; None if none has
    ended: StreamingQuery | None = None  # that ran before, if its last batch is not counted yet
    unread: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        try:
            self.prepare()
        except Exception as e:  # whatever planning raises: the query is kept and says why
            self.fail(reason_of(e), degraded=True)

    @property
    def state(self) -> QueryState:
        if self.paused:
            return QueryState.PAUSED
        if self.degraded or self.stalls:
            return QueryState.DEGRADED
        if self.retry_at is not None:
            return QueryState.ERROR
        return QueryState.UNRESPONSIVE if self.streaming is None else QueryState.RUNNING

    def prepare(self) -> Planned:
        """The query's plan, made now if it could not be made before."""
        if self.planned is None:
            self.planned = self.plan()
        return self.planned

    def program(self, decoding: OptimisticDecoding) -> Program:
        return self.build(self.prepare(), decoding, self.accepts_loss)

    def fail(self, reason: str, *, degraded: bool = False) -> None:
        """Records a failure. `degraded`: the query could not be started, nothing was written."""
        self.degraded = degraded
        error = QueryError(int(time.time() * 1000), reason)
        self.errors = [*self.errors[-(KEPT_ERRORS - 1) :], error]

    def start(self, may_run: Callable[[], bool] = lambda: True) -> None:
        """Plans and starts the streaming query; it goes on from its checkpoint if there is one.

        Planning takes a while: `may_run` is asked in the last moment.
        """
        # If it failed, that may have been for what it held in memory.
        decoding = replace(self.decoding, small_rows=False) if self.errors else self.decoding
        program = self.program(decoding)
        check_state(program.rows.sparkSession, self.checkpoint, program.state)
        with pool_of(program.rows.sparkSession.sparkContext, self.id):
            writer = (
                _writer(program, may_run)
                .queryName(self.id)
                .option("checkpointLocation", self.checkpoint)
                .outputMode("update")
            )
            if not may_run():
                raise NotHoldingError
            self.started_at = time.monotonic()
            self.streaming = writer.start()
            if program.decoding.small_rows:
                stop_counting_bytes(self.streaming)
            self.polling = PollingDelay(self.streaming, self.started_at)
        self.retry_at, self.degraded, self.accepts_loss = None, False, False
        self.reading, self.reached = program.reading, None
        self.unread = program.unread

    @property
    def positions(self) -> Positions:
        """By topic and partition, the offset of the record that it reads next."""
        if self.reached is not None:
            return self.reached
        return {} if self.reading is None else self.reading.starts

    @property
    def lost_records(self) -> int:
        """The number of records that were deleted before they were read."""
        return 0 if self.reading is None else self.reading.memory.lost_records

    @property
    def is_stopped(self) -> bool:
        """Whether the query stays stopped until a user runs RESUME."""
        return self.retry_at == float("inf")

    def was_too_optimistic(self, failure: Exception) -> bool:
        """Whether it failed for what its plan assumed; the next one will not."""
        before, self.decoding = self.decoding, self.decoding.after(failure)
        return self.decoding != before

    def spark_plan(self) -> str:
        """What Spark made of the plan, once a micro-batch has run."""
        if self.streaming is None:
            return ""
        return str(java_query(self.streaming).explainInternal(False))

    def stop(self) -> None:
        """Ends the running micro-batch and the query."""
        if self.streaming is not None:
            self.streaming.stop()
            self.ended, self.streaming = self.streaming, None


def _writer(program: Program, may_run: Callable[[], bool]) -> DataStreamWriter:
    """Evaluating the rows writes them, so there is nothing to do with the result; unless the
    program wants to hear of it."""
    after = program.after_batch
    if after is None:
        return program.rows.writeStream.format("noop")

    def evaluate(rows: DataFrame, batch: int) -> None:
        if not may_run():  # this process was frozen until now
            raise NotHoldingError
        after(rows.collect(), batch)

    return program.rows.writeStream.foreachBatch(evaluate)


class QueryKeeper:
    """All persistent queries, and the thread that watches over them.

    They run while it is active, which is while `may_run` is true. It may become false at any
    moment: that nothing runs then is the switch's business.
    """

    def __init__(
        self,
        initial_backoff: float,
        max_backoff: float,
        may_run: Callable[[], bool] = lambda: True,
    ) -> None:
        self.active = False
        self._may_run = may_run
        self._switch: QueryWatchdog | None = None
        self._switching = threading.Lock()
        self._queries: dict[str, PersistentQuery] = {}
        self._lock = threading.RLock()
        self._initial, self._max = initial_backoff, max_backoff
        self.thread = SupervisedThread("query-keeper", self._watch)

    def open(self) -> None:
        self.thread.start()

    def activate(self, switch: QueryWatchdog, seconds: float) -> None:
        """Starts every query. `switch` stops them unless it is told otherwise in time."""
        if self.thread.stopping.is_set():
            return
        with self._switching:
            self._switch = switch
            switch.arm(seconds)
        self.active = True
        for query in self:
            with self._lock:
                if query.id in self._queries and query.streaming is None and not query.paused:
                    self._start(query)

    @property
    def went_off(self) -> bool:
        """Whether the switch has stopped the queries: they need another one to run again."""
        return self._switch is not None and self._switch.fired

    def renew(self, seconds: float) -> None:
        """Lets the queries run for so many seconds from now."""
        with self._switching:
            if self._switch is not None:
                self._switch.arm(seconds)

    def deactivate(self) -> None:
        """Stops every query; they stay known, and continue here or on another server."""
        self.active = False
        with self._lock, ThreadPoolExecutor(STOPPING_THREADS) as threads:
            list(threads.map(self._stop, self._queries.values()))
            for query in self._queries.values():
                query.retry_at, query.failures, query.stalls = None, 0, 0
                query.degraded = query.planned is None
        with self._switching:
            if self._switch is not None:
                self._switch.close()
                self._switch = None

    def __iter__(self) -> Iterator[PersistentQuery]:
        with self._lock:
            return iter(list(self._queries.values()))

    def all_known(self) -> list[PersistentQuery]:
        """All queries, without waiting for the lock."""
        return list(self._queries.values())

    def get(self, id_: str) -> PersistentQuery | None:
        with self._lock:
            return self._queries.get(id_)

    def add(self, query: PersistentQuery) -> None:
        """Takes a query over and starts it; a failure to start is retried like any other."""
        with self._lock:
            self._queries[query.id] = query
            if self.active:
                self._start(query)

    def remove(self, id_: str) -> PersistentQuery | None:
        with self._lock:
            query = self._queries.pop(id_, None)
        if query is not None:
            self._stop(query)
        return query

    def pause(self, id_: str) -> None:
        with self._lock:
            query = self._queries[id_]
            query.paused = True
        self._stop(query)

    def resume(self, id_: str) -> None:
        with self._lock:
            query = self._queries[id_]
            if query.paused or query.is_stopped:
                query.accepts_loss = query.is_stopped
                query.paused = False
                if self.active:
                    self._start(query)

    def restart(self, id_: str) -> None:
        """Restarts a query because one of its topics has changed."""
        with self._lock:
            query = self._queries.get(id_)
            if query is not None and query.state is QueryState.RUNNING and self.active:
                self._stop(query)
                self._start(query)

    def end_stalled(self, id_: str, running: StreamingQuery, reason: str) -> bool:
        """Restarts a query whose batch makes no progress; False if it cannot be stopped."""
        with self._lock:
            query = self._queries.get(id_)
            if query is None or query.streaming is not running:
                return True
            query.stalls += 1
            query.fail(reason)
            query.retry_at = time.monotonic() + ENDING_SECONDS
        ended = self._stop(query)
        with self._lock:
            if query.streaming is None:
                self._retry_later(query)
        return ended

    def close(self) -> None:
        """Stops all queries after their running micro-batches; they continue at the next start."""
        self.thread.stop()
        self.deactivate()

    def _start(self, query: PersistentQuery) -> None:
        try:
            query.start(self._may_run)
            assert query.streaming is not None
            if self._switch is not None:
                self._switch.watch(query.streaming)
        except NotHoldingError:
            pass  # it is about to be deactivated
        except DataLossError as e:
            query.fail(str(e))
            query.retry_at = float("inf")
            LOG.error("Query %s is stopped: %s", query.id, e)
        except StateMismatchError as e:
            self._failed(query, reason_of(e))
        except Exception as e:  # whatever Spark raises: it is tried again, like any failure
            self._failed(query, reason_of(e), degraded=True)

    def _stop(self, query: PersistentQuery) -> bool:
        """False if Spark's thread for it did not end in time: it will later, or never."""
        running, switch, ended = query.streaming, self._switch, True
        try:
            query.stop()
        except Py4JJavaError as e:
            LOG.error("Query %s could not be stopped: %s", query.id, reason_of(e))
            query.streaming, ended = None, False
        if running is not None and switch is not None:
            switch.forget(running)
        return ended

    def _watch(self) -> None:
        while not self.thread.stopping.wait(WATCH_SECONDS):
            self._look_after_all()

    def _look_after_all(self) -> None:
        """Checks every query; a failure with one does not affect the others."""
        for query in self:
            try:
                with self._lock:
                    if query.id in self._queries and self.active and self._may_run():
                        self._look_after(query)
            except Exception:  # the other queries want to be looked after
                LOG.exception("Query %s could not be looked after; it is tried again", query.id)
        try:
            self._adjust_polling()
        except Exception:  # it reaches into Spark, and no query depends on it
            LOG.exception("How often queries look for records could not be adjusted")

    def _adjust_polling(self) -> None:
        with self._lock:
            running = [q for q in self._queries.values() if q.state is QueryState.RUNNING]
            for query in running:
                if query.polling is not None:
                    query.polling.adjust(len(running), time.monotonic())

    def _look_after(self, query: PersistentQuery) -> None:
        now = time.monotonic()
        if query.paused:
            return
        if query.retry_at is not None:
            if now >= query.retry_at:
                self._start(query)
        elif query.streaming is None:
            self._start(query)
        elif not query.streaming.isActive:
            failure = query.streaming.exception()
            if failure is not None and query.was_too_optimistic(failure):
                LOG.info("Query %s starts again: its records want more care", query.id)
                self._stop(query)
                self._start(query)
                return
            if failure is not None and is_data_loss(failure) and not query.failures:
                LOG.warning("Query %s starts again: records that it wants are gone", query.id)
                query.failures += 1
                self._stop(query)
                self._start(query)
                return
            self._failed(query, "the query ended" if failure is None else reason_of(failure))
        elif query.failures and not query.stalls and now - query.started_at > self._max:
            query.failures = 0

    def _failed(self, query: PersistentQuery, reason: str, *, degraded: bool = False) -> None:
        query.fail(reason, degraded=degraded)
        self._retry_later(query)

    def _retry_later(self, query: PersistentQuery) -> None:
        wait = _backoff(query.failures, self._initial, self._max)
        query.failures += 1
        query.retry_at = time.monotonic() + wait
        reason = query.errors[-1].error_message
        LOG.error("Query %s failed and starts again in %.0f s: %s", query.id, wait, reason)


def _backoff(failures: int, initial: float, most: float) -> float:
    """Twice as long each time, up to the most; two to a power beyond 30 would not matter."""
    return min(initial * float(2 ** min(failures, 30)), most)
