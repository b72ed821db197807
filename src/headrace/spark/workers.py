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

import headrace.spark.bucket
import headrace.spark.packed
import headrace.spark.sink
from headrace.spark.state_lines import let_the_jvm_hang_up_first

# Imported for the workers' sake.
PRELOADED = (
    confluent_kafka,
    pandas,
    pyarrow,
    pyspark.worker,
    pyspark.sql.streaming.stateful_processor_util,
    headrace.spark.bucket,
    headrace.spark.packed,
    headrace.spark.sink,
)

if __name__ == "__main__":
    let_the_jvm_hang_up_first()
    daemon.manager()
