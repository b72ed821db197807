"""Runs requests: their statements in order, and their SELECT."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from headrace.engine.cluster.applied_commands import AppliedCommands
from headrace.engine.cluster.standby import Standby
from headrace.engine.queries.push import PushQueries, PushQuery
from headrace.engine.statements.assertions import eventually
from headrace.engine.statements.capacity import check_capacity
from headrace.engine.statements.change_writer import ChangeWriter
from headrace.engine.statements.changes import Intent, is_change, plan_change
from headrace.engine.statements.handling import Queries, StatementContext, answer
from headrace.engine.statements.inserts import Inserts, RowStream
from headrace.engine.statements.metastore import Metastore
from headrace.engine.statements.planning_facts import RehearsedFacts
from headrace.engine.statements.print_topic import PrintedTopic
from headrace.engine.statements.request_session import Session
from headrace.engine.tables.pull import PullAnswer
from headrace.engine.tables.pull_service import PullService
from headrace.model.entities import CurrentStatus, Entity, TerminatedQuery
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.requests import QueryKind, Request
from headrace.model.settings import Settings
from headrace.plan.query import plan_push
from headrace.plan.scalable import is_scalable
from headrace.sql import ast
from headrace.sql.parser import ParsedStatement, split


@dataclass(frozen=True)
class RequestRunner:
    """Runs the requests of clients."""

    _metastore: Metastore
    _commands: AppliedCommands
    _standby: Standby
    _queries: Queries
    _pushes: PushQueries
    _pulls: PullService
    _inserts: Inserts
    _writer: ChangeWriter

    @property
    def _server(self) -> Settings:
        """The settings of the server, which ALTER SYSTEM changes."""
        return self._metastore.env.settings

    # ------------------------------------------------------------------ statements

    def steps(self, request: Request) -> Generator[float, None, Sequence[Entity]]:
        """Runs the statements of a request, all of which are checked before any is done.

        Yields how long to wait before it goes on; whoever asked may do so without a thread.
        """
        session = self._admitted(request)
        self._standby.catch_up()
        statements = [s.text for s in split(request.text)]
        if len(statements) > 1:
            self._rehearse(statements, session.copy())
        entities: list[Entity] = []
        for text in statements:
            try:
                parsed = session.parse(text, self._server)
                entity = yield from eventually(partial(self._run, parsed, session))
            except HeadraceError as e:
                raise _placed(e, text, entities) from e.__cause__
            if entity is not None:
                entities.append(entity)
        return entities

    def terminate_cluster(self, delete_topics: Sequence[str]) -> Sequence[CurrentStatus]:
        return [self._writer.terminate(delete_topics)]

    def _admitted(self, request: Request) -> Session:
        session = Session(dict(request.properties), dict(request.variables))
        session.check(self._server)
        self._admit(request.after_command)
        return session

    def _admit(self, after: int | None = None) -> None:
        timeout = self._server.number("ksql.server.command.response.timeout.ms") / 1000
        self._commands.admit(after, timeout)

    def _rehearse(self, statements: Sequence[str], session: Session) -> None:
        """Plans all statements against a copy of the catalog, and raises what they would raise."""
        metastore = self._metastore
        catalog, facts = metastore.catalog, RehearsedFacts(metastore.env)
        for i, text in enumerate(statements):
            try:
                parsed = session.parse(text, self._server)
                if session.takes(parsed.statement):
                    continue
                if is_change(parsed.statement):
                    settings, place = session.texts(self._server), self._commands.position + i
                    intent = Intent(parsed.text, settings, place, metastore.plan_of)
                    change = plan_change(parsed.statement, catalog, intent, facts)
                    check_capacity(change, self._server)
                    facts.pretend(change)
                    catalog = change.catalog
            except HeadraceError as e:
                raise _placed(e, text, []) from e.__cause__

    def _run(self, parsed: ParsedStatement, session: Session) -> Entity | None:
        statement = parsed.statement
        if session.takes(statement):
            session.settings(self._server)  # which refuses what is beyond a limit
            return None
        if isinstance(statement, ast.TerminateQuery):
            push = self._pushes.find(statement.query_id or "")
            if push is not None:
                push.close()
                return TerminatedQuery(parsed.text, push.id, was_terminated=True)
        if is_change(statement):
            return self._writer.change(parsed, session)
        known = self._metastore
        context = StatementContext(
            parsed.text,
            session,
            known.catalog,
            known.env,
            self._queries,
            self._inserts,
            known.unplanned,
        )
        return answer(statement, context)

    # ------------------------------------------------------------------ answers that stream

    def query(self, request: Request) -> PushQuery | PullAnswer:
        """Starts the one SELECT of a request, push or pull as its text says."""
        known = self._pulls.answer_known(request, self._metastore.catalog)
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
                settings, texts = session.settings(self._server), session.texts(self._server)
                catalog = self._metastore.catalog
                return self._pulls.answer(request, parsed.statement, catalog, settings, texts)
            return self._push(parsed.text, parsed.statement, session, request.continuation)
        except HeadraceError as e:
            raise _placed(e, parsed.text, ()) from e.__cause__

    def answer_now(self, request: Request) -> PullAnswer | None:
        return self._pulls.answer_now(request, self._metastore.catalog)

    def print_topic(self, request: Request) -> PrintedTopic:
        parsed, _ = self._only_statement(request)
        if not isinstance(parsed.statement, ast.PrintTopic):
            raise StatementError("Only PRINT is answered here.", parsed.text)
        return PrintedTopic(self._metastore.env, parsed.statement)

    def insert(self, target: str, properties: Mapping[str, object]) -> RowStream:
        session = self._admitted(Request("", properties))
        return self._inserts.stream(target, self._metastore.catalog, session.settings(self._server))

    def _only_statement(self, request: Request) -> tuple[ParsedStatement, Session]:
        session = self._admitted(request)
        statements = [s.text for s in split(request.text)]
        if len(statements) != 1:
            raise StatementError(
                f"Expected exactly one KSQL statement; found {len(statements)} instead",
                request.text,
            )
        try:
            return session.parse(statements[0], self._server), session
        except HeadraceError as e:
            raise _placed(e, statements[0], ()) from e.__cause__

    def _push(
        self, text: str, query: ast.Query, session: Session, continuation: str | None
    ) -> PushQuery:
        env, catalog = self._metastore.env, self._metastore.catalog
        self._pushes.admit(env.settings.number("ksql.max.push.queries"))
        settings = session.settings(env.settings)
        planned = plan_push(query, catalog, session.texts(env.settings))
        scalable = is_scalable(query, catalog, settings)
        return self._pushes.start(env, text, planned, settings, query.limit, scalable, continuation)


def _placed(error: HeadraceError, text: str, entities: Sequence[Entity]) -> HeadraceError:
    """The error with the statement it is about, and the answers of those before it."""
    if isinstance(error, StatementError):
        error.statement = error.statement or text
    error.entities = tuple(entities)  # type: ignore[attr-defined]
    return error
