"""Jobs that another thread may cancel: those of a pull query, whose own thread waits for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

from headrace.spark.internals.java_objects import java_context


class JobGroup:
    """What Spark does for one purpose, under a name that its counters know (`progress.py`)."""

    def __init__(self, context: SparkContext, name: str) -> None:
        self._context = context
        self.name = name

    @contextmanager
    def running(self) -> Iterator[None]:
        """Jobs that this thread starts inside belong to the group."""
        self._context.setJobGroup(self.name, self.name, interruptOnCancel=True)
        try:
            yield
        finally:
            java_context(self._context).clearJobGroup()

    def end(self) -> None:
        self._context.cancelJobGroup(self.name)
