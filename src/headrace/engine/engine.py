"""The engine: statements in, entities out; queries kept running; everything recovered at start."""

from __future__ import annotations

import logging
import re
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from headrace import __version__
from headrace.catalog.catalog import Catalog
from headrace.catalog.commands import Command, CommandLog, Unreadable
from headrace.engine import processing_log
from headrace.engine.changes import Change, Intent, NewQuery, is_change, plan_change
from headrace.engine.inserts import Inserts, RowStream
from headrace.engine.layouts import subject
from headrace.engine.outside import LiveOutside, PretendOutside
from headrace.engine.prepared import PreparedLookups
from headrace.engine.printing import PrintedTopic
from headrace.engine.provision import SIDES, Provisioned
from headrace.engine.pulling import PullAnswer, PullQueries
from headrace.engine.push import PushQuery, new_push_id
from headrace.engine.queries import PersistentQuery, QueryKeeper
from headrace.engine.running import Starts, answer_program, persistent_program, starting_offsets
from headrace.engine.session import Session
from headrace.engine.statements import answer
from headrace.engine.tailing import TableTails
from headrace.engine.world import World
from headrace.model.entities import (
    ClusterStatus,
    CommandId,
    CommandState,
    CommandStatus,
    CurrentStatus,
    Entity,
    Health,
    HostStatus,
    ServerInfo,
    TerminatedQuery,
    WarningEntity,
)
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.requests import Request
from headrace.model.settings import Settings, check_editable
from headrace.model.sources import Source
from headrace.plan import nodes as n
from headrace.plan.pull import plan_pull
from headrace.plan.query import plan_push
from headrace.plan.replace import starts_anew
from headrace.spark.checkpoint import take_over
from headrace.sql import ast
from headrace.sql.parser import ParsedStatement, parse, parse_statement, split
from headrace.sql.printer import format_statement
from headrace.sql.variables import substitute

LOG = logging.getLogger(__name__)


