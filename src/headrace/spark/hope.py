"""Programs that hope that Spark can read every record, without Python, and that rows are not large
(see docs/design/0002)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

# What Spark hands to Python at a time is no more bytes than this, or hope is lost.
LARGE_BYTES = 64 * 1024**2
BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_UNLIMITED = str(2**31 - 1)


class HopeLostError(Exception):
    """A record came that is not for a program that hopes. The batch has failed."""

    def __init__(self, reason: str = "a record cannot be read in Spark's own way") -> None:
        super().__init__(reason)


def must(condition: Column, value: Column) -> Column:
    """The value; where the condition does not hold, the batch fails.

    A filter that looks at the row besides has to be the value of this one, not another one beside
    it: Spark may ask that first, and never come to this one.
    """
    failure = F.raise_error(F.lit(f"{HopeLostError.__name__}: {HopeLostError()}"))
    return F.when(condition, value).otherwise(failure)


def must_be_small(rows: pa.RecordBatch) -> None:
    """Fails the batch if these are many bytes."""
    if rows.nbytes > LARGE_BYTES:
        raise HopeLostError("rows are large")


def trust_in_small_rows(query: StreamingQuery) -> None:
    """Spark no longer works out after each row how many bytes it holds for Python: that is a
    quarter of the time it spends on a row. It still hands over no more than so many rows.

    Reaches into Spark: where that is built differently, it goes on counting.
    """
    with suppress(Py4JError):
        execution: Any = query._jsq
        execution.streamingQuery().sparkSessionForStream().conf().set(BATCH_BYTES, _UNLIMITED)


def is_lost(failure: Exception) -> bool:
    """Whether a streaming query failed so; all that Spark tells is a text."""
    return HopeLostError.__name__ in str(failure)
