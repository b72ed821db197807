"""Push queries: transient streaming queries whose rows go to a buffer that is bounded in bytes."""

from __future__ import annotations

import hashlib
import logging
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headrace.engine.environment import Environment
from headrace.engine.failure_reasons import reason_of
from headrace.engine.queries import row_buffer
from headrace.engine.queries.continuation import places_of, token
from headrace.engine.queries.program import Starts, answer_program
from headrace.engine.queries.retries import Retries
from headrace.engine.queries.row_buffer import RowBuffer
from headrace.engine.queries.start_slots import StartSlots
from headrace.engine.queries.starting_offsets import starting_offsets
from headrace.model.errors import HeadraceError, StatementError, UnavailableError
from headrace.model.requests import LIMIT_REACHED, QueryKind, ResultRow
from headrace.model.schema import Schema
from headrace.model.settings import Settings
from headrace.model.sources import SourceKind
from headrace.plan import nodes as n
from headrace.plan.query import Planned
from headrace.spark.internals.callbacks import CallbackConnection, UnfinishedBatch
from headrace.spark.internals.task_failures import kafka_was_away
from headrace.spark.runtime.checkpoint import forget
from headrace.spark.runtime.offset_log import OffsetLog
from headrace.spark.runtime.progress import has_begun, has_progressed
from headrace.spark.runtime.session import is_local
from headrace.spark.sink.answers import packed_answer, result_rows
from headrace.spark.sink.packed_rows import PackedRows

LOG = logging.getLogger(__name__)

# A client that has read nothing for so long, while more rows could be made, has its query parked.
PARK_SECONDS = 1.0
# A query that has not brought its first batch by then keeps others no longer from starting.
START_SECONDS = 10.0
# What a call to Spark's JVM raises when that is gone.
_NO_ANSWER = (Py4JError, ConnectionError)


class PushProgram:
    """What a push query runs in Spark, and the checkpoint in which it keeps its position and state.

    Rows are built anew for each start: a query that does not run holds nothing in Spark's JVM.
    """

    def __init__(self, build: Callable[[], DataFrame], checkpoint: Callable[[], str]) -> None:
        self._build = build
        self._rows: DataFrame | None = build()  # if it cannot be built, that is told at once
        self._spark = self._rows.sparkSession
        self.checkpoint = checkpoint()

    def prepare(self) -> None:
        """Builds what the next `start` starts; raises UnavailableError if what it needs is away."""
        self._rows = self._rows or self._build()

    def start(self, take: Callable[[DataFrame, int], None]) -> StreamingQuery:
        """At its beginning or from its checkpoint; `take` is given each micro-batch."""
        rows, self._rows = self._rows, None
        assert rows is not None
        return (
            rows.writeStream.foreachBatch(take)
            .option("checkpointLocation", self.checkpoint)
            .outputMode("update")
            .start()
        )

    def forget(self) -> None:
        forget(self._spark, self.checkpoint)


