"""Plans the change of a statement against a catalog, to be applied later or not at all.

Planning a statement gives a `Change`: the catalog as it would be, and what must happen outside
(topics, schemas, queries) to make it true. So a request of several statements is checked whole
before anything is done, and a rejected statement leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Protocol, TypeVar

from headrace.catalog.catalog import Catalog, QueryRecord
from headrace.engine.statements.resolve import Resolved
from headrace.model.entities import CommandId
from headrace.model.errors import StatementError
from headrace.model.settings import Settings, canonical, check_editable, is_on, shown
from headrace.model.sources import Source
from headrace.plan.clauses.sink import TopicOptions, topic_options
from headrace.plan.language.binder import resolve_type
from headrace.plan.language.catalog_view import already_exists, alternatives
from headrace.plan.nodes import Node
from headrace.plan.query import Planned, plan_create_as, plan_insert_select
from headrace.plan.replace import check_query_upgrade, check_source_upgrade, mixed_forms
from headrace.plan.sources.ddl import plan_alter_source, plan_create_source
from headrace.plan.sources.properties import AS_SELECT, DECLARED, with_clause
from headrace.plan.sources.wrapping import without_effect
from headrace.sql import ast
from headrace.sql.printer import format_statement


class PlanningFacts(Protocol):
    """What planning a change needs to know of topics and the schema registry."""

    def resolve(
        self, statement: ast.Statement, settings: Mapping[str, str], replaced: Source | None
    ) -> Resolved:
        """The statement with what it leaves to the schema registry written out; `replaced` is the
        source whose place it takes."""

    def check_sink(self, sink: Source) -> None:
        """Refuses a sink that does not fit the schemas which its statement names."""

    def check_query(self, query: NewQuery) -> None:
        """Refuses a query that could not keep what its settings promise."""

    def partitions(self, topic: str) -> int | None: ...

    def has_records(self, topic: str) -> bool: ...


@dataclass(frozen=True)
class Intent:
    """A statement to be planned: its text, the settings in force, the next query's number, and
    the plans of the queries that run."""

    text: str
    settings: Mapping[str, str]
    sequence: int
    plan_of: Callable[[str], Node | None] = lambda query_id: None


@dataclass(frozen=True)
class NewQuery:
    id: str
    statement: str
    planned: Planned
    settings: Mapping[str, str]


class Nothing(Enum):
    """How a statement that changes nothing is answered, by its kind, as in ksqlDB."""

    SUCCESS = auto()
    WARNING = auto()


@dataclass(frozen=True)
class Change:
    """A planned change. `nothing`: it has no effect, and `message` says why that is fine.
    `warnings` are for the sender of the statement."""

    command: CommandId
    statement: ast.Statement
    text: str
    message: str
    catalog: Catalog
    creates: Source | None = None  # its topic (see `topic`) and schemas are provisioned
    topic: TopicOptions | None = None
    starts: NewQuery | None = None
    stops: tuple[str, ...] = ()
    pauses: tuple[str, ...] = ()
    resumes: tuple[str, ...] = ()
    deletes_topic: Source | None = None
    alters: tuple[str, str] | None = None  # a setting of the server, and its new value
    nothing: Nothing | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


S = TypeVar("S", bound=ast.Statement)
Planner = Callable[[ast.Statement, Catalog, Intent], Change]
_PLANNERS: dict[type[ast.Statement], Planner] = {}


def changes(
    *kinds: type[S],
) -> Callable[[Callable[[S, Catalog, Intent], Change]], Callable[[S, Catalog, Intent], Change]]:
    """Declares how a kind of statement is planned as a change."""

    def declare(
        planner: Callable[[S, Catalog, Intent], Change],
    ) -> Callable[[S, Catalog, Intent], Change]:
        for kind in kinds:
            _PLANNERS[kind] = planner  # type: ignore[assignment]
        return planner

    return declare


def is_change(statement: ast.Statement) -> bool:
    return type(statement) in _PLANNERS


def planned_kinds() -> frozenset[type[ast.Statement]]:
    return frozenset(_PLANNERS)


def plan_change(
    statement: ast.Statement, catalog: Catalog, intent: Intent, facts: PlanningFacts
) -> Change:
    resolved = facts.resolve(statement, intent.settings, _replaced(statement, catalog))
    view = replace(catalog, topic_partitions=facts.partitions)
    change = _PLANNERS[type(statement)](resolved.statement, view, intent)
    if change.creates is not None:
        _check_forms(catalog.source(change.creates.name), change.creates, facts)
        if change.creates.is_sink:
            facts.check_sink(change.creates)
    if change.starts is not None:
        facts.check_query(change.starts)
    return replace(change, warnings=(*resolved.warnings, *change.warnings))


def _replaced(statement: ast.Statement, catalog: Catalog) -> Source | None:
    """The source whose place a statement takes."""
    if isinstance(statement, ast.CreateSource | ast.CreateAsSelect) and statement.or_replace:
        return catalog.source(statement.name)
    return None


def _check_forms(existing: Source | None, new: Source, facts: PlanningFacts) -> None:
    """Checks that records of one topic keep one form when a source is replaced or altered."""
    mixed = mixed_forms(existing, new) if existing is not None else None
    if mixed is not None and facts.has_records(new.topic):
        raise StatementError(f"Cannot upgrade data source: {mixed}")


def _kind(source: Source) -> str:
    return source.kind.value.lower()


@changes(ast.CreateStream, ast.CreateTable)
def _create(statement: ast.CreateSource, catalog: Catalog, intent: Intent) -> Change:
    kind = statement.source_kind
    command = CommandId(kind.value.lower(), statement.name, "create")
    existing = catalog.source(statement.name)
    if existing is not None and statement.if_not_exists:
        return _exists_already(command, statement, catalog, intent, existing)
    source = plan_create_source(statement, catalog, intent.settings)
    if existing is not None:
        if not statement.or_replace:
            raise StatementError(already_exists(kind, f"'{statement.name}'", existing))
        check_source_upgrade(existing, source)
    source = replace(source, statement=intent.text)
    clause = with_clause(statement.properties, DECLARED)
    partitions = catalog.partitions(source.topic)
    given = topic_options(clause, None)
    if partitions is None and given.partitions is None:
        raise StatementError(
            f"Topic '{source.topic}' does not exist. If you want to create a new topic for the "
            "stream/table please re-run the statement providing the required 'PARTITIONS' "
            "configuration in the WITH clause (and optionally 'REPLICAS'). For example: "
            + _with_partitions(statement)
        )
    return Change(
        command,
        statement,
        intent.text,
        f"{kind.value.capitalize()} created",
        catalog.with_source(source),
        creates=source,
        topic=given,
        settings=intent.settings,
        warnings=without_effect(clause, source),
    )


def _with_partitions(statement: ast.CreateSource) -> str:
    more = (*statement.properties, ("PARTITIONS", ast.IntegerLiteral(2)))
    return format_statement(replace(statement, properties=more))


def _exists_already(
    command: CommandId,
    statement: ast.CreateSource | ast.CreateAsSelect,
    catalog: Catalog,
    intent: Intent,
    existing: Source,
) -> Change:
    """The answer to IF NOT EXISTS."""
    why = already_exists(statement.source_kind, _quoted(statement.name), existing) + "."
    return _nothing(command, statement, catalog, intent, why, Nothing.WARNING)


@changes(ast.CreateStreamAsSelect, ast.CreateTableAsSelect)
def _create_as(statement: ast.CreateAsSelect, catalog: Catalog, intent: Intent) -> Change:
    command = CommandId(statement.source_kind.value.lower(), statement.name, "create")
    existing = catalog.source(statement.name)
    if existing is not None and statement.if_not_exists:
        return _exists_already(command, statement, catalog, intent, existing)
    stops = tuple(q.id for q in catalog.writers(statement.name) if q.creates_sink)
    if stops and not is_on(intent.settings, "ksql.create.or.replace.enabled"):
        statement = replace(statement, or_replace=False)
    planned = plan_create_as(statement, catalog, intent.settings)
    assert planned.sink is not None
    sink = replace(planned.sink, statement=intent.text)
    prefix = "CTAS" if sink.is_table else "CSAS"
    query_id = f"{prefix}_{statement.name}_{intent.sequence}"
    if stops:  # the query goes on under its name, and with its state
        query_id = stops[0]
        old = intent.plan_of(query_id)
        if old is not None:
            check_query_upgrade(old, planned.node)
    record = QueryRecord(query_id, intent.text, planned.sources, sink.name, creates_sink=True)
    return Change(
        command,
        statement,
        intent.text,
        f"Created query with ID {query_id}",
        catalog.with_source(sink).with_query(record),
        creates=sink,
        topic=planned.topic,
        starts=NewQuery(query_id, intent.text, planned, intent.settings),
        stops=stops,
        settings=intent.settings,
        warnings=without_effect(with_clause(statement.properties, AS_SELECT), sink),
    )


@changes(ast.InsertInto)
def _insert_into(statement: ast.InsertInto, catalog: Catalog, intent: Intent) -> Change:
    planned = plan_insert_select(statement, catalog, intent.settings)
    query_id = _insert_id(statement, intent)
    if query_id in catalog.queries:
        raise StatementError(f"Query ID '{query_id}' already exists.")
    record = QueryRecord(query_id, intent.text, planned.sources, statement.target)
    return Change(
        CommandId("stream", statement.target, "create"),
        statement,
        intent.text,
        f"Created query with ID {query_id}",
        catalog.with_query(record),
        starts=NewQuery(query_id, intent.text, planned, intent.settings),
        settings=intent.settings,
    )


def _insert_id(statement: ast.InsertInto, intent: Intent) -> str:
    given = {name.upper(): literal for name, literal in statement.properties}
    if "QUERY_ID" in given:
        return str(given["QUERY_ID"].value).upper()
    return f"INSERTQUERY_{intent.sequence}"


@changes(ast.DropStream, ast.DropTable)
def _drop(statement: ast.DropSource, catalog: Catalog, intent: Intent) -> Change:
    wanted = statement.source_kind
    kind = wanted.value.lower()
    command = CommandId(kind, statement.name, "drop")
    source = catalog.source(statement.name)
    if source is None:
        if statement.if_exists:
            return _nothing(
                command, statement, catalog, intent, f"Source `{statement.name}` does not exist."
            )
        raise StatementError(
            f"{kind.capitalize()} {statement.name} does not exist."
            + alternatives(catalog, statement.name, wanted)
        )
    if source.kind is not wanted:
        raise StatementError(
            f"Incompatible data source type is {_kind(source)}, but statement was DROP {kind}"
        )
    if statement.delete_topic and source.read_only:
        raise StatementError(f"Cannot delete topic for read-only source: {source.name}")
    own = [q for q in catalog.writers(source.name) if q.creates_sink]
    readers = catalog.readers(source.name)
    sinks = sorted({q.sink for q in readers if q.creates_sink})
    if sinks:
        raise StatementError(
            f"Cannot drop {source.name}.\nThe following streams and/or tables read from this "
            f"source: [{', '.join(sinks)}].\nYou need to drop them before dropping {source.name}."
        )
    inserts = sorted(q.id for q in readers)
    writers = sorted(q.id for q in catalog.writers(source.name) if q not in own)
    if inserts or writers:
        raise StatementError(
            f"Cannot drop {source.name}.\nThe following queries read from this source: "
            f"[{', '.join(inserts)}].\nThe following queries write into this source: "
            f"[{', '.join(writers)}].\nYou need to terminate them before dropping {source.name}."
        )
    after = catalog.without_source(source.name)
    for query in own:
        after = after.without_query(query.id)
    return Change(
        command,
        statement,
        intent.text,
        f"Source {_quoted(source.name)} (topic: {source.topic}) was dropped.",
        after,
        stops=tuple(q.id for q in own),
        deletes_topic=source if statement.delete_topic else None,
        settings=intent.settings,
    )


def _quoted(name: str) -> str:
    return f"`{name}`"


@changes(ast.TerminateQuery, ast.PauseQuery, ast.ResumeQuery)
def _control(statement: ast.QueryControl, catalog: Catalog, intent: Intent) -> Change:
    name = statement.title.lower()
    if statement.query_id is None:
        ids = tuple(catalog.queries)
        command = CommandId(name, "all", "execute")
    else:
        found = next((q for q in catalog.queries if q.upper() == statement.query_id.upper()), None)
        if found is None:
            raise StatementError(f"Unknown queryId: {statement.query_id}")
        ids = (found,)
        command = CommandId(name, found, "execute")
    after = catalog
    if name == "terminate":
        for id_ in ids:
            after = after.without_query(id_)
    message = f"Query {name.rstrip('e')}ed."
    return Change(
        command,
        statement,
        intent.text,
        message,
        after,
        stops=ids if name == "terminate" else (),
        pauses=ids if name == "pause" else (),
        resumes=ids if name == "resume" else (),
        settings=intent.settings,
    )


@changes(ast.CreateType)
def _create_type(statement: ast.CreateType, catalog: Catalog, intent: Intent) -> Change:
    command = CommandId("type", statement.name, "create")
    existing = catalog.type(statement.name)
    if existing is not None:
        if statement.if_not_exists:
            why = f"{statement.name} is already registered with type {existing}"
            return _nothing(command, statement, catalog, intent, why)
        raise StatementError(
            f"Cannot register custom type '{statement.name}' since it is already registered with "
            f"type: {existing}"
        )
    type_ = resolve_type(statement.type, catalog.type)
    message = f"Registered custom type with name '{statement.name}' and SQL type {type_}"
    after = catalog.with_type(statement.name, type_)
    return Change(command, statement, intent.text, message, after, settings=intent.settings)


@changes(ast.DropType)
def _drop_type(statement: ast.DropType, catalog: Catalog, intent: Intent) -> Change:
    command = CommandId("type", statement.name, "drop")
    if catalog.type(statement.name) is None:
        if statement.if_exists:
            return _nothing(
                command, statement, catalog, intent, f"Type '{statement.name}' does not exist"
            )
        raise StatementError(f"Type {statement.name} does not exist.")
    after = catalog.without_type(statement.name)
    message = f"Dropped type '{statement.name}'"
    return Change(command, statement, intent.text, message, after, settings=intent.settings)


@changes(ast.AlterStream, ast.AlterTable)
def _alter(statement: ast.AlterSource, catalog: Catalog, intent: Intent) -> Change:
    altered = replace(plan_alter_source(statement, catalog), statement=intent.text)
    wanted = altered.kind
    return Change(
        CommandId(wanted.value.lower(), statement.name, "alter"),
        statement,
        intent.text,
        f"{wanted.value.capitalize()} {altered.name} altered.",
        catalog.with_source(altered),
        creates=altered,
        settings=intent.settings,
    )


@changes(ast.AlterSystem)
def _alter_system(statement: ast.AlterSystem, catalog: Catalog, intent: Intent) -> Change:
    name, value = statement.name, statement.value
    try:
        check_editable(name)
    except StatementError as e:
        told = shown(name, value)
        raise StatementError(f"Failed to set {name} to {told}. Caused by: {e}") from None
    Settings({name: value})
    if canonical(name) == "processing.guarantee" and catalog.queries:
        raise StatementError(
            f"Unable to set {name} to {value}, as the {name} may not be changed for running "
            f"persistent queries which have already processed data under a different {name}. To "
            f"modify {name} you must first terminate all running persistent queries."
        )
    return Change(
        CommandId("cluster", str(intent.sequence), "alter"),
        statement,
        intent.text,
        f"System property {name} was set to {value}.",
        catalog,
        alters=(name, value),
        settings=intent.settings,
    )


def _nothing(
    command: CommandId,
    statement: ast.Statement,
    catalog: Catalog,
    intent: Intent,
    why: str,
    answered: Nothing = Nothing.SUCCESS,
) -> Change:
    return Change(command, statement, intent.text, why, catalog, nothing=answered)
