"""Log entries of an aggregate that Spark keeps itself: found by reading the batch once more.

Rows that fail cannot pass through `groupBy().agg()`. The aggregate tells whether a micro-batch had
any (`$failed`); only then are its records read again, for their entries alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headrace.plan import nodes as n
from headrace.spark.lowering import Context, lower_node
from headrace.spark.rows import ERRORS, column
from headrace.spark.sink import SinkTarget, write_to_kafka
from headrace.spark.stateful import arguments


def log_failures(
    aggregate: n.Aggregate,
    context: Context,
    read: Callable[[n.ReadSource, bool], DataFrame],
    target: SinkTarget,
) -> None:
    """Writes the entries of the records that `read` gives, and nothing else."""
    again = replace(context, read=read, native=None)
    rows = arguments(aggregate, lower_node(aggregate.input, again), again)
    failed = rows.where(column(ERRORS).isNotNull())
    entries = failed.select(
        F.lit(None).cast("binary").alias("$key"),
        F.lit(None).cast("binary").alias("$value"),
        F.lit(1).cast("bigint").alias("$time"),
        F.lit(True).alias("$dead"),
        column(ERRORS).alias("$log"),
    )
    write_to_kafka(entries, target).collect()
