"""The engine: statements in, entities out; queries kept running; everything recovered at start."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from headrace import __version__
from headrace.catalog.catalog import Catalog
from headrace.catalog.commands import Command, CommandLog, Entry, OutcomeUnknownError, Unreadable
from headrace.engine import processing_log, telling, waiting
from headrace.engine.changes import Change, Intent, Nothing, is_change, plan_change
from headrace.engine.closing import Closing
from headrace.engine.following import Following
from headrace.engine.health import HealthWatch
from headrace.engine.heartbeat import Heartbeat, beats_topic
from headrace.engine.identity import Identity
from headrace.engine.inserts import Inserts, RowStream
from headrace.engine.outside import LiveOutside, PretendOutside
from headrace.engine.prepared import PreparedLookups
from headrace.engine.printing import PrintedTopic
from headrace.engine.provision import Provisioned, delete_topic
from headrace.engine.pulling import PullAnswer, PullQueries
from headrace.engine.push import PushQueries, PushQuery
from headrace.engine.queries import QueryKeeper
from headrace.engine.replaying import Replay, reason_for, source_to_json
from headrace.engine.running import Starts, starting_offsets
from headrace.engine.session import Session
from headrace.engine.stalls import StallWatch
from headrace.engine.starting import Starting
from headrace.engine.statements import answer
from headrace.engine.statements.assertions import eventually
from headrace.engine.tailing import TableTails
from headrace.engine.topic_watch import TopicWatch
from headrace.engine.world import World
from headrace.model.entities import (
    ClusterStatus,
    CommandId,
    CommandState,
    CommandStatus,
    CurrentStatus,
    Entity,
    Health,
    QueryState,
    ServerInfo,
    TerminatedQuery,
    WarningEntity,
)
from headrace.model.errors import HeadraceError, StatementError, UnavailableError
from headrace.model.requests import QueryKind, Request
from headrace.model.secrets import without_login
from headrace.model.settings import Settings, check_editable, is_secret
from headrace.plan import nodes as n
from headrace.plan.pull import plan_pull
from headrace.plan.query import Planned, plan_push
from headrace.plan.replace import starts_anew
from headrace.plan.scalable import is_scalable
from headrace.spark.checkpoint import forget, take_over
from headrace.spark.progress import TaskWatch
from headrace.spark.switch import DeadMansSwitch
from headrace.sql import ast
from headrace.sql.parser import ParsedStatement, parse, split
from headrace.sql.printer import format_statement
from headrace.sql.variables import substitute
from headrace.topics.patterns import matching

LOG = logging.getLogger(__name__)

# How often a statement is planned anew because other servers' statements came first.
ATTEMPTS = 20
# How long a statement's answer waits for the server that runs the queries.
HOLDER_SECONDS = 10.0
# How long a server that ends waits for its parts.
CLOSE_SECONDS = 8.0


class Engine:
    """One per server. Statements that change something run one at a time.

    Other servers of the same service change the same catalog, through the command log; one of all
    runs the queries (docs/design/0004-several-servers.md). `lost` is told if Spark is gone, without
    which an engine is of no use any more.
    """

    def __init__(
        self,
        world: World,
        addresses: Mapping[str, str] | None = None,
        lost: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self.world = world
        self._lost = lost
        self.watch: HealthWatch
        self._stall_watch: StallWatch
        self.addresses = dict(addresses or {})
        self.catalog = Catalog()
        self.log = CommandLog(
            world.kafka, world.service_id, world.settings.number("ksql.internal.topic.replicas")
        )
        self._identity = Identity.take(world.data_dir, world.service_id)
        self.heartbeat = Heartbeat(
            world.kafka,
            beats_topic(world.service_id),
            self._identity,
            lambda: telling.report(self),
            lambda seconds: self.queries.renew(seconds),
            world.settings.number("ksql.internal.topic.replicas"),
        )
        self.queries = QueryKeeper(
            world.settings.number("ksql.query.retry.backoff.initial.ms") / 1000,
            world.settings.number("ksql.query.retry.backoff.max.ms") / 1000,
            self.heartbeat.holds,
        )
        self._following = Following(
            self.log, self._hear, self._settle, is_over=lambda: self._terminated
        )
        self.tails = TableTails(world.kafka, world.admin, world.data_dir / "tables")
        self.pulls = PullQueries(world, self.tails)
        self.prepared = PreparedLookups(self.tails)
        self.inserts = Inserts(world, self.tails.expect)
        self.processing_log = processing_log.LogWriter(world)
        self.pushes = PushQueries(self.processing_log.write)
        self.statuses: dict[str, CommandStatus] = {}
        self.unplanned: dict[str, str] = {}  # commands by their ids, and why
        self._changing = threading.RLock()
        self._changed = threading.Condition(self._changing)
        self._next_sequence = 0
        self._last = -1  # the last command that counted
        self._void: set[int] = set()
        self._terminated = False
        self._outside = LiveOutside(world)
        self._life = ""  # the command log's id
        self._topic_watch = TopicWatch(world.admin, self.queries)

    # ------------------------------------------------------------------ start and stop

    def open(self) -> None:
        """Replays the command log; starts every query where it stopped, unless another server of
        the same service runs them."""
        waiting.sweep(self.world)
        self.log.open()
        self._life = self.world.admin.id(self.log.topic)
        self.heartbeat.open()
        for entry in self.log.replay():
            self._hear(entry)
        self._following.open(self._next_sequence)
        processing_log.create_topic(self.world)
        self._settle()
        self.queries.open()
        self._following.keep_role()
        self._topic_watch.open()
        self._watch()
        made = processing_log.stream_statement(self.world)
        if made is not None:
            self.execute(Request(made))

    def _watch(self) -> None:
        self.watch = HealthWatch(self.world, self.log.topic, self.queries, self._spark_lost)
        self._stall_watch = StallWatch(
            TaskWatch(self.world.spark),
            self.queries,
            self.pushes,
            self.pulls,
            self.world.settings.number("ksql.query.stall.timeout.ms") / 1000,
            self.watch.give_up,
        )
        self.watch.add("commandRunner", self._command_runner)
        for part in (self.heartbeat, self.queries, self._topic_watch, self._stall_watch):
            self.watch.watch(part.thread.name, part.thread)
        self.watch.add(self.tails.thread.name, self._tables)
        self.watch.watch("lease", self._following.role)
        self.watch.open()
        self._stall_watch.open()

    def _tables(self) -> str | None:
        trouble = self.tails.trouble
        return None if trouble is None else trouble.reason

    def _command_runner(self) -> str | None:
        if self._terminated:
            return "The cluster is terminated."
        return self._following.commands.failure

    def _spark_lost(self, reason: str) -> None:
        LOG.error("%s: no query can run here any more", reason)
        self.heartbeat.resign()
        self._lost(reason)

    def close(self) -> None:
        """Ends in seconds, also if Kafka does not answer. Nothing is lost by that: what counts is
        in Kafka, and queries go on from their checkpoints."""
        closing = Closing(CLOSE_SECONDS)
        for part in (self.watch, self._stall_watch, self.pushes, self.tails, self.inserts):
            closing.close(part)
        closing.close(self._following)
        closing.close(self._topic_watch)
        # No goodbye while queries may run here: others wait until the lease has lapsed.
        if closing.close(self.queries):
            closing.close(self.heartbeat)
        closing.close(self.processing_log)
        closing.close(self.log)
        self._identity.release()

    # ------------------------------------------------------------------ with other servers

    @property
    def position(self) -> int:
        """Up to where the command log is applied."""
        return self._next_sequence

    def _hear(self, entry: Entry) -> None:
        """Takes up what stands in the command log, if it is not this server's own and done."""
        with self._changed:
            if entry.sequence < self._next_sequence:
                return
            if isinstance(entry, Unreadable):
                LOG.error(
                    "Record %d of the command log %s is passed over: %s",
                    entry.sequence,
                    self.log.topic,
                    entry.reason,
                )
            try:
                if isinstance(entry, Command):
                    self._take_up(entry)
            finally:
                self._next_sequence = entry.sequence + 1
                self._changed.notify_all()
        if self._following.is_alive:
            self.heartbeat.nudge()

    def _take_up(self, command: Command) -> None:
        if command.counts(self._last):
            self._last = command.sequence
            self._replay(command)
        else:
            self._void.add(command.sequence)

    def _replay(self, command: Command) -> None:
        if command.id == str(_TERMINATE):
            self._end(command)
            return
        settings = {k: _text(v) for k, v in command.settings.items() if v is not None}
        replay = Replay(command, settings)
        try:
            change = replay.plan(self.catalog)
        except Exception as e:
            self._keep(replay, e)
            return
        self.statuses[command.id] = _status(change)
        try:
            self._apply(change, command.starts)
        except HeadraceError as e:
            LOG.error("What %s asks for was not done to the end: %s", command.statement, e)

    def _keep(self, replay: Replay, failure: Exception) -> None:
        """A command that counted stays known when it cannot be planned, and says why."""
        command = replay.command
        reason = reason_for(command.statement, failure)
        known = isinstance(failure, HeadraceError)
        LOG.error("Command %s: %s", command.id, reason, exc_info=None if known else failure)
        self.statuses[command.id] = CommandStatus(CommandState.ERROR, reason)
        try:
            self.catalog = replay.keep(self.catalog)
        except Exception as e:
            LOG.error("Nothing of command %s is kept: %s", command.id, e)
            self.unplanned[command.id] = reason
            return
        if command.query_id is None:
            self.unplanned[command.id] = reason
        else:
            self.queries.remove(command.query_id)
            self._start(
                command.query_id,
                replay.text,
                lambda: replay.plan_query(self.catalog),
                replay.settings,
                command.starts,
            )

    def _settle(self) -> str | None:
        """Takes the queries on, or lets them go, as the lease says; and says what it did."""
        holds = self.heartbeat.holds()
        if self.queries.active and (self.queries.went_off or not holds):
            self.queries.deactivate()
            return "This server does not hold the lease any more: its queries are stopped"
        if holds and not self.queries.active:
            if not self._terminated:
                self._await_command(self.log.end() - 1, self.world.kafka.timeout)
            with self._changing:
                switch = DeadMansSwitch(self.world.spark)
                self.queries.activate(switch, self.heartbeat.seconds_left())
            self.heartbeat.nudge()
            return "This server holds the lease: it runs the queries"
        return None

    # ------------------------------------------------------------------ statements

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
        """Runs the statements of a request, all of which are checked before any is done.

        Yields how long to wait before it goes on; whoever asked may do so without a thread.
        """
        session = Session(dict(request.properties), dict(request.variables))
        session.check()
        self._admit(request.after_command)
        if self.heartbeat.others():
            self._await_command(self.log.end() - 1, self.world.kafka.timeout)
        statements = [s.text for s in split(request.text)]
        if len(statements) > 1:
            self._rehearse(statements, session.copy())
        entities: list[Entity] = []
        for text in statements:
            try:
                parsed = self._parse(text, session)
                entity = yield from eventually(partial(self._run, parsed, session))
            except HeadraceError as e:
                raise _placed(e, text, entities) from e.__cause__
            if entity is not None:
                entities.append(entity)
        return entities

    def _admit(self, sequence: int | None = None) -> None:
        """Waits for the command of this number; raises if there will be none any more."""
        if self._terminated:
            raise _Terminated("The server is already shut down")
        if sequence is None:
            return
        patience = self.world.settings.number("ksql.server.command.response.timeout.ms") / 1000
        self._await_command(sequence, patience)

    def _parse(self, text: str, session: Session) -> ParsedStatement:
        settings = session.settings(self.world.settings)
        if "${" in text and settings.flag("ksql.variable.substitution.enable"):
            text = substitute(text, session.variables)
        parsed = parse(text)
        return parsed[0]

    def _rehearse(self, statements: Sequence[str], session: Session) -> None:
        """Plans everything against a catalog that pretends; raises what would be raised."""
        catalog, outside = self.catalog, PretendOutside(self.world)
        for i, text in enumerate(statements):
            try:
                parsed = self._parse(text, session)
                if session.takes(parsed.statement):
                    continue
                if is_change(parsed.statement):
                    intent = self._intent(parsed.text, session, self._next_sequence + i)
                    change = plan_change(parsed.statement, catalog, intent, outside)
                    outside.pretend(change)
                    catalog = change.catalog
            except HeadraceError as e:
                raise _placed(e, text, []) from e.__cause__

    def _run(self, parsed: ParsedStatement, session: Session) -> Entity | None:
        statement = parsed.statement
        if session.takes(statement):
            session.settings(self.world.settings)  # which refuses what is beyond a limit
            return None
        if isinstance(statement, ast.TerminateQuery):
            push = self.pushes.find(statement.query_id or "")
            if push is not None:
                push.close()
                return TerminatedQuery(parsed.text, push.id, was_terminated=True)
        if is_change(statement):
            return self.change(parsed, session)
        return answer(statement, parsed.text, self, session)

    def _intent(self, text: str, session: Session, sequence: int) -> Intent:
        return Intent(text, self.texts(session), sequence, self._plan_of)

    def _plan_of(self, query_id: str) -> n.Node | None:
        query = self.queries.get(query_id)
        return query.planned.node if query is not None and query.planned is not None else None

    # ------------------------------------------------------------------ changes

    def change(self, parsed: ParsedStatement, session: Session) -> Entity:
        """Plans, provisions, records and applies one change; a failure leaves nothing behind."""
        with self._changing:
            provisioned = Provisioned(self.world)
            before = self._topics()
            try:
                entity = self._attempts(parsed, session, provisioned)
            except OutcomeUnknownError:
                raise  # it may count: what was made for it stays
            except BaseException:
                provisioned.undo(keep=self._topics() - before)
                raise
        if isinstance(entity, CurrentStatus) and not self.queries.active:
            self.heartbeat.await_applied(entity.command_sequence_number, HOLDER_SECONDS)
        return entity

    def _topics(self) -> set[str]:
        return {source.topic for source in self.catalog.sources()}

    def _attempts(
        self, parsed: ParsedStatement, session: Session, provisioned: Provisioned
    ) -> Entity:
        for _ in range(ATTEMPTS):
            intent = self._intent(parsed.text, session, self._next_sequence)
            change = plan_change(parsed.statement, self.catalog, intent, self._outside)
            if change.nothing is not None:
                return self._nothing_done(change)
            starts: Starts = {}
            if change.creates is not None:
                provisioned.provision(change.creates, change.topic)
            if change.starts is not None:
                node = change.starts.planned.node
                settings = Settings(change.starts.settings)
                starts = starting_offsets(self.world, node, settings)
            command = self.log.append(self._command(change, starts))
            if command.sequence == self._next_sequence:
                self._next_sequence, self._last = command.sequence + 1, command.sequence
                provisioned.settle()
                self._apply(change, starts)
                self.statuses[str(change.command)] = _status(change)
                self._changed.notify_all()
            else:  # others wrote, too: what counts is applied as it is read
                self._await_command(command.sequence, self.world.kafka.timeout)
                if command.sequence in self._void:
                    continue
                provisioned.settle()
            return CurrentStatus(
                parsed.text,
                change.command,
                _status(change),
                command.sequence,
                warnings=change.warnings,
            )
        raise UnavailableError("Other servers change too much at the same time. Try again.")

    def _nothing_done(self, change: Change) -> Entity:
        """The answer to a statement that changes nothing, which is not worth a command."""
        if change.nothing is Nothing.WARNING:
            return WarningEntity(change.text, change.message)
        status = self.statuses[str(change.command)] = _status(change)
        return CurrentStatus(
            change.text, change.command, status, self._last, warnings=change.warnings
        )

    def _await_command(self, sequence: int, patience: float) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._next_sequence > sequence, patience):
                raise _CommandNotDone(
                    "Timed out while waiting for a previous command to execute. command sequence "
                    f"number: {sequence}"
                )

    def _command(self, change: Change, starts: Starts) -> Command:
        return Command(
            id=str(change.command),
            statement=format_statement(change.statement),
            settings=_recorded(change.settings),
            plan_version=n.PLAN_VERSION,
            query_id=change.starts.id if change.starts else None,
            starts={topic: dict(offsets) for topic, offsets in starts.items()},
            number=self._next_sequence,
            after=self._last,
            text=change.text,
            creates=source_to_json(change.creates) if change.creates is not None else None,
        )

    def _apply(self, change: Change, starts: Starts) -> None:
        """Makes a change true here; outside, if this is the server that runs the queries."""
        holds = self.queries.active and self.heartbeat.holds()
        before = self.catalog
        self._take(change)
        about = change.command
        self.unplanned.pop(str(replace(about, action="create")), None)
        replaced = change.starts.id if change.starts is not None else None
        for id_ in change.stops:
            query = self.queries.remove(id_)
            if query is None or not holds:
                continue
            if id_ != replaced:
                forget(self.world.spark, query.checkpoint)
            elif change.starts and (
                query.planned is None or starts_anew(query.planned.node, change.starts.planned.node)
            ):
                take_over(self.world.spark, query.checkpoint)
        if self._following.is_alive:  # what is replayed was forgotten then
            for source in before.sources():
                if self.catalog.source(source.name) is not source:
                    self.pulls.forget(source)
        if change.starts is not None:
            new = change.starts
            self._start(new.id, new.statement, lambda: new.planned, new.settings, starts)
        for id_ in change.pauses:
            self.queries.pause(id_)
        for id_ in change.resumes:
            self.queries.resume(id_)
        if change.deletes_topic is not None and holds:
            delete_topic(self.world, change.deletes_topic.topic)

    def _take(self, change: Change) -> None:
        self.catalog = change.catalog
        if change.alters is not None:
            self.prepared = PreparedLookups(self.tails)
            altered = self.world.settings.override(dict([change.alters]))
            self.world = replace(self.world, settings=altered)

    def _start(
        self,
        id_: str,
        statement: str,
        plan: Callable[[], Planned],
        settings: Mapping[str, str],
        starts: Starts,
    ) -> None:
        log = self.processing_log.write
        starting = Starting(id_, statement, settings, starts, self._life, log)
        self.queries.add(starting.query(lambda: self.world, plan))

    # ------------------------------------------------------------------ queries

    def texts(self, session: Session) -> dict[str, str]:
        """The settings in force as texts, which is what planning reads."""
        settings = session.settings(self.world.settings)
        return {k: _text(v) for k, v in settings.items() if v is not None}

    def query(self, request: Request) -> PushQuery | PullAnswer:
        """Starts the one SELECT of a request, push or pull as its text says."""
        known = self.prepared.answer(request, self.catalog, self.tails.await_fresh)
        if known is not None:
            return known
        parsed, session = self._only_statement(request)
        try:
            if not isinstance(parsed.statement, ast.Query):
                raise StatementError(
                    f"Statement type `{type(parsed.statement).__name__}' not supported for this "
                    "resource"
                )
            if parsed.statement.kind is QueryKind.PULL:
                return self._pull(request, parsed.statement, session)
            return self._push(parsed, parsed.statement, session)
        except HeadraceError as e:
            raise _placed(e, parsed.text, ()) from e.__cause__

    def print_topic(self, request: Request) -> PrintedTopic:
        parsed, _ = self._only_statement(request)
        if not isinstance(parsed.statement, ast.PrintTopic):
            raise StatementError("Only PRINT is answered here.", parsed.text)
        return PrintedTopic(self.world, parsed.statement)

    def _only_statement(self, request: Request) -> tuple[ParsedStatement, Session]:
        session = Session(dict(request.properties), dict(request.variables))
        session.check()
        self._admit(request.after_command)
        statements = [s.text for s in split(request.text)]
        if len(statements) != 1:
            raise StatementError(
                f"Expected exactly one KSQL statement; found {len(statements)} instead",
                request.text,
            )
        try:
            return self._parse(statements[0], session), session
        except HeadraceError as e:
            raise _placed(e, statements[0], ()) from e.__cause__

    def _pull(self, request: Request, query: ast.Query, session: Session) -> PullAnswer:
        settings = session.settings(self.world.settings)
        if not settings.flag("ksql.query.pull.enable"):
            raise StatementError(
                "Pull queries are disabled. See https://cnfl.io/queries for more info.\n"
                "Add EMIT CHANGES if you intended to issue a push query.\n"
                "Please set ksql.query.pull.enable=true to enable this feature.\n"
            )
        catalog = self.catalog
        plan = plan_pull(query, catalog, self.texts(session))
        answer = self.pulls.answer(plan, settings)
        if plan.source.is_table:
            reader = self.pulls.reader(plan.source)
            self.prepared.learn(request, query, plan, catalog, settings, reader)
        return answer

    def answer_now(self, request: Request) -> PullAnswer | None:
        """The answer to a lookup whose like was answered before, if its rows are at hand."""
        return self.prepared.answer(request, self.catalog)

    def _push(self, parsed: ParsedStatement, query: ast.Query, session: Session) -> PushQuery:
        self.pushes.admit(self.world.settings.number("ksql.max.push.queries"))
        planned = plan_push(query, self.catalog, self.texts(session))
        settings = session.settings(self.world.settings)
        scalable = is_scalable(query, self.catalog, settings)
        return self.pushes.start(self.world, parsed.text, planned, settings, query.limit, scalable)

    def close_query(self, query_id: str) -> bool:
        push = self.pushes.find(query_id)
        if push is not None:
            push.close()
        return push is not None

    def insert(self, target: str, properties: Mapping[str, object]) -> RowStream:
        session = Session(dict(properties))
        session.check()
        self._admit()
        return self.inserts.stream(target, self.catalog, session.settings(self.world.settings))

    # ------------------------------------------------------------------ about the server

    def info(self) -> ServerInfo:
        return ServerInfo(
            __version__,
            self.world.cluster_id,
            self.world.service_id,
            addresses={part: without_login(url) for part, url in self.addresses.items()},
        )

    def health(self) -> Health:
        """Answers at once, from what was found out in the background."""
        return self.watch.health()

    def degraded(self) -> Mapping[str, str]:
        """By query, or command that makes none: what cannot run now, and why."""
        return telling.degraded(self)

    def is_ready(self) -> bool:
        """Whether every query was started, here or, if this server follows, on another. One that
        fails counts: it is for people to mend, through this server."""
        if self._terminated:
            return False
        if not self.queries.active:
            return self.heartbeat.holding() is not None and not self.heartbeat.holds()
        known = self.queries.all_known()
        return all(query.state is not QueryState.UNRESPONSIVE for query in known)

    def cluster_status(self) -> ClusterStatus:
        return telling.cluster_status(self)

    def command_status(self, command_id: str) -> CommandStatus | None:
        return self.statuses.get(command_id)

    def command_statuses(self) -> Mapping[str, CommandStatus]:
        return dict(self.statuses)

    def check_property(self, name: str) -> None:
        check_editable(name)

    def terminate_cluster(self, delete_topics: Sequence[str]) -> Sequence[Entity]:
        """Ends every query and forgets everything; from then on no statement is taken.

        `delete_topics` are names or patterns of topics that queries wrote.
        """
        with self._changing:
            self._admit()
            sinks = [source.topic for source in self.catalog.sources() if source.is_sink]
            given = {"deleteTopicList": sorted(matching(delete_topics, sinks))}
            command = self.log.append(Command(str(_TERMINATE), "TERMINATE CLUSTER;", given))
            self._await_command(command.sequence - 1, self.world.kafka.timeout)
            self._next_sequence = command.sequence + 1
            self._end(command)
        if not self.queries.active:
            self.heartbeat.await_applied(command.sequence, HOLDER_SECONDS)
        return [
            CurrentStatus(
                "TERMINATE CLUSTER;",
                _TERMINATE,
                self.statuses[str(_TERMINATE)],
                command.sequence,
            )
        ]

    def _end(self, command: Command) -> None:
        """Forgets everything; outside, too, if this is the server that runs the queries."""
        self._terminated = self._following.is_alive
        holds = self.queries.active and self.heartbeat.holds()
        named = command.settings["deleteTopicList"]
        deleted = named if isinstance(named, list) else []
        self.pushes.close()
        for query in list(self.queries):
            self.queries.remove(query.id)
            if holds:
                forget(self.world.spark, query.checkpoint)
        for source in list(self.catalog.sources()):
            self.pulls.forget(source)
            if holds and source.is_sink and source.topic in deleted:
                self.world.admin.delete(source.topic)
        self.catalog = Catalog()
        if holds:
            self.heartbeat.await_all(command.sequence, HOLDER_SECONDS)
            self.world.admin.delete(self.log.topic)
        self.statuses[str(_TERMINATE)] = CommandStatus(CommandState.SUCCESS, "Cluster terminated.")


_TERMINATE = CommandId("cluster", "TerminateCluster", "terminate")


class _Terminated(HeadraceError):
    error_code = 50304


class _CommandNotDone(HeadraceError):
    error_code = 50301


def _recorded(settings: Mapping[str, str]) -> dict[str, object]:
    """What a command must remember: what changes its meaning, and never a secret."""
    return {
        k: v
        for k, v in settings.items()
        if k.startswith(("ksql.", "processing."))
        and "registry" not in k
        and "auth" not in k
        and not is_secret(k)
    }


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _status(change: Change) -> CommandStatus:
    started = change.starts
    return CommandStatus(CommandState.SUCCESS, change.message, started.id if started else None)


def _placed(error: HeadraceError, text: str, entities: Sequence[Entity]) -> HeadraceError:
    """The error with the statement it is about, and the answers of those before it."""
    if isinstance(error, StatementError):
        error.statement = error.statement or text
    error.entities = tuple(entities)  # type: ignore[attr-defined]
    return error
