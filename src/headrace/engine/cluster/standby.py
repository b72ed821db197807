"""Whether this server runs the queries or is a standby; the threads for command log and lease."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from headrace.catalog.command_log import Entry
from headrace.engine.cluster.applied_commands import AppliedCommands
from headrace.engine.cluster.heartbeat import Heartbeat
from headrace.engine.queries.persistent import QueryKeeper
from headrace.engine.supervised import SupervisedThread
from headrace.model.entities import QueryState
from headrace.model.errors import HeadraceError
from headrace.spark.internals.query_watchdog import QueryWatchdog

LOG = logging.getLogger(__name__)

SETTLE_SECONDS = 0.25
# What others were told, and who runs the queries, is worth asking for often.
MOST_BACKOFF = 2.0
# How long a statement's answer waits for the server that runs the queries.
HOLDER_SECONDS = 10.0


@dataclass(frozen=True)
class Standby:
    """One server of a service holds the lease and runs the queries; the others are standbys."""

    _spark: SparkSession
    _queries: QueryKeeper
    _heartbeat: Heartbeat
    _commands: AppliedCommands

    def apply_lease(self) -> str | None:
        """Starts or stops the queries as the lease demands; returns a message if it did."""
        holds = self._heartbeat.holds()
        if self._queries.active and (self._queries.went_off or not holds):
            self._queries.deactivate()
            return "This server does not hold the lease any more: its queries are stopped"
        if holds and not self._queries.active:
            if not self._commands.terminated:
                self._commands.wait_for_end()
            with self._commands.lock:
                switch = QueryWatchdog(self._spark)
                self._queries.activate(switch, self._heartbeat.seconds_left())
            self._heartbeat.send_now()
            return "This server holds the lease: it runs the queries"
        return None

    def runs_queries(self) -> bool:
        return self._queries.active and self._heartbeat.holds()

    def is_ready(self) -> bool:
        """Whether every query was started, here or, if this server stands by, on another. One that
        fails counts: it is for people to mend, through this server."""
        if self._commands.terminated:
            return False
        if not self._queries.active:
            return self._heartbeat.holding() is not None and not self._heartbeat.holds()
        known = self._queries.all_known()
        return all(query.state is not QueryState.UNRESPONSIVE for query in known)

    def catch_up(self) -> None:
        """Applies the whole log where other servers may have written to it."""
        if self._heartbeat.others():
            self._commands.wait_for_end()

    def wait_for_holder(self, sequence: int) -> None:
        """Where another server runs the queries, gives it time to apply this command."""
        if not self._queries.active:
            self._heartbeat.await_applied(sequence, HOLDER_SECONDS)

    def wait_for_all(self, sequence: int) -> None:
        """Gives all other servers time to apply this command."""
        self._heartbeat.await_all(sequence, HOLDER_SECONDS)


class Following:
    """Follows command log and lease in two threads, so that a slow command delays no stop."""

    def __init__(
        self,
        commands: AppliedCommands,
        receive: Callable[[Entry], None],
        apply_lease: Callable[[], str | None],
    ) -> None:
        self._applied = commands
        self._receive = receive
        self._apply_lease = apply_lease
        self._position = 0
        self.commands = SupervisedThread("command-log", self._follow, most=MOST_BACKOFF)
        self.role = SupervisedThread("lease", self._keep_role, most=MOST_BACKOFF)

    def open(self, position: int) -> None:
        """Starts to follow the command log from this position."""
        self._position = position
        self.commands.start()

    def keep_role(self) -> None:
        self.role.start()

    @property
    def is_alive(self) -> bool:
        return self.commands.is_alive

    def close(self) -> None:
        for thread in (self.commands, self.role):
            thread.stopping.set()
        for thread in (self.commands, self.role):
            thread.stop()

    def _follow(self) -> None:
        try:
            for entry in self._applied.log.follow(self._position, self.commands.stopping):
                self._position = entry.sequence + 1
                self._receive(entry)
        except HeadraceError:
            if not self._applied.terminated:
                raise

    def _keep_role(self) -> None:
        while not self.role.stopping.wait(SETTLE_SECONDS):
            done = self._apply_lease()
            if done is not None:
                LOG.warning(done)