class PushQuery:
    """A push query: its rows as they come, until its limit is reached or it is closed.

    `of` says whether they are a stream's or changes of a table, which tell what is gone.

    What waits for the reader is bounded, and while that is full no further micro-batch is
    evaluated. If nobody reads for a while then, the query is parked: it has ended in Spark, and
    begins there again when the reader has read what waits for it.
    """

    kind = QueryKind.PUSH

    def __init__(
        self,
        id_: str,
        statement: str,
        schema: Schema,
        of: SourceKind,
        program: PushProgram,
        place: str | None,
        limit: int | None,
        slots: StartSlots,
        retries: Retries,
        ended: Callable[[PushQuery], None],
        log: Callable[[Sequence[str]], None],
        token_of: Callable[[int], str | None] = lambda batch: None,
    ) -> None:
        self.id = id_
        self.statement = statement
        self.schema = schema
        self.final_message: str | None = None
        self.run = ""
        self._of_table = of is SourceKind.TABLE
        self._left = limit
        self._program = program
        self._place = place
        self._slots = slots
        self._retries = retries
        self._ended = ended
        self._log = log
        self._token_of = token_of
        self._token: str | None = None
        self._buffer = RowBuffer()
        self._reading: Iterator[list[ResultRow]] = iter(())
        self._closing = threading.Event()
        self._over = limit == 0
        self._failure: str | None = None
        self._read_at = self._began_at = time.monotonic()
        # Held while the query begins or ends in Spark.
        self._changing = threading.Lock()
        self._streaming: StreamingQuery | None = None
        self._line: CallbackConnection | None = None
        self._unfinished = UnfinishedBatch()
        self._handed_over = -1  # the last batch whose rows the reader has, or will have

    @property
    def waiting_bytes(self) -> int:
        """The bytes of rows that the reader has not taken yet."""
        return self._buffer.size

    @property
    def checkpoint(self) -> str:
        return self._program.checkpoint

    @property
    def is_parked(self) -> bool:
        """Whether it is not in Spark: it waits for its reader, or may not start yet."""
        return self._streaming is None

    # ------------------------------------------------------------------ what the reader calls

    def next_batch(self, timeout: float) -> Sequence[ResultRow] | None:
        try:
            return self._next_batch(timeout)
        except Py4JJavaError as e:
            raise HeadraceError(f"The query failed: {reason_of(e)}") from e
        except _NO_ANSWER as e:
            LOG.error("Push query %s: Spark does not answer: %s", self.id, e)
            raise UnavailableError(
                "The query failed: Spark does not answer any more. Ask again when the server has "
                "started anew."
            ) from e

    def _next_batch(self, timeout: float) -> Sequence[ResultRow] | None:
        if self._over:
            self.final_message = LIMIT_REACHED
            self.close()
            return None
        deadline = time.monotonic() + timeout
        while True:
            self._read_at = time.monotonic()
            batch = self._read()
            if batch is None:
                if self._token is not None:  # all rows of the batch that it is of are out
                    told, self._token = self._token, None
                    return [ResultRow((), token=told)]
                if not self._buffer.size:
                    self.start(deadline - time.monotonic())
                found = self._buffer.get(max(0.0, deadline - time.monotonic()))
                if found is None:
                    return self._nothing()
                self._reading = result_rows(found, self.schema, self._log)
                self._token = found.token
                continue
            if not self._of_table:  # a stream has nothing that could be deleted
                batch = [row for row in batch if not row.tombstone]
            if batch:
                return self._limited(batch)

    def _read(self) -> list[ResultRow] | None:
        try:
            return next(self._reading, None)
        except OSError:
            if self._closing.is_set():  # and what was not read is deleted
                return None
            raise

    def _limited(self, batch: list[ResultRow]) -> Sequence[ResultRow]:
        if self._left is None:
            return batch
        batch = batch[: self._left]
        self._left -= len(batch)
        self._over = self._left == 0
        return batch

    def _nothing(self) -> Sequence[ResultRow] | None:
        if self._failure is not None:
            raise HeadraceError(f"The query failed: {self._failure}")
        if self._closing.is_set():
            return None
        with self._changing:
            streaming = self._streaming
            if streaming is None or streaming.isActive:
                return []
            failure = streaming.exception()
            away = failure is not None and kafka_was_away(failure)
            if away:
                if has_progressed(streaming):
                    self._retries.went_on()
                self._stop()
        if failure is not None and away:
            self._slots.leave(self)
            self._try_later(f"Kafka does not answer: {reason_of(failure)}")
            return self._nothing()
        self.close()
        if failure is not None:
            raise HeadraceError(f"The query failed: {reason_of(failure)}")
        return None

    # ------------------------------------------------------------------ in Spark

    def start(self, timeout: float) -> None:
        """Starts it in Spark unless it runs there, if it may within so many seconds."""
        deadline = time.monotonic() + timeout
        while self.is_parked and self._is_due(deadline):
            if not self._slots.take(self, deadline - time.monotonic()):
                if self._closing.is_set():  # meanwhile: nobody will ask again
                    self._slots.leave(self)
                return
            self._try()

    def _is_due(self, deadline: float) -> bool:
        """Waits until it may be tried; False if that is later, or it is closed."""
        now = time.monotonic()
        pause = self._retries.pause(now)
        if pause and now + pause > deadline:
            self._closing.wait(deadline - now)
            return False
        return not self._closing.wait(pause)

    def _try(self) -> None:
        self._began_at = time.monotonic()
        try:
            self._program.prepare()
            self._begin()
        except UnavailableError as e:
            self._try_later(str(e))
        finally:
            if self.is_parked:  # it failed, and others may start
                self._slots.leave(self)

    def _begin(self) -> None:
        with self._changing:
            if self._closing.is_set():
                return
            self._buffer.admit()
            self._streaming = self._program.start(self._take)
            self.run = str(self._streaming.runId)

    def _try_later(self, reason: str) -> None:
        """What it needs is away: the next reader tries again, unless that went on for too long."""
        now = time.monotonic()
        if self._retries.failed(now):
            pause = self._retries.pause(now)
            LOG.warning("Push query %s tries again in %.1f s: %s", self.id, pause, reason)
        else:
            self.fail(f"It could not go on for {self._retries.patience:.0f} s: {reason}")

    def _take(self, batch: DataFrame, batch_id: int) -> None:
        if self._line is None:
            self._line = CallbackConnection(batch.sparkSession)
        if not self._buffer.wait_for_room():
            raise self._unfinished
        packed = PackedRows.of(batch, self._place)
        if batch_id <= self._handed_over:  # and was broken off before Spark had noted that
            packed.discard()
        elif packed.size:
            self._buffer.put(replace(packed, token=self._token_of(batch_id)))
        self._handed_over = max(batch_id, self._handed_over)
        self._retries.went_on()
        self._slots.leave(self)

    def look_after(self, now: float) -> None:
        """Gives up the slot of a query that has started, and parks one that nobody reads."""
        if self._slots.has(self) and self._has_begun(now):
            self._slots.leave(self)
        if self._buffer.is_full and now - self._read_at >= PARK_SECONDS:
            with self._changing:
                if self._buffer.bar():
                    self._stop()

    def _has_begun(self, now: float) -> bool:
        streaming = self._streaming
        late = now - self._began_at >= START_SECONDS
        return late or (streaming is not None and has_begun(streaming))

    def _stop(self) -> None:
        # Spark holds on to this object as long as Python does to Spark's: neither would ever go.
        streaming, self._streaming = self._streaming, None
        try:
            if streaming is not None:
                streaming.stop()
        finally:
            if self._line is not None:
                self._line.close()
                self._line = None
            # PySpark keeps what a call has raised, and its trace would keep the batch.
            self._unfinished.__traceback__ = None

    # ------------------------------------------------------------------ the end

    def fail(self, reason: str) -> None:
        """Ends the query with an error for its reader."""
        LOG.error("Push query %s: %s", self.id, reason)
        self._failure = reason
        self.close()

    def close(self) -> None:
        if self._closing.is_set():
            return
        self._closing.set()
        self._buffer.close()
        self._slots.leave(self)
        with self._changing:
            try:
                self._stop()
            except _NO_ANSWER as e:  # its thread ends later, or never
                LOG.error("Push query %s could not be stopped: %s", self.id, reason_of(e))
        self._ended(self)
        self._program.forget()
        row_buffer.leave(self._place)


