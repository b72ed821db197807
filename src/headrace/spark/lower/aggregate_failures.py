"""Log entries of an aggregate that Spark keeps itself: found by reading the batch once more.

Rows that fail cannot pass through `groupBy().agg()`. The aggregate tells whether a micro-batch had
any (`$failed`); only then are its records read again, for their entries alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from headrace.plan import nodes as n
from headrace.spark.lower.lowering import Context, lower_node
from headrace.spark.lower.stateful import arguments
from headrace.spark.rows.columns import DEAD, ERRORS, KEY, LOG, TIME, VALUE, column
from headrace.spark.sink.kafka import SinkTarget, write_to_kafka


def log_failures(
    aggregate: n.Aggregate,
    context: Context,
    read: Callable[[n.ReadSource, bool], DataFrame],
    target: SinkTarget,
) -> Sequence[Row]:
    """Writes the entries of the records that `read` gives, and nothing else; the sink's counts."""
    again = replace(context, read=read, native=None)
    rows = arguments(aggregate, lower_node(aggregate.input, again).rows, again)
    failed = rows.where(column(ERRORS).isNotNull())
    entries = failed.select(
        F.lit(None).cast("binary").alias(KEY),
        F.lit(None).cast("binary").alias(VALUE),
        F.lit(1).cast("bigint").alias(TIME),
        F.lit(True).alias(DEAD),
        column(ERRORS).alias(LOG),
    )
    return write_to_kafka(entries, target).collect()
