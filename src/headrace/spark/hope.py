"""Programs that hope that Spark can read every record, without Python (see docs/design/0002)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


class HopeLostError(Exception):
    """A record came that is not for a program that hopes. The batch has failed."""

    def __init__(self) -> None:
        super().__init__("a record cannot be read in Spark's own way")


def must(condition: Column, value: Column) -> Column:
    """The value; where the condition does not hold, the batch fails.

    A filter that looks at the row besides has to be the value of this one, not another one beside
    it: Spark may ask that first, and never come to this one.
    """
    failure = F.raise_error(F.lit(f"{HopeLostError.__name__}: {HopeLostError()}"))
    return F.when(condition, value).otherwise(failure)


def is_lost(failure: Exception) -> bool:
    """Whether a streaming query failed so; all that Spark tells is a text."""
    return HopeLostError.__name__ in str(failure)
