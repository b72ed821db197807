"""The JVM that Spark's driver runs in: a child process, which may die without the server.

Nothing of Spark outlives it: sessions, DataFrames and streaming queries of this process all stand
for objects in it. So a server whose JVM is gone begins anew (`server/run.py`).
"""

from __future__ import annotations

import subprocess

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from headrace.model.errors import UnavailableError
from headrace.spark.internals.java_objects import java_context


def start_jvm(conf: SparkConf) -> None:
    """Starts it with these settings on its command line, if this process has none."""
    SparkContext._ensure_initialized(conf=conf)


class SparkJvm:
    """Tells whether the JVM lives and its Spark context works."""

    def __init__(self, spark: SparkSession) -> None:
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        # None if the JVM was there before this process, which then cannot watch it.
        self._process: subprocess.Popen[bytes] | None = gateway.proc
        self._context = java_context(spark.sparkContext).sc()
        self._reason: str | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def end(self) -> str | None:
        """How it ended; None while it lives. Never waits."""
        status = None if self._process is None else self._process.poll()
        if status is None:
            return None
        if self._reason is not None:
            return self._reason
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"Spark's JVM {how}"

    def kill(self, reason: str) -> bool:
        """Ends it at once. False if this process did not start it."""
        self._reason = reason
        if self._process is not None:
            self._process.kill()
        return self._process is not None

    def check(self) -> None:
        """Raises if Spark cannot work any more; may wait for as long as the JVM is stopped."""
        if self.end is not None:
            raise UnavailableError(self.end)
        if self._context.isStopped():
            raise ContextStoppedError("Spark's context has been stopped")


class ContextStoppedError(UnavailableError):
    """The JVM lives, but Spark in it does not, say because its cluster has let it go."""