class PushQueries:
    """The running push queries. `log` takes their entries in the processing log; `patience` is for
    how many seconds each waits for a registry or a broker that is away."""

    def __init__(self, log: Callable[[Sequence[str]], None], patience: float) -> None:
        self._log = log
        self._patience = patience
        self._slots = StartSlots()
        self._running: dict[str, PushQuery] = {}

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[PushQuery]:
        return iter(list(self._running.values()))

    def find(self, query_id: str) -> PushQuery | None:
        """The query of this id, in any case."""
        return next((p for p in self if p.id.upper() == query_id.upper()), None)

    def admit(self, most: int) -> None:
        if len(self) >= most:
            raise _TooManyPushQueries(
                f"Maximum number of push queries exceeded. Maximum concurrent push queries: {most}"
            )

    def start(
        self,
        env: Environment,
        statement: str,
        planned: Planned,
        settings: Settings,
        limit: int | None,
        scalable: bool,
        continuation: str | None = None,
    ) -> PushQuery:
        """A push query that starts now, or as soon as it may; a `scalable` one has its own kind of
        id, no rows for deletes, and goes on from a `continuation` token."""
        node = planned.node
        assert isinstance(node, n.Answer)
        id_ = f"SCALABLE_PUSH_QUERY_{uuid.uuid4()}" if scalable else _transient_id()
        starts: Starts = starting_offsets(env, node, settings)
        tokens = scalable and settings.flag("ksql.query.push.v2.continuation.tokens.enabled")
        if scalable and continuation:
            starts = {**starts, **_continued(env, node, continuation)}
        place = row_buffer.new_place(env)

        def build() -> DataFrame:
            rows = answer_program(env, id_, node, settings, starts, whole=scalable)
            return packed_answer(rows, planned.schema, place)

        program = PushProgram(build, partial(_checkpoint, env, id_))
        push = PushQuery(
            id_,
            statement,
            planned.schema,
            SourceKind.STREAM if scalable else node.kind,
            program,
            place,
            limit,
            self._slots,
            Retries(self._patience),
            self._ended,
            self._log,
            *([partial(_token, env, program.checkpoint, node)] if tokens else []),
        )
        self._running[id_] = push
        try:
            push.start(0)
        except BaseException:  # whatever it is, the checkpoint is not left behind
            push.close()
            raise
        return push

    def _ended(self, push: PushQuery) -> None:
        self._running.pop(push.id, None)

    def close(self) -> None:
        for push in self:
            push.close()


