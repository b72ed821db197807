"""A watchdog in the JVM: it stops queries unless this process resets it in time.

A query runs in the JVM and its workers, and goes on while the Python process that started it is
frozen. So the JVM itself has a timer. It is put together from what the JDK has, as there is no
Java of our own: an executor whose threads are not started holds each query's `stop` in its queue;
the timer's task is to start the threads.
"""

from __future__ import annotations

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headrace.spark.internals.java_objects import java_query, jvm_of

# So many queries are stopped at the same time.
THREADS = 8


class QueryWatchdog:
    """Stops the queries it watches, in `arm`'s number of seconds, unless it is armed again.

    One that has fired stays so: a query that it is to watch later is stopped at once.
    """

    def __init__(self, spark: SparkSession) -> None:
        jvm = jvm_of(spark)
        self._concurrent = jvm.java.util.concurrent
        self._handler = jvm.java.beans.EventHandler
        self._runnable = jvm.java.lang.Class.forName("java.lang.Runnable")
        self._unit = self._concurrent.TimeUnit.MILLISECONDS
        self._timer = self._concurrent.ScheduledThreadPoolExecutor(1)
        self._stops = self._concurrent.LinkedBlockingQueue()
        self._stopper = self._concurrent.ThreadPoolExecutor(
            THREADS, THREADS, 0, self._unit, self._stops
        )
        self._fire = self._does(self._stopper, "prestartAllCoreThreads")
        self.fired = False  # as far as this process knows
        self._armed: JavaObject | None = None
        self._watched: dict[str, JavaObject] = {}

    def _does(self, target: JavaObject, action: str) -> JavaObject:
        """A Runnable that calls a method without arguments."""
        return self._handler.create(self._runnable, target, action)

    def arm(self, seconds: float) -> None:
        """Sets the time back, if it is not too late."""
        armed = self._timer.schedule(self._fire, max(0, int(seconds * 1000)), self._unit)
        if self._armed is not None and not self._armed.cancel(False):
            self.fired = True
        self._armed = armed

    def watch(self, query: StreamingQuery) -> None:
        stop = self._does(java_query(query), "stop")
        self._watched[str(query.runId)] = stop
        self._stops.add(stop)

    def forget(self, query: StreamingQuery) -> None:
        """The query is stopped already."""
        stop = self._watched.pop(str(query.runId), None)
        if stop is not None:
            self._stops.remove(stop)

    def close(self) -> None:
        self._timer.shutdownNow()
        self._stopper.shutdownNow()
