"""Plans queries: from a SELECT to its plan nodes.

A query that runs on ends in `Write` (CREATE … AS SELECT, INSERT INTO … SELECT) or in `Answer` (a
push query). Planning asks the catalog for facts and nothing else, and leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from headrace.model.errors import StatementError
from headrace.model.schema import Schema
from headrace.model.settings import is_on
from headrace.model.sources import Source, SourceKind, WindowedKey, WindowType
from headrace.model.types import quote
from headrace.plan import nodes
from headrace.plan.clauses.analysis import (
    Analysis,
    Fields,
    Item,
    Selection,
    analyze,
    check_sources,
)
from headrace.plan.clauses.explode import explode_stage
from headrace.plan.clauses.filter import predicate
from headrace.plan.clauses.group import (
    aggregate,
    aggregate_calls,
    check_key,
    check_states,
    window_used,
)
from headrace.plan.clauses.join import join_stage
from headrace.plan.clauses.partition import rekey_stage
from headrace.plan.clauses.project import check_clashes, choices, project
from headrace.plan.clauses.read import read_stage
from headrace.plan.clauses.sink import (
    TopicOptions,
    check_key_format,
    sink_source,
    topic_options,
)
from headrace.plan.clauses.stage import Planning, Projection, Stage
from headrace.plan.language.casts import can_cast_implicitly
from headrace.plan.language.catalog_view import CatalogView, already_exists
from headrace.plan.language.expressions import Cast
from headrace.plan.language.messages import at
from headrace.plan.prune import prune
from headrace.plan.replace import check_source_upgrade
from headrace.plan.sources.properties import (
    AS_SELECT,
    INSERTED,
    WithClause,
    check_retention,
    timestamp_column,
    with_clause,
)
from headrace.plan.sources.start_from import StartFrom, parse_start_from
from headrace.sql import ast

Settings = Mapping[str, str]


@dataclass(frozen=True)
class Planned:
    """A query ready to run: `node` is a Write or an Answer.

    `sink` is the source that CREATE … AS SELECT makes, None for other queries; `topic` says how
    its topic is made, `start_from` where it begins to read.
    """

    node: nodes.Node
    schema: Schema
    sources: tuple[str, ...]
    sink: Source | None = None
    topic: TopicOptions | None = None
    start_from: StartFrom = field(default_factory=StartFrom)


def plan_push(query: ast.Query, view: CatalogView, settings: Settings) -> Planned:
    """Plans a push query."""
    analysis = analyze(query, view, persistent=False, pull=False)
    check_sources(analysis, query.group_by is not None)
    result = _plan(Planning(analysis, view, settings), _Sink())
    node = nodes.Answer(result.schema, result.kind, result, query.limit)
    return _planned(node, analysis)


def plan_create_as(statement: ast.CreateAsSelect, view: CatalogView, settings: Settings) -> Planned:
    """CREATE STREAM|TABLE … AS SELECT."""
    if statement.query.limit is not None:
        kind = statement.source_kind.value
        raise StatementError(f"CREATE {kind} AS SELECT statements don't support LIMIT clause.")
    clause = with_clause(statement.properties, AS_SELECT)
    analysis = analyze(statement.query, view, persistent=True, pull=False)
    check_key_format(analysis, clause)
    check_sources(analysis, statement.query.group_by is not None)
    planning = Planning(analysis, view, settings)
    result = _plan(
        planning, _Sink(statement.name, check=lambda schema: timestamp_column(clause, schema))
    )
    _check_result_kind(statement, result.kind)
    check_retention(clause, result.kind, windowed=statement.query.window is not None)
    window = _sink_window(analysis, result)
    existing = view.source(statement.name)
    replaced = existing if statement.or_replace else None
    sink = sink_source(statement.name, analysis, result, clause, settings, window, replaced)
    if existing is not None and not statement.if_not_exists and not statement.or_replace:
        raise StatementError(already_exists(result.kind, f"'{statement.name}'", existing))
    if replaced is not None:
        check_source_upgrade(replaced, sink)
    partitions = view.partitions(analysis.left.source.topic)
    topic = topic_options(clause, partitions)
    planned = _planned(_write(result, sink), analysis, sink, topic)
    return _starting(planned, clause)


def plan_insert_select(statement: ast.InsertInto, view: CatalogView, settings: Settings) -> Planned:
    """INSERT INTO … SELECT: rows for a stream that exists, in its formats."""
    clause = with_clause(statement.properties, INSERTED)
    sink = view.source(statement.target)
    if sink is None:
        raise StatementError(
            f"Exception while preparing statement: {at(statement.position)}"
            f"Source {quote(statement.target)} does not exist."
        )
    if sink.is_table:
        raise StatementError(
            "Exception while preparing statement: "
            f"INSERT INTO can only be used to insert into a stream. {sink.name} is a table."
        )
    if statement.query.limit is not None:
        raise StatementError("INSERT INTO statements don't support LIMIT clause.")
    analysis = analyze(statement.query, view, persistent=True, pull=False)
    check_sources(analysis, statement.query.group_by is not None)
    written = Schema((*sink.schema.key, *sink.schema.value))
    result = _plan(Planning(analysis, view, settings), _Sink(sink.name, written))
    _check_no_headers(sink, written, result.schema)
    if sink.read_only:
        raise StatementError(f"Cannot insert into read-only {sink.kind.value.lower()}: {sink.name}")
    if result.kind is not sink.kind:
        raise StatementError(
            f"Incompatible data sink and query result. Data sink ({sink.name}) type is "
            f"K{sink.kind.value} but select query result is K{result.kind.value}."
        )
    return _starting(_planned(_write(_as_declared(result, written), sink), analysis), clause)


def _starting(planned: Planned, clause: WithClause) -> Planned:
    """The query with where it begins, if its WITH clause says so."""
    text = clause.text("START_FROM")
    if text is None:
        return planned
    start_from = parse_start_from(text)
    start_from.check(list(dict.fromkeys(s.topic for s in nodes.sources(planned.node))))
    return replace(planned, start_from=start_from)


# ------------------------------------------------------------------------------------ the plan


@dataclass(frozen=True)
class _Sink:
    """What a query fills: nothing, a source of that name, or one that exists (`target`).

    `check` looks at the result's columns before its key is looked for.
    """

    name: str | None = None
    target: Schema | None = None
    check: Callable[[Schema], object] = lambda schema: None


def _plan(planning: Planning, sink: _Sink) -> nodes.Node:
    """The query's nodes up to its projection."""
    analysis = planning.analysis
    stage = join_stage(planning) if analysis.scope.is_join else read_stage(analysis.left)
    if analysis.where is not None:
        condition = planning.flatten(analysis.where)
        bound = predicate(planning.binder(stage.node), condition, "WHERE")
        stage = stage.on(nodes.Filter(stage.node.schema, stage.node.kind, stage.node, bound))
    if analysis.partition_by is not None:
        stage = rekey_stage(planning, stage)
    if analysis.table_functions:
        stage = explode_stage(planning, stage)
    if analysis.emit is ast.Emit.FINAL and not is_on(planning.settings, "ksql.suppress.enabled"):
        raise StatementError(
            "Suppression is currently disabled. You can enable it by setting "
            "ksql.suppress.enabled to true"
        )
    finish = _grouped if analysis.group_by is not None else _projected
    node = finish(planning, stage, sink)
    for check in stage.checks:
        check()
    if analysis.group_by is not None:
        check_states(node, analysis.left.source.value.format)
    return node


