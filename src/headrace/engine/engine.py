"""The engine: builds the parts of a server, starts and stops them in order."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Mapping, Sequence

from headrace import __version__
from headrace.catalog.catalog import Catalog
from headrace.catalog.command_log import CommandLog, Entry
from headrace.engine.closing import Closing
from headrace.engine.cluster.applied_commands import AppliedCommands
from headrace.engine.cluster.heartbeat import Heartbeat, beats_topic
from headrace.engine.cluster.identity import Identity
from headrace.engine.cluster.membership import Membership
from headrace.engine.cluster.standby import Following, Standby
from headrace.engine.environment import Environment
from headrace.engine.health import HealthWatch
from headrace.engine.queries import processing_log, push, row_buffer
from headrace.engine.queries.parking import Parking
from headrace.engine.queries.persistent import QueryKeeper
from headrace.engine.queries.push import PushQueries, PushQuery
from headrace.engine.queries.query_progress import QueryProgress
from headrace.engine.queries.stalls import StallWatch
from headrace.engine.queries.statistics import TopicStatistics
from headrace.engine.queries.topic_watch import TopicWatch
from headrace.engine.statements.change_writer import ChangeWriter
from headrace.engine.statements.handling import Queries
from headrace.engine.statements.inserts import Inserts, RowStream
from headrace.engine.statements.metastore import Metastore
from headrace.engine.statements.planning_facts import LiveFacts
from headrace.engine.statements.print_topic import PrintedTopic
from headrace.engine.statements.runner import RequestRunner
from headrace.engine.tables.follower import TableTails
from headrace.engine.tables.pull import PullAnswer, PullQueries
from headrace.engine.tables.pull_service import PullService
from headrace.model.entities import (
    ClusterStatus,
    CommandStatus,
    Entity,
    Health,
    Json,
    ServerInfo,
)
from headrace.model.requests import Request
from headrace.model.secrets import without_login
from headrace.model.settings import check_editable, check_override
from headrace.spark.runtime.progress import TaskWatch

LOG = logging.getLogger(__name__)

# How long a server that ends waits for its parts.
CLOSE_SECONDS = 8.0


class Engine:
    """The parts of one server, put together, started and stopped; ARCHITECTURE.md says what each
    one owns.

    Other servers of the same service change the same catalog, through the command log; one of all
    runs the queries (docs/design/0004-several-servers.md). `lost` is told if Spark is gone, without
    which an engine is of no use any more. `log` and `heartbeat` are those in Kafka unless given.
    """

    def __init__(
        self,
        env: Environment,
        addresses: Mapping[str, str] | None = None,
        lost: Callable[[str], None] = lambda reason: None,
        *,
        log: CommandLog | None = None,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        settings, kafka = env.settings, env.kafka
        self._lost = lost
        self.watch: HealthWatch
        self._stall_watch: StallWatch
        self.addresses = dict(addresses or {})
        self.log = log or CommandLog(kafka, env.service_id, env.replication)
        self._identity = Identity.take(env.data_dir, env.service_id)
        self.heartbeat = heartbeat or Heartbeat(
            kafka,
            beats_topic(env.service_id),
            self._identity,
            lambda: self._membership.report(self.commands.position, self.env.state_dir),
            lambda seconds: self.queries.renew(seconds),
            env.replication,
        )
        self.queries = QueryKeeper(
            settings.number("ksql.query.retry.backoff.initial.ms") / 1000,
            settings.number("ksql.query.retry.backoff.max.ms") / 1000,
            self.heartbeat.holds,
        )
        statistics = TopicStatistics()
        self._progress = QueryProgress(
            lambda: self.env, self.queries, self.heartbeat.holds, statistics
        )
        self.commands = AppliedCommands(self.log, kafka.timeout)
        self._standby = Standby(env.spark, self.queries, self.heartbeat, self.commands)
        self._following = Following(self.commands, self._receive, self._standby.apply_lease)
        self._membership = Membership(
            lambda: self.env, self.addresses, self.queries, self.heartbeat
        )
        self._tails = TableTails(kafka, env.admin, env.data_dir / "tables")
        self._pulls = PullQueries(env, self._tails)
        self._inserts = Inserts(env, self._tails.expect)
        self._processing_log = processing_log.LogWriter(env)
        self._patience = settings.number("ksql.query.stall.timeout.ms") / 1000
        self.pushes = PushQueries(self._processing_log.write, self._patience)
        self._parking = Parking(self.pushes)
        pulls = PullService(self._pulls, self._tails)
        self._metastore = Metastore(
            env,
            self.commands,
            self._standby,
            self.queries,
            self.pushes,
            pulls,
            self._processing_log.write,
            lambda: self._following.is_alive,
            self._progress.forget,
        )
        self._requests = RequestRunner(
            self._metastore,
            self.commands,
            self._standby,
            Queries(self.queries, self.pushes, self._membership, statistics),
            self.pushes,
            pulls,
            self._inserts,
            ChangeWriter(self._metastore, self.commands, self._standby, LiveFacts(env)),
        )
        self._topic_watch = TopicWatch(env.admin, self.queries)

    @property
    def env(self) -> Environment:
        return self._metastore.env

    @property
    def catalog(self) -> Catalog:
        return self._metastore.catalog

    # ------------------------------------------------------------------ start and stop

    def open(self) -> None:
        """Replays the command log; starts every query where it stopped, unless another server of
        the same service runs them."""
        row_buffer.sweep(self.env)
        push.sweep(self.env)
        self.log.open()
        self._metastore.log_id = self.env.admin.id(self.log.topic)
        self.heartbeat.open()
        for entry in self.log.replay():
            self._receive(entry)
        self._following.open(self.commands.position)
        processing_log.create_topic(self.env)
        self._standby.apply_lease()
        self.queries.open()
        self._following.keep_role()
        self._topic_watch.open()
        self._progress.open()
        self._watch()
        made = processing_log.stream_statement(self.env)
        if made is not None:
            self.execute(Request(made))

    def _receive(self, entry: Entry) -> None:
        """Applies an entry of the command log."""
        if self.commands.receive(entry, self._metastore.replay) and self._following.is_alive:
            self.heartbeat.send_now()

    def _watch(self) -> None:
        self.watch = HealthWatch(self.env, self.log.topic, self.queries, self._spark_lost)
        self._stall_watch = StallWatch(
            TaskWatch(self.env.spark),
            self.queries,
            self.pushes,
            self._pulls.running,
            self._patience,
            self.watch.give_up,
        )
        self.watch.add("commandRunner", self._command_runner)
        watches = self._topic_watch, self._progress, self._stall_watch, self._parking
        for part in (self.heartbeat, self.queries, *watches):
            self.watch.watch(part.thread.name, part.thread)
        self.watch.add(self._tails.thread.name, self._tables)
        self.watch.watch("lease", self._following.role)
        self.watch.open()
        self._stall_watch.open()
        self._parking.open()

    def _tables(self) -> str | None:
        trouble = self._tails.trouble
        return None if trouble is None else trouble.reason

    def _command_runner(self) -> str | None:
        if self.commands.terminated:
            return "The cluster is terminated."
        return self._following.commands.failure

    def _spark_lost(self, reason: str) -> None:
        LOG.error("%s: no query can run here any more", reason)
        self.heartbeat.resign()
        self._lost(reason)

    def close(self) -> None:
        """Stops the engine within seconds, even if Kafka does not answer. Nothing is lost: commands
        are in Kafka, and queries continue from their checkpoints."""
        closing = Closing(CLOSE_SECONDS)
        watches = self.watch, self._stall_watch, self._parking
        for part in (*watches, self.pushes, self._tails, self._inserts):
            closing.close(part)
        closing.close(self._following)
        closing.close(self._topic_watch)
        closing.close(self._progress)
        # No goodbye while queries may run here: others wait until the lease has lapsed.
        if closing.close(self.queries):
            closing.close(self.heartbeat)
        closing.close(self._processing_log)
        closing.close(self.log)
        self._identity.release()

    # ------------------------------------------------------------------ requests

    def execute(self, request: Request) -> Sequence[Entity]:
        """Runs the statements of a request; waits as long as they do."""
        steps = self.steps(request)
        while True:
            try:
                time.sleep(next(steps))
            except StopIteration as end:
                done: Sequence[Entity] = end.value
                return done

    def steps(self, request: Request) -> Generator[float, None, Sequence[Entity]]:
        return self._requests.steps(request)

    def query(self, request: Request) -> PushQuery | PullAnswer:
        return self._requests.query(request)

    def answer_now(self, request: Request) -> PullAnswer | None:
        return self._requests.answer_now(request)

    def print_topic(self, request: Request) -> PrintedTopic:
        return self._requests.print_topic(request)

    def insert(self, target: str, properties: Mapping[str, object]) -> RowStream:
        return self._requests.insert(target, properties)

    def close_query(self, query_id: str) -> bool:
        push = self.pushes.find(query_id)
        if push is not None:
            push.close()
        return push is not None

    def terminate_cluster(self, delete_topics: Sequence[str]) -> Sequence[Entity]:
        return self._requests.terminate_cluster(delete_topics)

    def check_property(self, name: str) -> None:
        check_editable(name)
        check_override(self.env.settings, [name])

    # ------------------------------------------------------------------ about the server

    def info(self) -> ServerInfo:
        return ServerInfo(
            __version__,
            self.env.cluster_id,
            self.env.service_id,
            addresses={part: without_login(url) for part, url in self.addresses.items()},
        )

    def health(self) -> Health:
        """The health of all parts, from background probes; returns at once."""
        return self.watch.health()

    def degraded(self) -> Mapping[str, str]:
        """The queries and commands that cannot run now, each with the reason."""
        return {**self._metastore.unplanned, **self._membership.degraded()}

    def is_ready(self) -> bool:
        return self._standby.is_ready()

    def cluster_status(self) -> ClusterStatus:
        return self._membership.cluster_status()

    def hear(self, host: str) -> None:
        self._membership.peers.heard(host)

    def hear_lags(self, host: str, lags: Mapping[str, Json], at_ms: int) -> None:
        self._membership.peers.note_lags(host, lags, at_ms)

    def command_status(self, command_id: str) -> CommandStatus | None:
        return self._metastore.statuses.get(command_id)

    def command_statuses(self) -> Mapping[str, CommandStatus]:
        return dict(self._metastore.statuses)
