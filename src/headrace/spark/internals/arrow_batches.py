"""How much Spark hands to Python at a time, in rows and in bytes."""

from __future__ import annotations

from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark.sql.streaming.query import StreamingQuery

from headrace.spark.internals.java_objects import java_query

BATCH_ROWS = 10_000
BATCH_BYTES = 64 * 1024**2
BYTES_SETTING = "spark.sql.execution.arrow.maxBytesPerBatch"
_UNLIMITED = str(2**31 - 1)


def stop_counting_bytes(query: StreamingQuery) -> None:
    """Spark no longer works out after each row how many bytes it holds for Python: that is a
    quarter of the time it spends on a row.

    Reaches into Spark: where that is built differently, it goes on counting.
    """
    with suppress(Py4JError):
        execution = java_query(query).streamingQuery()
        execution.sparkSessionForStream().conf().set(BYTES_SETTING, _UNLIMITED)