def _continued(env: Environment, node: n.Node, given: str) -> dict[str, Mapping[int, int]]:
    """Where a token says to go on, by topic."""
    found = {s.topic: places_of(env.admin, env.in_kafka(s.topic), given) for s in n.sources(node)}
    return {topic: places for topic, places in found.items() if places is not None}


def _token(env: Environment, checkpoint: str, node: n.Node, batch: int) -> str | None:
    """The token of a batch, of a query that reads one topic."""
    reached = OffsetLog(env.spark, checkpoint).end_of(batch)
    (topic,) = (env.in_kafka(source.topic) for source in n.sources(node))
    return None if reached is None else token(topic, reached[topic])


def _transient_id() -> str:
    return f"transient_{uuid.uuid4().hex[:20]}"


def _checkpoint(env: Environment, id_: str) -> str:
    """Where a push query keeps its state: here, or where all executors find it."""
    if is_local(str(env.spark.sparkContext.master)):
        return tempfile.mkdtemp(prefix=_checkpoint_prefix(env))
    return f"{env.state_dir}/push/{id_}"


def _checkpoint_prefix(env: Environment) -> str:
    here = hashlib.sha256(str(env.data_dir.absolute()).encode()).hexdigest()
    return f"headrace-push-{here[:12]}-"


def sweep(env: Environment) -> None:
    """Deletes the checkpoints that the push queries of a killed server, or of a killed Spark, have
    left here."""
    for left in Path(tempfile.gettempdir()).glob(f"{_checkpoint_prefix(env)}*"):
        shutil.rmtree(left, ignore_errors=True)


class _TooManyPushQueries(StatementError):
    error_code = 40003
