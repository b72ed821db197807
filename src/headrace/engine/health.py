"""Health of the server by part; slow probes run in the background, so that the health check always
returns at once.

A part may be unwell without the server being so: a query that fails is its owner's business, and
no reason to take the server from its clients.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from headrace.engine.environment import Environment
from headrace.engine.queries.persistent import QueryKeeper
from headrace.engine.supervised import SupervisedThread
from headrace.model.entities import Health, HealthPart, QueryState
from headrace.model.errors import HeadraceError
from headrace.spark.internals.jvm import ContextStoppedError, SparkJvm
from headrace.spark.runtime.torn_checkpoints import local_path

ASK_SECONDS = 2.0
# A part that has not answered for so long is unwell.
PATIENCE_SECONDS = 5.0
WATCH_SECONDS = 0.25
# With less than this, files can hardly be written any more.
LEAST_FREE_BYTES = 16 * 1024 * 1024

# Why a part is unwell; None if it is well. It never waits.
Reason = Callable[[], "str | None"]


class Probe:
    """A part that a thread of its own probes regularly; `ask` raises if the part is unhealthy."""

    def __init__(self, name: str, ask: Callable[[], None]) -> None:
        self._ask = ask
        self._reason: str | None = None
        self._asked_at: float | None = None  # since when it owes an answer
        self.thread = SupervisedThread(f"health-{name}", self._run)

    def reason(self) -> str | None:
        asked_at = self._asked_at
        if asked_at is not None and (late := time.monotonic() - asked_at) > PATIENCE_SECONDS:
            return f"There has been no answer for {late:.0f} s"
        return self._reason

    def _run(self) -> None:
        while not self.thread.stopping.wait(ASK_SECONDS):
            self._asked_at = time.monotonic()
            try:
                self._ask()
                self._reason = None
            except Exception as e:  # whatever it raises is why the part is unwell
                self._reason = str(e) or type(e).__name__
            finally:
                self._asked_at = None


class HealthWatch:
    """The health of all parts of a server. `lost` is called if Spark is lost for good."""

    def __init__(
        self, env: Environment, topic: str, queries: QueryKeeper, lost: Callable[[str], None]
    ) -> None:
        self._env = env
        self._topic = topic
        self._queries = queries
        self._lost = lost
        self._jvm = SparkJvm(env.spark)
        probes = {"kafka": self._ask_kafka, "spark": self._ask_spark, "disk": self._ask_disk}
        if env.registry is not None:
            probes["schemaRegistry"] = self._ask_registry
        self._probes = {name: Probe(name, ask) for name, ask in probes.items()}
        self._reasons: dict[str, Reason] = {
            **{name: part.reason for name, part in self._probes.items()},
            "spark": lambda: self._jvm.end or self._probes["spark"].reason(),
        }
        self._watcher = SupervisedThread("spark-jvm", self._watch)

    def watch(self, name: str, thread: SupervisedThread) -> None:
        """Adds a thread as a part."""
        self.add(name, lambda: thread.failure)

    def add(self, name: str, reason: Reason) -> None:
        self._reasons[name] = reason

    def open(self) -> None:
        for part in self._probes.values():
            part.thread.start()
        self._watcher.start()

    def close(self) -> None:
        """Stops the probes, without waiting for those that are blocked."""
        for part in self._probes.values():
            part.thread.stopping.set()
        self._watcher.stop()

    def give_up(self, reason: str) -> None:
        """Has Spark restarted, because of a task that cannot be ended."""
        if not self._jvm.kill(reason):
            self._lost(reason)

    def health(self) -> Health:
        parts = {"metastore": HealthPart()}
        parts |= {name: HealthPart(reason()) for name, reason in self._reasons.items()}
        return Health({**parts, "queries": self._failing_queries()})

    def _watch(self) -> None:
        while not self._watcher.stopping.wait(WATCH_SECONDS):
            if self._jvm.end is not None:
                self._lost(self._jvm.end)
                return

    def _ask_kafka(self) -> None:
        if not self._env.admin.exists(self._topic, PATIENCE_SECONDS):
            raise HeadraceError(f"Topic '{self._topic}' does not exist in Kafka.")

    def _ask_registry(self) -> None:
        assert self._env.registry is not None
        self._env.registry.subjects()

    def _ask_spark(self) -> None:
        try:
            self._jvm.check()
        except ContextStoppedError as e:
            if not self._watcher.stopping.is_set():
                self._lost(str(e))
            raise

    def _ask_disk(self) -> None:
        for directory in (self._env.data_dir, local_path(self._env.state_dir)):
            if directory is None:
                continue
            found = os.statvfs(directory if directory.exists() else directory.parent)
            free = found.f_bavail * found.f_frsize
            if free < LEAST_FREE_BYTES:
                raise HeadraceError(f"Only {free >> 20} MiB are free at {directory}")

    def _failing_queries(self) -> HealthPart:
        failing = {
            query.id: query.errors[-1].error_message if query.errors else ""
            for query in self._queries.all_known()
            if query.state in (QueryState.ERROR, QueryState.DEGRADED)
        }
        return HealthPart(_listed(failing), counts=False)


def _listed(failing: Mapping[str, str]) -> str | None:
    if not failing:
        return None
    shown = [f"{id_}: {reason}" for id_, reason in list(failing.items())[:10]]
    return f"{len(failing)} failing: " + "; ".join(shown)
