"""How often a waiting query looks for new records: the more queries there are, the less often.

One look costs about a millisecond of CPU, here and in the broker. Few queries look all the time,
for the sake of latency; many would keep a core busy with nothing to do.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from headrace.spark.private import field

SHORTEST_MS, LONGEST_MS = 20, 1000
EACH_MS = 10


def pause_between_looks(queries: int) -> int:
    """In milliseconds, if there are so many queries."""
    return min(max(SHORTEST_MS, EACH_MS * queries), LONGEST_MS)


def set_pause(query: StreamingQuery, milliseconds: int) -> None:
    """Of a running query. Spark has a setting for it, but reads that only when a query starts."""
    execution: Any = query._jsq.streamingQuery()
    field(execution, "StreamExecution", "pollingDelayMs").setLong(execution, milliseconds)
