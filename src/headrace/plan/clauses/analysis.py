"""Analysis of a query: its clauses, checked before anything is planned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.formats import format_named
from headrace.functions.declare.declaration import FunctionKind
from headrace.functions.registry import REGISTRY
from headrace.model.errors import StatementError
from headrace.model.schema import (
    ROWTIME,
    WINDOW_BOUNDS,
)
from headrace.model.sources import SourceKind, WindowType
from headrace.model.types import quote
from headrace.plan.language import column_names as reserved
from headrace.plan.language.catalog_view import CatalogView
from headrace.plan.language.messages import at, text
from headrace.plan.language.names import Aliases, join_column, may_be_join_key
from headrace.plan.language.scope import (
    Aliased,
    Scope,
    column_refs,
    unknown_column,
)
from headrace.sql import ast

# What a query without GROUP BY that aggregates is grouped by: everything.
EVERYTHING = ast.StringLiteral("\x01")


@dataclass(frozen=True)
class Item:
    """An expression of the projection and its name; qualified as the whole analysis is."""

    expression: ast.Expression
    alias: str


@dataclass(frozen=True)
class Star:
    """`*` or `alias.*` in a projection."""

    source: str | None


@dataclass(frozen=True)
class Fields:
    """`struct->*` in a projection."""

    base: ast.Expression


Selection = Item | Star | Fields


@dataclass(frozen=True)
class JoinStep:
    """One JOIN of the FROM clause; `flipped` if it was written with its sides exchanged."""

    type: ast.JoinType
    left: Aliased
    left_on: ast.Expression
    right: Aliased
    right_on: ast.Expression
    within: ast.Within | None
    flipped: bool = False

    def flip(self) -> JoinStep:
        return JoinStep(
            self.type, self.right, self.right_on, self.left, self.left_on, self.within, True
        )

    @property
    def written(self) -> str:
        """The condition as the user wrote it."""
        sides = (self.left_on, self.right_on)
        first, second = reversed(sides) if self.flipped else sides
        return f"{text(first)} = {text(second)}"


@dataclass(frozen=True)
class Analysis:
    scope: Scope
    select: tuple[Selection, ...]
    joins: tuple[JoinStep, ...]
    window: ast.Window | None
    where: ast.Expression | None
    group_by: tuple[ast.Expression, ...] | None
    partition_by: tuple[ast.Expression, ...] | None
    having: ast.Expression | None
    emit: ast.Emit | None
    limit: int | None
    table_functions: tuple[ast.Call, ...]
    persistent: bool

    @property
    def left(self) -> Aliased:
        """The source that formats and settings are inherited from."""
        return self.scope.sources[0]

    @property
    def partitions_by_null(self) -> bool:
        by = self.partition_by or ()
        if not any(isinstance(e, ast.NullLiteral) for e in by):
            return False
        if len(by) > 1:
            raise StatementError("Cannot PARTITION BY multiple columns including NULL")
        return True


def analyze(query: ast.Query, view: CatalogView, *, persistent: bool, pull: bool) -> Analysis:
    scope = Scope.of(query.source, view)
    select = _select(query, scope)
    where, having = (e and scope.qualify(e) for e in (query.where, query.having))
    group_by = (
        None if query.group_by is None else _distinct(tuple(map(scope.qualify, query.group_by)))
    )
    partition_by = query.partition_by and tuple(map(scope.qualify, query.partition_by))
    joins = _joins(query.source, scope)
    for item in select:
        if isinstance(item, Item):
            reserved.check_selected(item.expression, item.alias, persistent)
    if group_by is None and any(_aggregates(i.expression) for i in _items(select)):
        group_by = (EVERYTHING,)
    table_functions = tuple(
        call for item in _items(select) for call in _table_functions(item.expression, group_by)
    )
    analysis = Analysis(
        scope,
        select,
        joins,
        query.window,
        where or None,
        group_by,
        partition_by or None,
        having or None,
        query.emit,
        query.limit,
        table_functions,
        persistent,
    )
    _check_columns(analysis, synthetic_keys=not pull and query.group_by is None)
    return analysis


def check_sources(analysis: Analysis, grouped: bool) -> None:
    """Rules about what kinds of sources a query that runs on may have."""
    _check_value_formats(analysis, grouped)
    windowed_tables = (s.source.is_table and s.source.window for s in analysis.scope.sources)
    if analysis.persistent and any(windowed_tables):
        raise StatementError("KSQL does not support persistent queries on windowed tables.")
    reserved.check_sources(s.source for s in analysis.scope.sources)
    if analysis.table_functions and analysis.left.source.kind is SourceKind.TABLE:
        raise StatementError("Table source is not supported with table functions")


def _check_value_formats(analysis: Analysis, grouped: bool) -> None:
    clause = "JOIN" if analysis.scope.is_join else "GROUP BY" if grouped else None
    formats = [(s.alias, format_named(s.source.value.format)) for s in analysis.scope.sources]
    refused = [(alias, format_) for alias, format_ in formats if format_.not_grouped]
    if refused and clause:
        names, format_ = ", ".join(alias for alias, _ in refused), refused[0][1]
        raise StatementError(
            f"Source(s) {names} are using the '{format_.name}' value format. "
            f"This format does not yet support {clause}.\n{format_.not_grouped}"
        )


# --------------------------------------------------------------------------------- projection


def _select(query: ast.Query, scope: Scope) -> tuple[Selection, ...]:
    aliases = Aliases(c.name for s in scope.sources for c in s.source.schema)
    selection: list[Selection] = []
    for item in query.select:
        match item:
            case ast.SingleColumn(expression, alias):
                qualified = scope.qualify(expression)
                name = alias if alias is not None else _default_name(qualified, scope, aliases)
                selection.append(Item(qualified, name))
            case ast.AllColumns(source):
                if source is not None:
                    scope.check_alias(source)
                selection.append(Star(source))
            case ast.StructAll(base):
                selection.append(Fields(scope.qualify(base)))
    return tuple(selection)


def _default_name(expression: ast.Expression, scope: Scope, aliases: Aliases) -> str:
    if not isinstance(expression, ast.ColumnRef):
        return aliases.alias(expression)
    if expression.source is not None and scope.clashes(expression.name):
        return join_column(expression.source, expression.name)
    return expression.name


def _items(select: Iterable[Selection]) -> list[Item]:
    return [item for item in select if isinstance(item, Item)]


def _calls(expression: ast.Expression, kind: FunctionKind) -> list[ast.Call]:
    calls = (n for n in ast.walk(expression) if isinstance(n, ast.Call))
    return [c for c in calls if REGISTRY.kind(c.name) is kind]


def _aggregates(expression: ast.Expression) -> bool:
    return bool(_calls(expression, FunctionKind.AGGREGATE))


def _table_functions(
    expression: ast.Expression, group_by: tuple[ast.Expression, ...] | None
) -> list[ast.Call]:
    calls = _calls(expression, FunctionKind.TABLE)
    if not calls:
        return []
    for call in calls:
        for arg in call.args:
            for nested in _calls(arg, FunctionKind.TABLE):
                raise StatementError(
                    f"Table functions cannot be nested: {call.name}({nested.name}())"
                )
        if group_by is not None:
            raise StatementError("Table functions cannot be used with aggregations.")
    for case in ast.walk(expression):
        if isinstance(case, ast.SearchedCase) and _calls(case, FunctionKind.TABLE):
            raise StatementError(f"Table functions cannot be used in CASE: {text(case)}")
    return calls


def _distinct(grouping: tuple[ast.Expression, ...]) -> tuple[ast.Expression, ...]:
    if not grouping:
        raise StatementError("GROUP BY requires at least one expression")
    for index, expression in enumerate(grouping):
        if expression in grouping[:index]:
            raise StatementError(f"Duplicate GROUP BY expression: {text(expression)}")
    return grouping


# ------------------------------------------------------------------------------------ columns


def _check_columns(analysis: Analysis, synthetic_keys: bool) -> None:
    """Every column that any clause names must be there."""
    clauses: list[tuple[str, tuple[ast.Expression, ...]]] = [
        ("WHERE", (analysis.where,) if analysis.where else ()),
        ("GROUP BY", analysis.group_by or ()),
        ("PARTITION BY", analysis.partition_by or ()),
        ("HAVING", (analysis.having,) if analysis.having else ()),
        ("SELECT", tuple(item.expression for item in _items(analysis.select))),
    ]
    for clause, expressions in clauses:
        for expression in expressions:
            for column in column_refs(expression):
                if not _known(analysis, column) and not (
                    clause == "SELECT"
                    and synthetic_keys
                    and analysis.scope.is_join
                    and column.source is None
                    and may_be_join_key(column.name)
                ):
                    raise _unresolved(clause, column)


def _known(analysis: Analysis, column: ast.ColumnRef) -> bool:
    if analysis.window is not None and column.name in WINDOW_BOUNDS:
        # Bounds of joined windowed aggregates are not supported:
        # https://github.com/confluentinc/ksql/issues/5931
        return column.source is not None or not analysis.scope.is_join
    if column.source is None:
        return bool(analysis.scope.with_column(column.name))
    owner = analysis.scope.find(column.source)
    return owner is not None and column.name in owner.columns


def _unresolved(clause: str, column: ast.ColumnRef) -> StatementError:
    if clause != "PARTITION BY":
        return unknown_column(clause, column)
    name = text(column)
    return StatementError(
        f"{at(column.position)}PARTITION BY column '{name}' cannot be resolved. "
        f"'{name}' must be a column in the source schema since PARTITION BY is applied on the "
        "input."
    )


# -------------------------------------------------------------------------------------- joins


def _joins(relation: ast.Relation, scope: Scope) -> tuple[JoinStep, ...]:
    _check_repeated(scope)
    if not isinstance(relation, ast.Join):
        return ()
    return tuple(
        _join(joined, scope.qualify(joined.on), Scope(scope.sources[: index + 2], True))
        for index, joined in enumerate(relation.sources)
    )


def _check_repeated(scope: Scope) -> None:
    names = [s.source.name for s in scope.sources]
    for index, name in enumerate(names):
        if name in names[:index]:
            if index > 1:
                raise StatementError(
                    "N-way joins do not support multiple occurrences of the same source. "
                    f"Source: '{name}'."
                )
            raise StatementError(
                f"Can not join '{name}' to '{name}': self joins are not yet supported."
            )


def _join(joined: ast.JoinedSource, on: ast.Expression, scope: Scope) -> JoinStep:
    """`scope` holds the sources up to the joined one."""
    if not isinstance(on, ast.Comparison):
        both = isinstance(on, ast.Logical) and _is_equality(on.left) and _is_equality(on.right)
        if both:
            raise StatementError(
                "Invalid join condition: joins on multiple conditions are not yet supported. "
                f"Got {text(on)}."
            )
        raise StatementError(f"Unsupported join expression: {text(on)}")
    if not _is_equality(on):
        raise StatementError("Only equality join criteria is supported.")
    left, right = (_only_source(side, on, scope) for side in (on.left, on.right))
    if left == right:
        raise StatementError(
            "Each side of the join must reference exactly one source and not the same source. "
            f"Left side references {quote(left.alias)} and right references {quote(right.alias)}"
        )
    _check_windows(left, right)
    added = scope.sources[-1]
    if added not in (left, right):
        raise StatementError(
            f"A join criteria is expected to reference the source ({quote(added.alias)}) in the "
            f"FROM clause, instead the right source references {quote(right.alias)} and the left "
            f"source references {quote(left.alias)}"
        )
    step = JoinStep(joined.type, left, on.left, right, on.right, joined.within)
    return step.flip() if right == scope.sources[0] else step


def _is_equality(expression: ast.Expression) -> bool:
    return isinstance(expression, ast.Comparison) and expression.op == "="


def _only_source(side: ast.Expression, on: ast.Comparison, scope: Scope) -> Aliased:
    owners = []
    for column in column_refs(side):
        found = (
            scope.with_column(column.name)
            if column.source is None
            else [s for s in (scope.find(column.source),) if s and column.name in s.columns]
        )
        if not found:
            raise unknown_column("JOIN ON", column)
        owners += found
    if len(set(s.alias for s in owners)) != 1:
        raise StatementError(
            f"Invalid comparison expression '{text(side)}' in join '{text(on)}'. "
            "Each side of the join comparision must contain references from exactly one source."
        )
    return owners[0]


def _check_windows(left: Aliased, right: Aliased) -> None:
    a, b = left.source.window, right.source.window
    if (a is None) != (b is None):
        windows = ((s.alias, s.source.window) for s in (left, right))
        kinds = [f"{quote(n)} is {w.type.value if w else 'not'} windowed" for n, w in windows]
        raise StatementError(
            "Can not join windowed source to non-windowed source.\n" + "\n".join(kinds)
        )
    if a is None or b is None:
        return
    if (a.type is WindowType.SESSION) != (b.type is WindowType.SESSION):
        raise StatementError(
            f"Incompatible windowed sources.\nLeft source: {a.type.value}\n"
            f"Right source: {b.type.value}\n"
            "Session windowed sources can only be joined to other session windowed sources, and "
            "may still not result in expected behaviour as session bounds must be an exact match "
            "for the join to work\nHopping and tumbling windowed sources can only be joined to "
            "other hopping and tumbling windowed sources"
        )


def default_argument(analysis: Analysis) -> ast.ColumnRef:
    """What an aggregate without arguments is given: COUNT(*) counts row times."""
    return ast.ColumnRef(analysis.left.alias, ROWTIME)