class Engine:
    """One per server. Statements that change something run one at a time."""

    def __init__(self, world: World, addresses: Mapping[str, str] | None = None) -> None:
        self.world = world
        self.addresses = dict(addresses or {})
        self.catalog = Catalog()
        self.log = CommandLog(
            world.kafka, world.service_id, world.settings.number("ksql.internal.topic.replicas")
        )
        self.queries = QueryKeeper(
            world.settings.number("ksql.query.retry.backoff.initial.ms") / 1000,
            world.settings.number("ksql.query.retry.backoff.max.ms") / 1000,
        )
        self.tails = TableTails(world.kafka, world.admin, world.data_dir / "tables")
        self.pulls = PullQueries(world, self.tails)
        self.prepared = PreparedLookups(self.tails)
        self.inserts = Inserts(world, self.tails.expect)
        self.pushes: dict[str, PushQuery] = {}
        self.processing_log = processing_log.LogWriter(world)
        self.statuses: dict[str, CommandStatus] = {}
        self._changing = threading.RLock()
        self._changed = threading.Condition(self._changing)
        self._next_sequence = 0
        self._terminated = False
        self._outside = LiveOutside(world)

    # ------------------------------------------------------------------ start and stop

    def open(self) -> None:
        """Replays the command log and starts every query where it stopped."""
        self.log.open()
        pending: dict[str, tuple[NewQuery, Starts]] = {}
        for command in self.log.replay():
            if isinstance(command, Unreadable):
                LOG.error(
                    "Record %d of the command log %s is passed over: %s",
                    command.offset,
                    self.log.topic,
                    command.reason,
                )
                self._next_sequence = command.offset + 1
                continue
            self._next_sequence = command.sequence + 1
            try:
                self._replay(command, pending)
            except HeadraceError as e:
                LOG.error("Statement %s cannot be replayed: %s", command.statement, e)
        processing_log.create_topic(self.world)
        for query, starts in pending.values():
            self._start(query, starts)
        self.queries.open()
        made = processing_log.stream_statement(self.world)
        if made is not None:
            self.execute(Request(made))

    def close(self) -> None:
        for push in list(self.pushes.values()):
            push.close()
        self.tails.close()
        self.inserts.close()
        self.queries.close()
        self.processing_log.close()
        self.log.close()

    def _replay(self, command: Command, pending: dict[str, tuple[NewQuery, Starts]]) -> None:
        sequence = command.sequence
        statement = parse_statement(command.statement)
        settings = {k: _text(v) for k, v in command.settings.items() if v is not None}
        intent = Intent(command.statement, settings, sequence)
        change = plan_change(statement, self.catalog, intent, _Recorded(self._outside))
        self._take(change)
        for id_ in change.stops:
            pending.pop(id_, None)
        if change.starts is not None:
            pending[change.starts.id] = (change.starts, command.starts)
        self.statuses[command.id] = _status(change)

    # ------------------------------------------------------------------ statements

    def execute(self, request: Request) -> Sequence[Entity]:
        """Runs the statements of a request, all of which are checked before any is done."""
        session = Session(dict(request.properties), dict(request.variables))
        session.check()
        self._admit(request.after_command)
        statements = [s.text for s in split(request.text)]
        if len(statements) > 1:
            self._rehearse(statements, session.copy())
        entities: list[Entity] = []
        for text in statements:
            try:
                entity = self._run(self._parse(text, session), session)
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
        with self._changed:
            if not self._changed.wait_for(lambda: self._next_sequence > sequence, patience):
                raise _CommandNotDone(
                    "Timed out while waiting for a previous command to execute. command sequence "
                    f"number: {sequence}"
                )

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
            return None
        if isinstance(statement, ast.TerminateQuery):
            push = self._push_named(statement.query_id)
            if push is not None:
                push.close()
                return TerminatedQuery(parsed.text, push.id, was_terminated=True)
        if is_change(statement):
            return self.change(parsed, session)
        return answer(statement, parsed.text, self, session)

    def _push_named(self, query_id: str | None) -> PushQuery | None:
        wanted = (query_id or "").upper()
        return next((p for p in self.pushes.values() if p.id.upper() == wanted), None)

    def _intent(self, text: str, session: Session, sequence: int) -> Intent:
        return Intent(text, self.texts(session), sequence, self._plan_of)

    def _plan_of(self, query_id: str) -> n.Node | None:
        query = self.queries.get(query_id)
        return query.planned.node if query is not None else None

    # ------------------------------------------------------------------ changes

    def change(self, parsed: ParsedStatement, session: Session) -> Entity:
        """Plans, provisions, records and applies one change; a failure leaves nothing behind."""
        with self._changing:
            intent = self._intent(parsed.text, session, self._next_sequence)
            change = plan_change(parsed.statement, self.catalog, intent, self._outside)
            if change.done is not None:
                return WarningEntity(parsed.text, change.done)
            provisioned = Provisioned(self.world)
            starts: Starts = {}
            try:
                if change.creates is not None:
                    provisioned.provision(change.creates, change.topic)
                if change.starts is not None:
                    node = change.starts.planned.node
                    starts = starting_offsets(self.world, node, _settings(change.starts))
                sequence = self.log.append(self._command(change, starts))
            except BaseException:
                provisioned.undo()
                raise
            self._next_sequence = sequence + 1
            self._apply(change, starts)
            self.statuses[str(change.command)] = _status(change)
            self._changed.notify_all()
            return CurrentStatus(parsed.text, change.command, _status(change), sequence)

    def _command(self, change: Change, starts: Starts) -> Command:
        return Command(
            id=str(change.command),
            statement=format_statement(change.statement),
            settings=_recorded(change.settings),
            plan_version=n.PLAN_VERSION,
            query_id=change.starts.id if change.starts else None,
            starts={topic: dict(offsets) for topic, offsets in starts.items()},
        )

    def _apply(self, change: Change, starts: Starts) -> None:
        replaced = change.starts.id if change.starts is not None else None
        for id_ in change.stops:
            query = self.queries.remove(id_)
            if query is None:
                continue
            if id_ != replaced:
                self._forget(query)
            elif change.starts and starts_anew(query.planned.node, change.starts.planned.node):
                take_over(self.world.spark, query.checkpoint)
        before = self.catalog
        self._take(change)
        for source in before.sources():
            if self.catalog.source(source.name) is not source:
                self.pulls.forget(source)
        if change.starts is not None:
            self._start(change.starts, starts)
        for id_ in change.pauses:
            self.queries.pause(id_)
        for id_ in change.resumes:
            self.queries.resume(id_)
        if change.deletes_topic is not None:
            topic = change.deletes_topic.topic
            self.world.admin.delete(topic)
            for side in SIDES:
                name = subject(topic, side)
                if self.world.registry is not None and name in self.world.registry.subjects():
                    self.world.registry.delete_subject(name)

    def _take(self, change: Change) -> None:
        self.catalog = change.catalog
        if change.alters is not None:
            self.prepared = PreparedLookups(self.tails)
            altered = self.world.settings.override(dict([change.alters]))
            self.world = replace(self.world, settings=altered)

    def _start(self, query: NewQuery, starts: Starts) -> None:
        node = query.planned.node
        assert isinstance(node, n.Write)
        settings = _settings(query)
        checkpoint = f"{self.world.state_dir}/{self.world.service_id}/{query.id}"
        self.queries.add(
            PersistentQuery(
                id=query.id,
                statement=query.statement,
                planned=query.planned,
                build=lambda: persistent_program(
                    self.world, query.id, node, settings, starts, checkpoint
                ),
                checkpoint=checkpoint,
                overrides=query.settings,
            )
        )

    def _forget(self, query: PersistentQuery) -> None:
        """A terminated query's state is of no use to anyone."""
        if "://" not in query.checkpoint:
            shutil.rmtree(Path(query.checkpoint), ignore_errors=True)

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
            if parsed.statement.emit is None:
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
        most = self.world.settings.number("ksql.max.push.queries")
        if len(self.pushes) >= most:
            raise _TooManyPushQueries(
                f"Maximum number of push queries exceeded. Maximum concurrent push queries: {most}"
            )
        settings = session.settings(self.world.settings)
        planned = plan_push(query, self.catalog, self.texts(session))
        assert isinstance(planned.node, n.Answer)
        starts = starting_offsets(self.world, planned.node, settings)
        id_ = new_push_id()
        rows = answer_program(self.world, id_, planned.node, settings, starts)
        push = PushQuery(
            id_,
            parsed.text,
            planned.schema,
            planned.node.kind,
            rows,
            query.limit,
            self._push_ended,
            self.processing_log.write,
        )
        self.pushes[push.id] = push
        return push

    def _push_ended(self, push: PushQuery) -> None:
        self.pushes.pop(push.id, None)

    def close_query(self, query_id: str) -> bool:
        push = self.pushes.get(query_id)
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
            __version__, self.world.cluster_id, self.world.service_id, addresses=self.addresses
        )

    def health(self) -> Health:
        try:
            kafka = self.world.admin.exists(self.log.topic)
        except HeadraceError:
            kafka = False
        return Health({"metastore": True, "kafka": kafka, "commandRunner": True})

    def cluster_status(self) -> ClusterStatus:
        host = self.addresses.get("server", "localhost")
        return ClusterStatus({host: HostStatus(True, int(time.time() * 1000))})

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
            self._terminated = True
            for push in list(self.pushes.values()):
                push.close()
            for query in list(self.queries):
                self.queries.remove(query.id)
                self._forget(query)
            for source in list(self.catalog.sources()):
                self.pulls.forget(source)
                if source.is_sink and any(re.fullmatch(p, source.topic) for p in delete_topics):
                    self.world.admin.delete(source.topic)
            self.catalog = Catalog()
            self.world.admin.delete(self.log.topic)
            status = CommandStatus(CommandState.SUCCESS, "Cluster terminated.")
            self.statuses[str(_TERMINATE)] = status
        return [CurrentStatus("TERMINATE CLUSTER;", _TERMINATE, status, self._next_sequence)]


_TERMINATE = CommandId("cluster", "TerminateCluster", "terminate")


class _Terminated(HeadraceError):
    error_code = 50304


class _CommandNotDone(HeadraceError):
    error_code = 50301


class _TooManyPushQueries(StatementError):
    error_code = 40003


class _Recorded:
    """For replay: statements in the log are resolved already."""

    def __init__(self, outside: LiveOutside) -> None:
        self._outside = outside

    def resolve(self, statement: ast.Statement, settings: Mapping[str, str]) -> ast.Statement:
        return statement

    def check_sink(self, sink: Source) -> None:
        pass

    def partitions(self, topic: str) -> int | None:
        return self._outside.partitions(topic) or 1


def _settings(query: NewQuery) -> Settings:
    return Settings(query.settings)


def _recorded(settings: Mapping[str, str]) -> dict[str, object]:
    """What a command must remember: what changes its meaning, and never a secret."""
    return {
        k: v
        for k, v in settings.items()
        if k.startswith(("ksql.", "processing.")) and "registry" not in k and "auth" not in k
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
