"""The process that Spark forks its Python workers from, with what they need already imported.

A worker's first task otherwise spends seconds on imports, and there are several workers per core
when queries start. Spark starts this module instead of its own (`spark.python.daemon.module`).
"""

from __future__ import annotations

import confluent_kafka
import pandas
import pyarrow
import pyspark.sql.streaming.stateful_processor_util
import pyspark.worker
from pyspark import daemon

import headrace.spark.sink.kafka
import headrace.spark.sink.packed_rows
import headrace.spark.state.bucket
from headrace.spark.internals.state_sockets import let_jvm_close_first

# Imported for the workers' sake.
PRELOADED = (
    confluent_kafka,
    pandas,
    pyarrow,
    pyspark.worker,
    pyspark.sql.streaming.stateful_processor_util,
    headrace.spark.state.bucket,
    headrace.spark.sink.packed_rows,
    headrace.spark.sink.kafka,
)

if __name__ == "__main__":
    let_jvm_close_first()
    daemon.manager()
