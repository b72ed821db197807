"""Programs that hope that Spark can read every record, without Python, and that rows are small (see
docs/design/0002)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

_NOT_PLAIN = "a record cannot be read in Spark's own way"
_NOT_SMALL = "rows are too large not to be counted"

# How many rows Spark hands to Python at a time, and how many bytes where it counts them.
BATCH_ROWS = 10_000
BATCH_BYTES = 64 * 1024**2
BYTES_SETTING = "spark.sql.execution.arrow.maxBytesPerBatch"
# So many bytes are small. A micro-batch of half a million such rows is 200 MiB, and some of Spark's
# steps hand over all that a task has at once.
SMALL_BYTES = 4 * 1024**2
_UNCOUNTED = str(2**31 - 1)


class HopeLostError(Exception):
    """Something came that is not for a program that hopes. The batch has failed."""


@dataclass(frozen=True)
class Hope:
    """What a program counts on, so as to be faster: that records are `plain`, so that Spark reads
    them and there is nothing to log; that rows are `small`."""

    plain: bool = True
    small: bool = True

    def after(self, failure: Exception) -> Hope:
        """What is left of it when a query has failed; all that Spark tells is a text, in which the
        plan comes after the failure, and names what it might have failed for."""
        text, _, _ = str(failure).partition("=== Streaming Query ===")
        return Hope(self.plain and _NOT_PLAIN not in text, self.small and _NOT_SMALL not in text)


ALL_HOPE, NO_HOPE = Hope(), Hope(plain=False, small=False)


def must(condition: Column, value: Column) -> Column:
    """The value; where the condition does not hold, the batch fails.

    A filter that looks at the row besides has to be the value of this one, not another one beside
    it: Spark may ask that first, and never come to this one.
    """
    failure = F.raise_error(F.lit(f"{HopeLostError.__name__}: {_NOT_PLAIN}"))
    return F.when(condition, value).otherwise(failure)


def must_be_small(rows: pa.RecordBatch) -> None:
    """Fails the batch if what Spark handed over is many bytes."""
    if rows.nbytes > SMALL_BYTES:
        raise HopeLostError(_NOT_SMALL)


def leave_uncounted(query: StreamingQuery) -> None:
    """Spark no longer works out after each row how many bytes it holds for Python: that is a
    quarter of the time it spends on a row.

    Reaches into Spark: where that is built differently, it goes on counting.
    """
    with suppress(Py4JError):
        execution: Any = query._jsq
        execution.streamingQuery().sparkSessionForStream().conf().set(BYTES_SETTING, _UNCOUNTED)
