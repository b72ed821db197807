"""What a query's checkpoint remembers is written beside it, and must fit what now runs.

Spark would find out by itself in some cases, in words of its own, and not in others: say, if state
were split into another number of buckets. A query is refused before it touches anything.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from headrace.spark.internals.java_objects import java_context, jvm_of
from headrace.spark.state.log import StateMismatchError

LOG = logging.getLogger(__name__)

FILE = "headrace.json"
POSITIONS = "positions.json"
TOPICS = "topics.json"  # which topics the offsets are of
_REPLACED = ".replaced"

# By topic and partition.
Offsets = Mapping[str, Mapping[str, int]]


def check_state(spark: SparkSession, checkpoint: str, state: Sequence[str]) -> None:
    """Refuses a checkpoint whose state is not `state`; a new one is marked with it.

    The checkpoint is any path that Spark's Hadoop file systems know.
    """
    files, path = _file(spark, f"{checkpoint}/{FILE}")
    written = _read(files, path)
    if written is None:
        _write(files, path, {"state": list(state)})
    elif written["state"] != list(state):
        was, now = _listed(written["state"]), _listed(state)
        raise StateMismatchError(
            f"The query's state was written for {was} and cannot be read as {now}. Terminate the "
            "query and create it again, or go back to what wrote the state."
        )


def take_over(spark: SparkSession, checkpoint: str) -> None:
    """Lets go of a query's state, and keeps where it had got to: a new one goes on from there."""
    files, path = _file(spark, checkpoint)
    _, aside = _file(spark, checkpoint + _REPLACED)
    files.delete(aside, True)
    files.rename(path, aside)


def positions(spark: SparkSession, checkpoint: str) -> dict[str, dict[int, int]]:
    """Where the query that this one took over from had got to in each topic; nothing if none.

    A server may have died while the one took over from the other: this finishes it.
    """
    files, path = _file(spark, f"{checkpoint}/{POSITIONS}")
    _, aside = _file(spark, checkpoint + _REPLACED)
    if files.exists(aside):
        if _read(files, path) is None:
            _, topics = _file(spark, f"{checkpoint}/{TOPICS}")
            _, theirs = _file(spark, f"{checkpoint}{_REPLACED}/{TOPICS}")
            known = _read(files, theirs)
            if known is not None:
                _write(files, topics, known)
            _write(files, path, _reached(spark, checkpoint + _REPLACED))
        files.delete(aside, True)
    found: dict[str, dict[str, int]] = _read(files, path) or {}
    return {topic: {int(p): o for p, o in at.items()} for topic, at in found.items()}


def _reached(spark: SparkSession, checkpoint: str) -> Offsets:
    """The end of the last finished batch; before it, where the query itself took over."""
    files, positions_file = _file(spark, f"{checkpoint}/{POSITIONS}")
    reached: dict[str, Any] = _read(files, positions_file) or {}
    _, commits = _file(spark, f"{checkpoint}/commits")
    listed = files.listStatus(commits) if files.exists(commits) else []
    names = [status.getPath().getName() for status in listed]
    batches = [int(name) for name in names if name.isdigit()]
    for source in batch_offsets(spark, checkpoint, max(batches)) if batches else ():
        reached |= source
    return reached


def forget(spark: SparkSession, checkpoint: str) -> None:
    """Deletes a checkpoint that is of no use to anyone; it stays where that is not possible."""
    try:
        for name in (checkpoint, checkpoint + _REPLACED):
            files, path = _file(spark, name)
            files.delete(path, True)
    except (Py4JError, ConnectionError) as e:
        LOG.warning("The checkpoint %s could not be deleted: %s", checkpoint, e)


def batch_offsets(spark: SparkSession, checkpoint: str, batch: int) -> list[Offsets]:
    """Where each source stood at the end of a batch, from the query's own offset log."""
    path = f"{checkpoint}/offsets/{batch}"
    lines = [row.value for row in spark.read.text(path).collect()]
    return [json.loads(line) for line in lines[2:]]  # after the version and the metadata


def _file(spark: SparkSession, path: str) -> tuple[JavaObject, JavaObject]:
    """A Hadoop path, and the file system that it is in."""
    made = jvm_of(spark).org.apache.hadoop.fs.Path(path)
    return made.getFileSystem(java_context(spark.sparkContext).hadoopConfiguration()), made


def _read(files: JavaObject, path: JavaObject) -> dict[str, Any] | None:
    if not files.exists(path):
        return None
    stream = files.open(path)
    try:
        found: dict[str, Any] = json.loads(bytes(stream.readAllBytes()))
        return found
    except ValueError:
        return None  # the server died while it wrote this, before the first batch
    finally:
        stream.close()


def _write(files: JavaObject, path: JavaObject, content: Mapping[str, Any]) -> None:
    stream = files.create(path, True)
    stream.write(bytearray(json.dumps(content).encode()))
    stream.close()


def _listed(state: Sequence[str]) -> str:
    return ", ".join(f"'{step}'" for step in state) or "nothing"
