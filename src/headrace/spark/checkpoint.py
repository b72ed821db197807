"""What a query's checkpoint remembers is written beside it, and must fit what now runs.

Spark would find out by itself in some cases, in words of its own, and not in others: say, if state
were split into another number of buckets. A query is refused before it touches anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from headrace.spark.bucket_log import StateMismatchError

FILE = "headrace.json"

# By topic and partition.
Offsets = Mapping[str, Mapping[str, int]]


def check_state(spark: SparkSession, checkpoint: str, state: Sequence[str]) -> None:
    """Refuses a checkpoint whose state is not `state`; a new one is marked with it.

    The checkpoint is any path that Spark's Hadoop file systems know.
    """
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(f"{checkpoint}/{FILE}")
    files = path.getFileSystem(spark._jsc.hadoopConfiguration())
    written = _read(files, path)
    if written is None:
        stream = files.create(path, True)
        stream.write(bytearray(json.dumps({"state": list(state)}).encode()))
        stream.close()
    elif written != list(state):
        was, now = _listed(written), _listed(state)
        raise StateMismatchError(
            f"The query's state was written for {was} and cannot be read as {now}. Terminate the "
            "query and create it again, or go back to what wrote the state."
        )


def take_over(spark: SparkSession, checkpoint: str) -> dict[str, dict[int, int]]:
    """Where a query had got to in each topic; its checkpoint is no more afterwards."""
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(checkpoint)
    commits = jvm.org.apache.hadoop.fs.Path(f"{checkpoint}/commits")
    files = path.getFileSystem(spark._jsc.hadoopConfiguration())
    names = (
        [f.getPath().getName() for f in files.listStatus(commits)] if files.exists(commits) else []
    )
    batches = [int(name) for name in names if name.isdigit()]
    reached: dict[str, dict[int, int]] = {}
    for source in batch_offsets(spark, checkpoint, max(batches)) if batches else ():
        for topic, partitions in source.items():
            reached[topic] = {int(partition): offset for partition, offset in partitions.items()}
    files.delete(path, True)
    return reached


def batch_offsets(spark: SparkSession, checkpoint: str, batch: int) -> list[Offsets]:
    """Where each source stood at the end of a batch, from the query's own offset log."""
    path = f"{checkpoint}/offsets/{batch}"
    lines = [row.value for row in spark.read.text(path).collect()]
    return [json.loads(line) for line in lines[2:]]  # after the version and the metadata


def _read(files: Any, path: Any) -> list[str] | None:
    if not files.exists(path):
        return None
    stream = files.open(path)
    try:
        return [str(step) for step in json.loads(bytes(stream.readAllBytes()))["state"]]
    except ValueError:
        return None  # the server died while it wrote this, before the first batch
    finally:
        stream.close()


def _listed(state: Sequence[str]) -> str:
    return ", ".join(f"'{step}'" for step in state) or "nothing"