def _grouped(planning: Planning, stage: Stage, sink: _Sink) -> nodes.Node:
    chosen = choices(planning, stage, sink.target, grouped=True)
    node = aggregate(planning, stage, chosen)
    if planning.analysis.emit is ast.Emit.FINAL and planning.analysis.window is None:
        raise StatementError("EMIT FINAL is only supported for windowed aggregations.")
    if sink.name is not None:
        sink.check(node.schema)
        check_key(planning, chosen, sink.name, aggregate_calls(planning, chosen))
    return node


def _projected(planning: Planning, stage: Stage, sink: _Sink) -> nodes.Node:
    analysis = planning.analysis
    if analysis.window is not None:
        raise StatementError(
            f"{at(analysis.window.position)}WINDOW clause requires a GROUP BY clause."
        )
    if analysis.having is not None:
        raise StatementError("HAVING clause requires a GROUP BY clause.")
    node = project(planning, stage, choices(planning, stage, sink.target))
    if analysis.emit is ast.Emit.FINAL:
        raise StatementError("EMIT FINAL is only supported for windowed aggregations.")
    if sink.name is not None:
        sink.check(node.schema)
        stage.check_key(_flat_projection(planning), sink.name)
        check_clashes(node.schema)
    return node


def _flat_projection(planning: Planning) -> Projection:
    def flat(item: Selection) -> Selection:
        match item:
            case Item(expression, alias):
                return Item(planning.flatten(expression), alias)
            case Fields(base):
                return Fields(planning.flatten(base))
        return item

    return Projection(tuple(map(flat, planning.analysis.select)))


