"""A Spark column with an error column: the result of an expression that may fail."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F


@dataclass(frozen=True)
class Fallible:
    """A Spark column and, beside it, the text of what went wrong (null where nothing did).

    `error` is None where nothing can go wrong, so that no column is spent on it. `note` is the
    text of a part that failed alone, inside of a lambda, and left the value whole.
    """

    value: Column
    error: Column | None = None
    note: Column | None = None


def coalesce_errors(*errors: Column | None) -> Column | None:
    """The first of the errors, where any of the steps can fail at all."""
    real = [e for e in errors if e is not None]
    if not real:
        return None
    return real[0] if len(real) == 1 else F.coalesce(*real)
