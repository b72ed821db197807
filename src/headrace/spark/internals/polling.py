"""The polling delay: how long a query that waits for records pauses between two looks.

One look costs one to two milliseconds of CPU, here and in the broker. Few queries that have work
look all the time, for the sake of latency. Many of them would keep a core busy with nothing to do,
so the more there are the less often each looks; and less often still when nothing came for a while.
"""

from __future__ import annotations

from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark.sql.streaming.query import StreamingQuery

from headrace.spark.internals.java_objects import field, java_query

SHORTEST_MS, LONGEST_MS = 20, 1000
EACH_MS = 10
IDLE_AFTER_SECONDS, IDLE_FACTOR = 5.0, 4


def polling_delay_ms(queries: int, idle: bool) -> int:
    """If there are so many queries."""
    shortest = max(SHORTEST_MS, EACH_MS * queries)
    return min(shortest * IDLE_FACTOR if idle else shortest, LONGEST_MS)


class PollingDelay:
    """The delay of one running query.

    It reaches into Spark: where that is built differently, a query looks as often as ever.
    """

    def __init__(self, query: StreamingQuery, now: float) -> None:
        self._query = java_query(query)
        self._delay_ms = SHORTEST_MS
        self._last_batch: str | None = None
        self._worked_at = now

    def adjust(self, queries: int, now: float) -> None:
        """`queries` are running, and this is the time in seconds."""
        with suppress(Py4JError):
            batch = self._batch_with_records()
            if batch is not None and batch != self._last_batch:
                self._last_batch, self._worked_at = batch, now
            self._set(polling_delay_ms(queries, now - self._worked_at > IDLE_AFTER_SECONDS))

    def _batch_with_records(self) -> str | None:
        """When the last micro-batch began, unless it had nothing to do."""
        progress = self._query.lastProgress()
        if progress is None or not progress.numInputRows():
            return None
        return str(progress.timestamp())

    def _set(self, milliseconds: int) -> None:
        """Spark has a setting for it, but reads that only when a query starts."""
        if self._delay_ms != milliseconds:
            self._delay_ms = milliseconds
            execution = self._query.streamingQuery()
            field(execution, "StreamExecution", "pollingDelayMs").setLong(execution, milliseconds)
