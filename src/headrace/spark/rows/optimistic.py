"""Optimistic decoding: a plan is faster if it may assume that Spark reads every record without
Python, and that rows are small.

A batch that shows otherwise fails, and its query is planned again (see docs/design/0002).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.spark.internals.task_failures import raised_in_tasks

_NEEDS_PYTHON = "HEADRACE_RECORD_NEEDS_PYTHON"
_LARGE_ROWS = "HEADRACE_LARGE_ROWS"

# So many bytes are small. A micro-batch of half a million such rows is 200 MiB, and some of Spark's
# steps hand over all that a task has at once.
SMALL_BYTES = 4 * 1024**2


class OptimisticDecodingError(Exception):
    """A batch is not as its plan assumed; the message says in what."""


@dataclass(frozen=True)
class OptimisticDecoding:
    """What a plan assumes: `native`, that Spark reads records without Python, and none has
    anything to log; `small_rows`, that nobody has to count the bytes of rows."""

    native: bool = True
    small_rows: bool = True

    def after(self, failure: BaseException) -> OptimisticDecoding:
        """What the next plan may still assume when a query has failed."""
        raised = raised_in_tasks(failure)
        return OptimisticDecoding(
            self.native and _NEEDS_PYTHON not in raised,
            self.small_rows and _LARGE_ROWS not in raised,
        )


OPTIMISTIC = OptimisticDecoding()
PESSIMISTIC = OptimisticDecoding(native=False, small_rows=False)


def require_native(condition: Column, value: Column) -> Column:
    """The value; where the condition does not hold, the batch fails.

    A filter that looks at the row besides has to be the value of this one, not another one beside
    it: Spark may ask that first, and never come to this one.
    """
    failure = F.raise_error(F.lit(f"{OptimisticDecodingError.__name__}: {_NEEDS_PYTHON}"))
    return F.when(condition, value).otherwise(failure)


def require_small(rows: pa.RecordBatch) -> None:
    """Fails the batch if what Spark handed over is many bytes."""
    if rows.nbytes > SMALL_BYTES:
        raise OptimisticDecodingError(_LARGE_ROWS)
