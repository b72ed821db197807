"""Applies changes: each is planned, provisioned, appended to the command log, then applied.

Other servers of the service append, too. A command whose author had not seen all that came before
it is void, and its statement is planned anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.catalog.command_log import Command, OutcomeUnknownError
from headrace.engine.cluster.applied_commands import AppliedCommands
from headrace.engine.cluster.standby import Standby
from headrace.engine.queries.program import Starts
from headrace.engine.queries.starting_offsets import starting_offsets
from headrace.engine.statements.capacity import check_capacity
from headrace.engine.statements.changes import Change, Intent, Nothing, plan_change
from headrace.engine.statements.metastore import TERMINATE, Metastore, status_of
from headrace.engine.statements.planning_facts import LiveFacts
from headrace.engine.statements.provision import Provisioned
from headrace.engine.statements.replay import source_to_json
from headrace.engine.statements.request_session import Session
from headrace.kafka.topic_patterns import matching
from headrace.model.entities import CurrentStatus, Entity, WarningEntity
from headrace.model.errors import UnavailableError
from headrace.model.settings import Settings, is_secret
from headrace.sql.parser import ParsedStatement
from headrace.sql.printer import format_statement

# How often a statement is planned anew because other servers' statements came first.
ATTEMPTS = 20


@dataclass(frozen=True)
class ChangeWriter:
    """Makes changes, one at a time."""

    _metastore: Metastore
    _commands: AppliedCommands
    _standby: Standby
    _facts: LiveFacts

    def change(self, parsed: ParsedStatement, session: Session) -> Entity:
        """Plans, provisions, records and applies one change; a failure leaves nothing behind."""
        with self._commands.lock:
            provisioned = Provisioned(self._metastore.env)
            before = self._topics()
            try:
                entity = self._attempts(parsed, session, provisioned)
            except OutcomeUnknownError:
                raise  # it may count: what was made for it stays
            except BaseException:  # also one that ends the thread: nothing is left behind
                provisioned.undo(keep=self._topics() - before)
                raise
        if isinstance(entity, CurrentStatus):
            self._standby.wait_for_holder(entity.command_sequence_number)
        return entity

    def terminate(self, delete_topics: Sequence[str]) -> CurrentStatus:
        """Terminates every query and empties the catalog; no statement is accepted afterwards.

        `delete_topics` are names or patterns of topics that queries wrote.
        """
        commands, metastore = self._commands, self._metastore
        with commands.lock:
            commands.admit()
            sinks = [source.topic for source in metastore.catalog.sources() if source.is_sink]
            given = {"deleteTopicList": sorted(matching(delete_topics, sinks))}
            command = commands.log.append(Command(str(TERMINATE), "TERMINATE CLUSTER;", given))
            commands.wait_for(command.sequence - 1)
            commands.mark_processed(command.sequence)
            metastore.end(command)
        self._standby.wait_for_holder(command.sequence)
        status = metastore.statuses[str(TERMINATE)]
        return CurrentStatus("TERMINATE CLUSTER;", TERMINATE, status, command.sequence)

    def _topics(self) -> set[str]:
        return {source.topic for source in self._metastore.catalog.sources()}

    def _attempts(
        self, parsed: ParsedStatement, session: Session, provisioned: Provisioned
    ) -> Entity:
        commands, metastore = self._commands, self._metastore
        for _ in range(ATTEMPTS):
            settings = session.texts(metastore.env.settings)
            intent = Intent(parsed.text, settings, commands.position, metastore.plan_of)
            change = plan_change(parsed.statement, metastore.catalog, intent, self._facts)
            check_capacity(change, metastore.env.settings)
            if change.nothing is not None:
                return self._nothing_done(change)
            starts: Starts = {}
            if change.creates is not None:
                provisioned.provision(change.creates, change.topic)
            if change.starts is not None:
                planned, given = change.starts.planned, Settings(change.starts.settings)
                starts = starting_offsets(metastore.env, planned.node, given, planned.start_from)
            command = commands.log.append(self._command(change, starts))
            if command.sequence == commands.position:
                commands.mark_valid(command.sequence)
                provisioned.settle()
                metastore.apply(change, starts)
                metastore.statuses[str(change.command)] = status_of(change)
            else:  # others wrote, too: what counts is applied as it is read
                commands.wait_for(command.sequence)
                if commands.is_void(command.sequence):
                    continue
                provisioned.settle()
            return _answer(change, command.sequence)
        raise UnavailableError("Other servers change too much at the same time. Try again.")

    def _nothing_done(self, change: Change) -> Entity:
        """The answer to a statement that changes nothing, which is not worth a command."""
        if change.nothing is Nothing.WARNING:
            return WarningEntity(change.text, change.message)
        self._metastore.statuses[str(change.command)] = status_of(change)
        return _answer(change, self._commands.last)

    def _command(self, change: Change, starts: Starts) -> Command:
        return Command(
            id=str(change.command),
            statement=format_statement(change.statement),
            settings=recorded(change.settings),
            query_id=change.starts.id if change.starts else None,
            starts={topic: dict(offsets) for topic, offsets in starts.items()},
            number=self._commands.position,
            after=self._commands.last,
            text=change.text,
            creates=source_to_json(change.creates) if change.creates is not None else None,
        )


def _answer(change: Change, sequence: int) -> CurrentStatus:
    return CurrentStatus(
        change.text, change.command, status_of(change), sequence, warnings=change.warnings
    )


def recorded(settings: Mapping[str, str]) -> dict[str, object]:
    """The settings that a command records: those that change its meaning, never a secret."""
    return {
        k: v
        for k, v in settings.items()
        if k.startswith(("ksql.", "processing."))
        and "registry" not in k
        and "auth" not in k
        and not is_secret(k)
    }
