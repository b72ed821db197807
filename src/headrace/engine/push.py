"""Push queries: a transient streaming query whose rows go to a queue that is bounded in bytes."""

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

from headrace.engine import waiting
from headrace.engine.failures import reason_of
from headrace.engine.running import answer_program, starting_offsets
from headrace.engine.waiting import Waiting
from headrace.engine.world import World
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.requests import LIMIT_REACHED, QueryKind, ResultRow
from headrace.model.schema import Schema
from headrace.model.settings import Settings
from headrace.model.sources import SourceKind
from headrace.plan import nodes as n
from headrace.plan.query import Planned
from headrace.spark.answers import packed_answer, result_rows
from headrace.spark.callbacks import CallbackLine
from headrace.spark.checkpoint import forget
from headrace.spark.packed import PackedRows
from headrace.spark.session import is_local

LOG = logging.getLogger(__name__)


class PushQuery:
    """Rows as they come, until the limit is reached or someone closes it.

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
        self._waiting = Waiting()
        self._reading: Iterator[list[ResultRow]] = iter(())
        self._closing = threading.Event()
        self._over = limit == 0
        self._line: CallbackLine | None = None
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
        except BaseException:
            self._forget()
            raise
        self.run = str(self._streaming.runId)

    @property
    def waiting_bytes(self) -> int:
        """How much was computed that the reader has not asked for yet."""
        return self._waiting.size

    def next_batch(self, timeout: float) -> Sequence[ResultRow] | None:
        if self._over:
            self.final_message = LIMIT_REACHED
            self.close()
            return None
        deadline = time.monotonic() + timeout
        while True:
            batch = self._read()
            if batch is None:
                found = self._waiting.get(max(0.0, deadline - time.monotonic()))
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
        """Ends it, and lets its reader know."""
        LOG.error("Push query %s: %s", self.id, reason)
        self._failure = reason
        self.close()

    def close(self) -> None:
        if self._closing.is_set():
            return
        self._closing.set()
        self._waiting.close()
        if self._streaming is not None:
            try:
                self._streaming.stop()
            except Py4JJavaError as e:  # its thread ends later, or never
                LOG.error("Push query %s could not be stopped: %s", self.id, reason_of(e))
        # Spark holds on to this object as long as Python does to Spark's: neither would ever go.
        self._streaming = None
        if self._line is not None:
            self._line.hang_up()
            self._line = None
        self._ended(self)
        self._forget()
        waiting.leave(self._place)

    def _take(self, batch: DataFrame, batch_id: int) -> None:
        if self._line is None:
            self._line = CallbackLine(batch.sparkSession)
        packed = PackedRows.of(batch, self._place)
        if packed.size:
            self._waiting.put(packed)


class PushQueries:
    """Those that run now. `log` takes their entries in the processing log."""

    def __init__(self, log: Callable[[Sequence[str]], None]) -> None:
        self._log = log
        self._running: dict[str, PushQuery] = {}

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[PushQuery]:
        return iter(list(self._running.values()))

    def find(self, query_id: str) -> PushQuery | None:
        """By its id, in any case."""
        return next((p for p in self if p.id.upper() == query_id.upper()), None)

    def admit(self, most: int) -> None:
        if len(self) >= most:
            raise _TooManyPushQueries(
                f"Maximum number of push queries exceeded. Maximum concurrent push queries: {most}"
            )

    def start(
        self,
        world: World,
        statement: str,
        planned: Planned,
        settings: Settings,
        limit: int | None,
        scalable: bool,
    ) -> PushQuery:
        """`scalable`: as ksqlDB's of that name: it has its own name, and tells of whole records
        only, never of what is gone."""
        node = planned.node
        assert isinstance(node, n.Answer)
        id_ = f"SCALABLE_PUSH_QUERY_{uuid.uuid4()}" if scalable else _transient_id()
        starts = starting_offsets(world, node, settings)
        push = PushQuery(
            id_,
            statement,
            planned.schema,
            SourceKind.STREAM if scalable else node.kind,
            answer_program(world, id_, node, settings, starts, whole=scalable),
            _checkpoint(world.spark, world.state_dir, id_),
            waiting.new_place(world),
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
