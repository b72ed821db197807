"""Checkpoint files that survive a power cut: two small Java classes.

Spark's own files get their names before they are on the disk, and neither Hadoop nor Spark has a
setting for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headrace.spark.compiled import compiled_jar

FILE_SYSTEM = "headrace.DurableLocalFileSystem"
FILE_MANAGER = "headrace.DurableCheckpointFileManager"


def durable_jar(jars: Sequence[Path]) -> Path:
    """The jar with both classes. `jars` are what Spark gets beside its own."""
    return compiled_jar("durable", __package__, jars)
