"""Statements that only tell: SHOW, DESCRIBE, EXPLAIN; and INSERT INTO … VALUES."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from headrace.engine.inserts import insert_values
from headrace.engine.session import Session
from headrace.functions.registry import REGISTRY
from headrace.model.entities import (
    DescribedSource,
    Entity,
    ExplainedQuery,
    FieldInfo,
    FunctionList,
    FunctionName,
    Property,
    PropertyList,
    QueryDescription,
    QueryDescriptionList,
    QueryInfo,
    QueryList,
    QueryState,
    QueryType,
    SchemaInfo,
    SourceDescription,
    SourceDescriptionList,
    SourceInfo,
    StreamList,
    TableList,
    TopicInfo,
    TopicInfoExtended,
    TopicList,
    TopicListExtended,
    TypeList,
    Variable,
    VariableList,
)
from headrace.model.errors import StatementError
from headrace.model.settings import SETTINGS
from headrace.model.sources import Source, SourceKind
from headrace.plan.explain import explain
from headrace.plan.query import Planned, plan_create_as, plan_insert_select, plan_push
from headrace.sql import ast

if TYPE_CHECKING:
    from headrace.engine.engine import Engine
    from headrace.engine.queries import PersistentQuery

S = TypeVar("S", bound=ast.Statement)
Handler = Callable[[S, str, "Engine", Session], Entity | None]
_HANDLERS: dict[type[ast.Statement], Callable[..., Entity | None]] = {}


def handles(*kinds: type[S]) -> Callable[[Handler[S]], Handler[S]]:
    """Declares who answers a kind of statement."""

    def declare(handler: Handler[S]) -> Handler[S]:
        for kind in kinds:
            _HANDLERS[kind] = handler
        return handler

    return declare


def is_answered(statement: ast.Statement) -> bool:
    return type(statement) in _HANDLERS


def answer(statement: ast.Statement, text: str, engine: Engine, session: Session) -> Entity | None:
    return _HANDLERS[type(statement)](statement, text, engine, session)


@handles(ast.InsertValues)
def _insert(statement: ast.InsertValues, text: str, engine: Engine, session: Session) -> None:
    settings = session.settings(engine.world.settings)
    enabled = settings.flag("ksql.insert.into.values.enabled")
    insert_values(statement, engine.world, engine.catalog, enabled)


# ------------------------------------------------------------------------------- sources


def _info(source: Source) -> SourceInfo:
    return SourceInfo(
        source.kind.value,
        source.name,
        source.topic,
        source.key.format,
        source.value.format,
        source.window is not None,
    )


def _of_kind(engine: Engine, kind: SourceKind) -> list[Source]:
    return sorted((s for s in engine.catalog.sources() if s.kind is kind), key=lambda s: s.name)


@handles(ast.ListStreams)
def _streams(statement: ast.ListStreams, text: str, engine: Engine, session: Session) -> Entity:
    found = _of_kind(engine, SourceKind.STREAM)
    if statement.extended:
        return _described_all(text, engine, found, extended=True)
    return StreamList(text, tuple(map(_info, found)))


@handles(ast.ListTables)
def _tables(statement: ast.ListTables, text: str, engine: Engine, session: Session) -> Entity:
    found = _of_kind(engine, SourceKind.TABLE)
    if statement.extended:
        return _described_all(text, engine, found, extended=True)
    return TableList(text, tuple(map(_info, found)))


@handles(ast.DescribeStreams)
def _describe_streams(
    statement: ast.DescribeStreams, text: str, engine: Engine, session: Session
) -> Entity:
    return _described_all(text, engine, _of_kind(engine, SourceKind.STREAM), statement.extended)


@handles(ast.DescribeTables)
def _describe_tables(
    statement: ast.DescribeTables, text: str, engine: Engine, session: Session
) -> Entity:
    return _described_all(text, engine, _of_kind(engine, SourceKind.TABLE), statement.extended)


def _described_all(text: str, engine: Engine, found: list[Source], extended: bool) -> Entity:
    return SourceDescriptionList(text, tuple(_description(s, engine, extended) for s in found))


@handles(ast.DescribeSource)
def _describe(statement: ast.DescribeSource, text: str, engine: Engine, session: Session) -> Entity:
    source = engine.catalog.source(statement.name)
    if source is None:
        raise StatementError(f"Could not find STREAM/TABLE '{statement.name}' in the Metastore")
    return DescribedSource(text, _description(source, engine, statement.extended))


def _description(source: Source, engine: Engine, extended: bool) -> SourceDescription:
    catalog = engine.catalog
    topic = None
    if extended and engine.world.admin.exists(source.topic):
        topic = engine.world.admin.describe(source.topic)
    return SourceDescription(
        name=source.name,
        window_type=source.window.type.value if source.window else None,
        read_queries=_infos(engine, [q.id for q in catalog.readers(source.name)]),
        write_queries=_infos(engine, [q.id for q in catalog.writers(source.name)]),
        fields=FieldInfo.all_of(source.schema),
        type=source.kind.value,
        timestamp=source.timestamp.name if source.timestamp else "",
        statistics="",
        error_stats="",
        extended=extended,
        key_format=source.key.format,
        value_format=source.value.format,
        topic=source.topic,
        partitions=topic.partitions if topic else 0,
        replication=topic.replication_factor if topic else 0,
        statement=source.statement,
        source_constraints=tuple(
            sorted({q.sink for q in catalog.readers(source.name) if q.id[:4] in ("CSAS", "CTAS")})
        ),
    )


# ------------------------------------------------------------------------------- queries


def _infos(engine: Engine, ids: list[str]) -> tuple[QueryInfo, ...]:
    return tuple(_query_info(q) for id_ in ids if (q := engine.queries.get(id_)) is not None)


def _query_info(query: PersistentQuery) -> QueryInfo:
    node = query.planned.node
    sink, topic = getattr(node, "sink", ""), getattr(node, "topic", "")
    return QueryInfo(query.statement, (sink,), (topic,), query.id, {query.state: 1})


@handles(ast.ListQueries)
def _queries(statement: ast.ListQueries, text: str, engine: Engine, session: Session) -> Entity:
    if statement.extended:
        return QueryDescriptionList(
            text, tuple(_query_description(q, engine) for q in engine.queries)
        )
    running = [_query_info(q) for q in engine.queries]
    pushes = [
        QueryInfo(p.statement, (), (), p.id, {QueryState.RUNNING: 1}, QueryType.PUSH)
        for p in engine.pushes.values()
    ]
    return QueryList(text, (*running, *pushes))


def _query_description(query: PersistentQuery, engine: Engine) -> QueryDescription:
    planned = query.planned
    return QueryDescription(
        id=query.id,
        statement_text=query.statement,
        window_type=None,
        fields=FieldInfo.all_of(planned.schema),
        sources=planned.sources,
        sinks=(getattr(planned.node, "sink", ""),),
        topology=query.spark_plan(),
        execution_plan=explain(planned.node, query.id),
        overridden_properties={},
        ksql_host_query_status={"localhost": query.state},
        query_type=QueryType.PERSISTENT,
        query_errors=tuple(query.errors),
    )


@handles(ast.Explain)
def _explain(statement: ast.Explain, text: str, engine: Engine, session: Session) -> Entity:
    if statement.query_id is not None:
        query = next(
            (q for q in engine.queries if q.id.upper() == statement.query_id.upper()), None
        )
        if query is None:
            raise StatementError(
                f"Query with id:{statement.query_id} does not exist, use SHOW QUERIES to view the "
                "full set of queries."
            )
        return ExplainedQuery(text, _query_description(query, engine))
    inner = statement.statement
    settings = engine.texts(session)
    planned: Planned
    match inner:
        case ast.Query():
            planned = plan_push(inner, engine.catalog, settings)
        case ast.CreateAsSelect():
            planned = plan_create_as(inner, engine.catalog, settings)
        case ast.InsertInto():
            planned = plan_insert_select(inner, engine.catalog, settings)
        case _:
            raise StatementError("The provided statement does not run a ksql query")
    sink = getattr(planned.node, "sink", None)
    return ExplainedQuery(
        text,
        QueryDescription(
            id="",
            statement_text=text,
            window_type=None,
            fields=FieldInfo.all_of(planned.schema),
            sources=planned.sources,
            sinks=(sink,) if sink else (),
            topology="",
            execution_plan=explain(planned.node),
            overridden_properties=dict(session.properties),
            ksql_host_query_status={},
            query_type=QueryType.PERSISTENT if sink else QueryType.PUSH,
        ),
    )


# ------------------------------------------------------------------------------- the rest


@handles(ast.ListTopics)
def _topics(statement: ast.ListTopics, text: str, engine: Engine, session: Session) -> Entity:
    found = engine.world.admin.topics(include_internal=statement.all)
    names = sorted(t for t in found if statement.all or not t.startswith("_"))
    if statement.extended:
        rows = tuple(TopicInfoExtended(t, found[t].replicas, 0, 0) for t in names)
        return TopicListExtended(text, rows)
    return TopicList(text, tuple(TopicInfo(t, found[t].replicas) for t in names))


@handles(ast.ListTypes)
def _types(statement: ast.ListTypes, text: str, engine: Engine, session: Session) -> Entity:
    types = engine.catalog.types
    return TypeList(text, {name: SchemaInfo.of(types[name]) for name in sorted(types)})


@handles(ast.ListVariables)
def _variables(statement: ast.ListVariables, text: str, engine: Engine, session: Session) -> Entity:
    return VariableList(text, tuple(Variable(k, v) for k, v in session.variables.items()))


@handles(ast.ListFunctions)
def _functions(statement: ast.ListFunctions, text: str, engine: Engine, session: Session) -> Entity:
    return FunctionList(
        text,
        tuple(FunctionName(f.name, f.kind.value, f.category.value) for f in REGISTRY.all()),
    )


@handles(ast.ListProperties)
def _properties(
    statement: ast.ListProperties, text: str, engine: Engine, session: Session
) -> Entity:
    settings = session.settings(engine.world.settings)
    rows = []
    for name in sorted(settings):
        declared = SETTINGS.get(name)
        value = "[hidden]" if _is_secret(name) else settings.text(name)
        editable = declared.editable if declared else False
        rows.append(Property(name, "KSQL", value, editable))
    overwritten = tuple(sorted(session.properties))
    defaults = tuple(sorted(n for n in SETTINGS if n not in settings.given))
    return PropertyList(text, tuple(rows), overwritten, defaults)


def _is_secret(name: str) -> bool:
    declared = SETTINGS.get(name)
    return (declared is not None and declared.secret) or any(
        word in name for word in ("password", "secret", "jaas", "user.info")
    )
