"""The metastore: catalog, settings and command statuses, as the command log makes them.

All servers of a service apply the same commands in the same order. Only the one that runs the
queries touches what they share: topics, schemas and checkpoints.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from headrace.catalog.catalog import Catalog
from headrace.catalog.command_log import Command
from headrace.engine.cluster.applied_commands import AppliedCommands
from headrace.engine.cluster.standby import Standby
from headrace.engine.environment import Environment
from headrace.engine.queries.persistent import PersistentQuery, QueryKeeper
from headrace.engine.queries.program import Starts
from headrace.engine.queries.push import PushQueries
from headrace.engine.queries.start import Starting
from headrace.engine.statements.changes import Change
from headrace.engine.statements.provision import delete_topic
from headrace.engine.statements.replay import Replay, reason_for
from headrace.engine.statements.request_session import setting_texts
from headrace.engine.tables.pull_service import PullService
from headrace.model.entities import CommandId, CommandState, CommandStatus
from headrace.model.errors import HeadraceError
from headrace.plan.nodes import Node
from headrace.plan.query import Planned
from headrace.plan.replace import starts_anew
from headrace.spark.runtime.checkpoint import forget, take_over

LOG = logging.getLogger(__name__)

TERMINATE = CommandId("cluster", "TerminateCluster", "terminate")


class Metastore:
    """What the commands applied so far have made. `is_following` says whether commands come one by
    one as they are written, not all at once as a server starts; `log` takes entries of the
    processing log; `forget_group` deletes the consumer group of a query, soon."""

    def __init__(
        self,
        env: Environment,
        commands: AppliedCommands,
        standby: Standby,
        queries: QueryKeeper,
        pushes: PushQueries,
        pulls: PullService,
        log: Callable[[Sequence[str]], None],
        is_following: Callable[[], bool],
        forget_group: Callable[[str], None],
    ) -> None:
        self.env = env
        self.catalog = Catalog()
        self.statuses: dict[str, CommandStatus] = {}
        self.unplanned: dict[str, str] = {}  # commands by their ids, and why
        self.log_id = ""  # the id of the command log's topic
        self._commands = commands
        self._standby = standby
        self._queries = queries
        self._pushes = pushes
        self._pulls = pulls
        self._log = log
        self._is_following = is_following
        self._forget_group = forget_group

    def plan_of(self, query_id: str) -> Node | None:
        """The plan of a query that runs."""
        query = self._queries.get(query_id)
        return query.planned.node if query is not None and query.planned is not None else None

    # ------------------------------------------------------------------ commands of the log

    def replay(self, command: Command) -> None:
        """Applies a command of the log, of whichever server."""
        if command.id == str(TERMINATE):
            self.end(command)
            return
        replay = Replay(command, setting_texts(command.settings))
        try:
            change = replay.plan(self.catalog)
        except Exception as e:  # whatever it is: a command that counts must not stop the log
            self._keep(replay, e)
            return
        self.statuses[command.id] = status_of(change)
        try:
            self.apply(change, command.starts)
        except HeadraceError as e:
            LOG.error("What %s asks for was not done to the end: %s", command.statement, e)

    def _keep(self, replay: Replay, failure: Exception) -> None:
        """Keeps a valid command that cannot be planned, with the reason."""
        command = replay.command
        reason = reason_for(command.statement, failure)
        known = isinstance(failure, HeadraceError)
        LOG.error("Command %s: %s", command.id, reason, exc_info=None if known else failure)
        self.statuses[command.id] = CommandStatus(CommandState.ERROR, reason)
        try:
            self.catalog = replay.keep(self.catalog)
        except Exception as e:  # whatever it is: a command that counts must not stop the log
            LOG.error("Nothing of command %s is kept: %s", command.id, e)
            self.unplanned[command.id] = reason
            return
        if command.query_id is None:
            self.unplanned[command.id] = reason
        else:
            self._queries.remove(command.query_id)
            self._start(
                command.query_id,
                replay.text,
                lambda: replay.plan_query(self.catalog),
                replay.settings,
                command.starts,
            )

    # ------------------------------------------------------------------ changes

    def apply(self, change: Change, starts: Starts) -> None:
        """Applies a change; the server that runs the queries does so for the whole service."""
        holds = self._standby.runs_queries()
        before = self.catalog
        self._take(change)
        self.unplanned.pop(str(replace(change.command, action="create")), None)
        replaced = change.starts.id if change.starts is not None else None
        for id_ in change.stops:
            query = self._queries.remove(id_)
            if query is None or not holds:
                continue
            if id_ != replaced:
                self._forget(query)
            elif change.starts and (
                query.planned is None or starts_anew(query.planned.node, change.starts.planned.node)
            ):
                take_over(self.env.spark, query.checkpoint)
        if self._is_following():  # what is replayed was forgotten then
            for source in before.sources():
                if self.catalog.source(source.name) is not source:
                    self._pulls.forget(source)
        if change.starts is not None:
            new = change.starts
            self._start(new.id, new.statement, lambda: new.planned, new.settings, starts)
        for id_ in change.pauses:
            self._queries.pause(id_)
        for id_ in change.resumes:
            self._queries.resume(id_)
        if change.deletes_topic is not None and holds:
            delete_topic(self.env, change.deletes_topic.topic)

    def _take(self, change: Change) -> None:
        self.catalog = change.catalog
        if change.alters is not None:
            self._pulls.forget_prepared()
            altered = self.env.settings.override(dict([change.alters]))
            self.env = replace(self.env, settings=altered)

    def _start(
        self,
        id_: str,
        statement: str,
        plan: Callable[[], Planned],
        settings: Mapping[str, str],
        starts: Starts,
    ) -> None:
        starting = Starting(id_, statement, settings, starts, self.log_id, self._log)
        self._queries.add(starting.query(lambda: self.env, plan))

    def _forget(self, query: PersistentQuery) -> None:
        """Deletes what a query that has ended leaves behind."""
        forget(self.env.spark, query.checkpoint)
        self._forget_group(query.id)

    # ------------------------------------------------------------------ the end

    def end(self, command: Command) -> None:
        """Empties the catalog; the server that runs the queries does so for the whole service."""
        self._commands.terminated = self._is_following()
        holds = self._standby.runs_queries()
        named = command.settings["deleteTopicList"]
        deleted = named if isinstance(named, list) else []
        self._pushes.close()
        for query in list(self._queries):
            self._queries.remove(query.id)
            if holds:
                self._forget(query)
        for source in list(self.catalog.sources()):
            self._pulls.forget(source)
            if holds and source.is_sink and source.topic in deleted:
                self.env.admin.delete(source.topic)
        self.catalog = Catalog()
        if holds:
            self._standby.wait_for_all(command.sequence)
            self.env.admin.delete(self._commands.log.topic)
        self.statuses[str(TERMINATE)] = CommandStatus(CommandState.SUCCESS, "Cluster terminated.")


def status_of(change: Change) -> CommandStatus:
    started = change.starts
    return CommandStatus(CommandState.SUCCESS, change.message, started.id if started else None)
