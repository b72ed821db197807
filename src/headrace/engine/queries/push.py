"""Push queries: transient streaming queries whose rows go to a buffer that is bounded in bytes."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headrace.engine.environment import Environment
from headrace.engine.failure_reasons import reason_of
from headrace.engine.queries import row_buffer
from headrace.engine.queries.program import answer_program, starting_offsets
from headrace.engine.queries.row_buffer import RowBuffer
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.requests import LIMIT_REACHED, QueryKind, ResultRow
from headrace.model.schema import Schema
from headrace.model.settings import Settings
from headrace.model.sources import SourceKind
from headrace.plan import nodes as n
from headrace.plan.query import Planned
from headrace.spark.internals.callbacks import CallbackConnection
from headrace.spark.runtime.checkpoint import forget
from headrace.spark.runtime.session import is_local
from headrace.spark.sink.answers import packed_answer, result_rows
from headrace.spark.sink.packed_rows import PackedRows

LOG = logging.getLogger(__name__)


class PushQuery:
    """A running push query: its rows as they come, until its limit is reached or it is closed.

    `of` says whether they are a stream's or changes of a table, which tell what is gone. What waits
    for the reader is bounded, and while that is full the micro-batch that brings more does not end:
    who does not read has a query that does not read either.
    """

    kind = QueryKind.PUSH

    def __init__(
        self,
        id_: str,
        statement: str,
        schema: Schema,
        of: SourceKind,
        rows: DataFrame,
        checkpoint: str,
        place: str | None,
        limit: int | None,
        ended: Callable[[PushQuery], None],
        log: Callable[[Sequence[str]], None],
    ) -> None:
        self.id = id_
        self.statement = statement
        self.schema = schema
        self._of_table = of is SourceKind.TABLE
        self.final_message: str | None = None
        self._left = limit
        self._ended = ended
        self._log = log
        self._buffer = RowBuffer()
        self._reading: Iterator[list[ResultRow]] = iter(())
        self._closing = threading.Event()
        self._over = limit == 0
        self._line: CallbackConnection | None = None
        self.checkpoint = checkpoint
        self._place = place
        self._forget = partial(forget, rows.sparkSession, checkpoint)
        self._streaming: StreamingQuery | None = None
        self._failure: str | None = None
        try:
            self._streaming = (
                packed_answer(rows, schema, place)
                .writeStream.foreachBatch(self._take)
                .option("checkpointLocation", checkpoint)
                .outputMode("update")
                .start()
            )
        except BaseException:  # whatever it is, the checkpoint is not left behind
            self._forget()
            raise
        self.run = str(self._streaming.runId)

    @property
    def waiting_bytes(self) -> int:
        """The bytes of rows that the reader has not taken yet."""
        return self._buffer.size

    def next_batch(self, timeout: float) -> Sequence[ResultRow] | None:
        if self._over:
            self.final_message = LIMIT_REACHED
            self.close()
            return None
        deadline = time.monotonic() + timeout
        while True:
            batch = self._read()
            if batch is None:
                found = self._buffer.get(max(0.0, deadline - time.monotonic()))
                if found is None:
                    return self._nothing()
                self._reading = result_rows(found, self.schema, self._log)
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
        streaming = self._streaming
        if self._failure is not None:
            raise HeadraceError(f"The query failed: {self._failure}")
        if self._closing.is_set() or streaming is None:
            return None
        if not streaming.isActive:
            failure = streaming.exception()
            self.close()
            if failure is not None:
                raise HeadraceError(f"The query failed: {reason_of(failure)}")
            return None
        return []

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
        if self._streaming is not None:
            try:
                self._streaming.stop()
            except Py4JJavaError as e:  # its thread ends later, or never
                LOG.error("Push query %s could not be stopped: %s", self.id, reason_of(e))
        # Spark holds on to this object as long as Python does to Spark's: neither would ever go.
        self._streaming = None
        if self._line is not None:
            self._line.close()
            self._line = None
        self._ended(self)
        self._forget()
        row_buffer.leave(self._place)

    def _take(self, batch: DataFrame, batch_id: int) -> None:
        if self._line is None:
            self._line = CallbackConnection(batch.sparkSession)
        packed = PackedRows.of(batch, self._place)
        if packed.size:
            self._buffer.put(packed)


class PushQueries:
    """The running push queries. `log` takes their entries in the processing log."""

    def __init__(self, log: Callable[[Sequence[str]], None]) -> None:
        self._log = log
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
    ) -> PushQuery:
        """Starts a push query; a `scalable` one has its own kind of id, and no rows for deletes."""
        node = planned.node
        assert isinstance(node, n.Answer)
        id_ = f"SCALABLE_PUSH_QUERY_{uuid.uuid4()}" if scalable else _transient_id()
        starts = starting_offsets(env, node, settings)
        push = PushQuery(
            id_,
            statement,
            planned.schema,
            SourceKind.STREAM if scalable else node.kind,
            answer_program(env, id_, node, settings, starts, whole=scalable),
            _checkpoint(env.spark, env.state_dir, id_),
            row_buffer.new_place(env),
            limit,
            self._ended,
            self._log,
        )
        self._running[id_] = push
        return push

    def _ended(self, push: PushQuery) -> None:
        self._running.pop(push.id, None)

    def close(self) -> None:
        for push in self:
            push.close()


def _transient_id() -> str:
    return f"transient_{uuid.uuid4().hex[:20]}"


def _checkpoint(spark: SparkSession, state_dir: str, id_: str) -> str:
    """Where a push query keeps its state: here, or where all executors find it."""
    if is_local(str(spark.sparkContext.master)):
        return tempfile.mkdtemp(prefix="headrace-push-")
    return f"{state_dir}/push/{id_}"


class _TooManyPushQueries(StatementError):
    error_code = 40003
