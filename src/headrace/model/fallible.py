"""A Spark column with an error column: the result of an expression that may fail."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column


@dataclass(frozen=True)
class Fallible:
    """A Spark column and, beside it, the text of what went wrong (null where nothing did).

    `error` is None where nothing can go wrong, so that no column is spent on it.
    """

    value: Column
    error: Column | None = None
