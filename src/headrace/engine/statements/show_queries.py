"""SHOW QUERIES and EXPLAIN."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace.engine.queries.persistent import PersistentQuery
from headrace.engine.queries.push import PushQuery
from headrace.engine.statements.handling import StatementContext, handles
from headrace.model.entities import (
    Entity,
    ExplainedQuery,
    FieldInfo,
    QueryDescription,
    QueryDescriptionList,
    QueryInfo,
    QueryList,
    QueryState,
    QueryType,
)
from headrace.model.errors import StatementError
from headrace.model.settings import shown
from headrace.plan import nodes as n
from headrace.plan.explain import explain
from headrace.plan.pull import plan_pull
from headrace.plan.query import Planned, plan_create_as, plan_insert_select, plan_push
from headrace.sql import ast


def query_info(context: StatementContext, query: PersistentQuery) -> QueryInfo:
    record = context.catalog.queries.get(query.id)
    sink = context.catalog.source(record.sink) if record is not None else None
    name, topic = (sink.name, sink.topic) if sink is not None else ("", "")
    _, state, _ = context.queries.members.status(query)
    return QueryInfo(query.statement, (name,), (topic,), query.id, {state: 1})


def warnings_of(context: StatementContext, queries: Iterable[PersistentQuery]) -> tuple[str, ...]:
    """Why queries that should run do not."""
    found = (context.queries.members.warning(query) for query in queries)
    return tuple(text for text in found if text is not None)


def notices_of(queries: Iterable[PersistentQuery]) -> tuple[str, ...]:
    """What is to be known of queries besides whether they run."""
    return tuple(text for query in queries for text in (*_losses(query), *_uneven(query)))


def _losses(query: PersistentQuery) -> Iterator[str]:
    if query.reading is not None:
        for loss in query.reading.memory.losses:
            yield f"Query {query.id} has lost {query.lost_records} records so far. {loss}"


def _uneven(query: PersistentQuery) -> Iterator[str]:
    """A join whose topics had as many partitions when it was made."""
    if query.reading is None or query.planned is None or not n.has_join(query.planned.node):
        return
    counts = {topic: seen.partitions for topic, seen in query.reading.seen.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"'{topic}': {count}" for topic, count in counts.items())
        yield (
            f"Query {query.id} joins topics that have not as many partitions any more ({told}). "
            "Its results stay right, as rows meet by their keys wherever they lie. Another "
            "statement that joins them is refused."
        )


def _push_info(query: PushQuery) -> QueryInfo:
    return QueryInfo(query.statement, (), (), query.id, {QueryState.RUNNING: 1}, QueryType.PUSH)


@handles(ast.ListQueries)
def _queries(statement: ast.ListQueries, context: StatementContext) -> Entity:
    pushes = list(context.queries.push)
    persistent = list(context.queries.persistent)
    if statement.extended:
        described = [_description(context, query) for query in persistent]
        return QueryDescriptionList(
            context.text,
            (*described, *(_push(context, query) for query in pushes)),
            warnings=warnings_of(context, persistent),
        )
    listed = [query_info(context, query) for query in persistent]
    return QueryList(
        context.text,
        (*listed, *map(_push_info, pushes)),
        warnings=warnings_of(context, persistent),
    )


def _description(context: StatementContext, query: PersistentQuery) -> QueryDescription:
    planned = query.planned
    node = planned.node if planned is not None else None
    record = context.catalog.queries.get(query.id)
    own = context.env.settings
    host, state, errors = context.queries.members.status(query)
    return QueryDescription(
        id=query.id,
        statement_text=query.statement,
        window_type=_window_type(node) if node is not None else None,
        fields=FieldInfo.all_of(planned.schema) if planned is not None else (),
        sources=record.sources if record is not None else (),
        sinks=(record.sink,) if record is not None else (),
        topology=query.spark_plan(),
        execution_plan=explain(node, query.id) if node is not None else "",
        overridden_properties={
            name: shown(name, value)
            for name, value in query.overrides.items()
            if own.text(name) != value
        },
        ksql_host_query_status={host: state},
        query_type=QueryType.PERSISTENT,
        query_errors=tuple(errors),
    )


def _push(context: StatementContext, query: PushQuery) -> QueryDescription:
    return QueryDescription(
        id=query.id,
        statement_text=query.statement,
        window_type=None,
        fields=FieldInfo.all_of(query.schema),
        sources=(),
        sinks=(),
        topology="",
        execution_plan="",
        overridden_properties={},
        ksql_host_query_status={context.queries.members.address: QueryState.RUNNING},
        query_type=QueryType.PUSH,
    )


def _window_type(node: n.Node) -> str | None:
    window = node.window if isinstance(node, n.Write) else None
    return window.type.value if window is not None else None


@handles(ast.Explain)
def _explain(statement: ast.Explain, context: StatementContext) -> Entity:
    if statement.query_id is not None:
        wanted = statement.query_id.upper()
        query = next((q for q in context.queries.persistent if q.id.upper() == wanted), None)
        if query is None:
            raise StatementError(
                f"Query with id:{statement.query_id} does not exist, use SHOW QUERIES to view the "
                "full set of queries."
            )
        return ExplainedQuery(
            context.text,
            _description(context, query),
            warnings=(*warnings_of(context, [query]), *notices_of([query])),
        )
    inner = statement.statement
    assert inner is not None
    if isinstance(inner, ast.Query) and inner.emit is None:
        pulled = plan_pull(inner, context.catalog, context.texts)
        planned = Planned(pulled.node, pulled.schema, (pulled.source.name,))
    else:
        planned = _planned(inner, context)
    node = planned.node
    return ExplainedQuery(
        context.text,
        QueryDescription(
            id="",
            statement_text=context.text,
            window_type=_window_type(node),
            fields=FieldInfo.all_of(planned.schema),
            sources=planned.sources,
            sinks=(node.sink,) if isinstance(node, n.Write) else (),
            topology="",
            execution_plan=explain(node),
            overridden_properties=dict(context.session.properties),
            ksql_host_query_status={},
            query_type=QueryType.PERSISTENT if isinstance(node, n.Write) else QueryType.PUSH,
        ),
    )


def _planned(statement: ast.Statement, context: StatementContext) -> Planned:
    settings = context.texts
    match statement:
        case ast.Query():
            return plan_push(statement, context.catalog, settings)
        case ast.CreateAsSelect():
            return plan_create_as(statement, context.catalog, settings)
        case ast.InsertInto():
            return plan_insert_select(statement, context.catalog, settings)
    raise StatementError("The provided statement does not run a ksql query")
