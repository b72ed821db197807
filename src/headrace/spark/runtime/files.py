"""Files of a checkpoint, in any file system that Spark's Hadoop knows."""

from __future__ import annotations

import logging

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from headrace.spark.internals.java_objects import java_session, jvm_of

LOG = logging.getLogger(__name__)


class CheckpointFiles:
    """By their paths below the checkpoint's directory."""

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        self._jvm = jvm_of(spark)
        # With the session's settings, which say how Spark writes a checkpoint's files.
        self._conf = java_session(spark).sessionState().newHadoopConf()
        self._checkpoint = checkpoint
        self._system = self._path("").getFileSystem(self._conf)

    def _path(self, name: str) -> JavaObject:
        whole = f"{self._checkpoint}/{name}" if name else self._checkpoint
        return self._jvm.org.apache.hadoop.fs.Path(whole)

    def read(self, name: str) -> bytes | None:
        """None if it is not there, nothing if it is damaged."""
        path = self._path(name)
        if not self._system.exists(path):
            return None
        stream = self._system.open(path)
        try:
            return bytes(stream.readAllBytes())
        except Py4JJavaError as e:
            LOG.warning("%s/%s is damaged: %s", self._checkpoint, name, e)
            return b""
        finally:
            stream.close()

    def write(self, name: str, data: bytes) -> None:
        """The file has either its old content or all of the new one, whatever happens."""
        path = self._path(name)
        self._system.mkdirs(path.getParent())
        streaming = self._jvm.org.apache.spark.sql.execution.streaming
        manager = streaming.checkpointing.CheckpointFileManager.create(path.getParent(), self._conf)
        stream = manager.createAtomic(path, True)
        try:
            stream.write(bytearray(data))
        except BaseException:  # whatever it is, no half file is left
            stream.cancel()
            raise
        stream.close()

    def delete(self, name: str) -> None:
        self._system.delete(self._path(name), True)

    def numbers(self, directory: str) -> list[int]:
        """The files of a log, each of which bears the number of its batch."""
        path = self._path(directory)
        found = self._system.listStatus(path) if self._system.exists(path) else []
        names = [status.getPath().getName() for status in found]
        return [int(name) for name in names if name.isdigit()]