# ------------------------------------------------------------------------------------ the sink


def _check_result_kind(statement: ast.CreateAsSelect, kind: SourceKind) -> None:
    if kind is not statement.source_kind:
        raise StatementError(
            f"Invalid result type. Your SELECT query produces a {kind.value}. "
            f"Please use CREATE {kind.value} AS SELECT statement instead."
        )


def _sink_window(analysis: Analysis, result: nodes.Node) -> WindowedKey | None:
    """An aggregation's keys have its window; other queries keep that of their source."""
    if analysis.group_by is None:
        return analysis.left.source.window
    window = window_used(result)
    if window is None:
        return None
    sized = window.type is not WindowType.SESSION
    return WindowedKey(window.type, window.size_ms if sized else None)


def _write(node: nodes.Node, sink: Source) -> nodes.Write:
    return nodes.Write(
        schema=node.schema,
        kind=node.kind,
        input=node,
        sink=sink.name,
        topic=sink.topic,
        key=sink.key,
        value=sink.value,
        timestamp=sink.timestamp,
        window=sink.window,
    )


def _check_no_headers(sink: Source, written: Schema, result: Schema) -> None:
    """Headers cannot be written (KLIP-57); a stream that has such columns can."""
    headers = [c.name for c in sink.schema.headers if result.find(c.name) is not None]
    if headers:
        others = ", ".join(c.name for c in written)
        raise StatementError(
            "Exception while preparing statement: "
            f"Cannot insert into {sink.name} because it has header columns which the query "
            f"selects: {', '.join(headers)}. Select only the others: {others}"
        )


def _as_declared(node: nodes.Node, target: Schema) -> nodes.Node:
    """The projection with the types of the stream it is inserted into."""
    result, names = node.schema, [(c.name, c.namespace) for c in node.schema]
    same = names == [(c.name, c.namespace) for c in target]
    if not same or not all(
        can_cast_implicitly(a.type, b.type) for a, b in zip(result, target, strict=True)
    ):
        raise StatementError(
            "Incompatible schema between results and sink.\n"
            f"Result schema is {result}\nSink schema is {target}"
        )
    assert isinstance(node, nodes.Project)
    selected = tuple(
        s if s.column.type == c.type else nodes.Selected(c, Cast(c.type, s.expression))
        for s, c in zip(node.selected, target, strict=True)
    )
    return nodes.Project(target, node.kind, node.input, selected)


def _planned(
    node: nodes.Node,
    analysis: Analysis,
    sink: Source | None = None,
    topic: TopicOptions | None = None,
) -> Planned:
    read = tuple(s.source.name for s in analysis.scope.sources)
    return Planned(prune(node), node.schema, read, sink, topic)
