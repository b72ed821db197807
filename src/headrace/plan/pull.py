"""Plans pull queries, and derives from WHERE which part of the table must be read.

A pull query's WHERE is taken apart into alternatives. Where each of them fixes the key, only those
keys are looked up; otherwise everything is read. The whole condition still decides about each row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.model.errors import StatementError
from headrace.model.schema import (
    WINDOW_BOUNDS,
    WINDOWEND,
    WINDOWSTART,
    Column,
    Namespace,
    Schema,
)
from headrace.model.settings import is_on
from headrace.model.sources import Source
from headrace.model.types import BIGINT, BYTES, INTEGER, STRING, base_name, quote
from headrace.plan import nodes
from headrace.plan.clauses.analysis import Analysis, analyze
from headrace.plan.clauses.filter import predicate, with_times
from headrace.plan.clauses.project import choices, selected_columns
from headrace.plan.clauses.read import read_stage
from headrace.plan.clauses.stage import Planning
from headrace.plan.language import column_names as reserved
from headrace.plan.language.binder import Binder
from headrace.plan.language.casts import can_cast_implicitly
from headrace.plan.language.catalog_view import CatalogView
from headrace.plan.language.coercion import literal_value
from headrace.plan.language.column_names import check_unique
from headrace.plan.language.disjunctive_form import alternatives
from headrace.plan.language.folding import folded
from headrace.plan.language.messages import text
from headrace.plan.language.scope import column_refs
from headrace.plan.prune import prune
from headrace.sql import ast

_LINK = "https://cnfl.io/queries"
_HELP = f" See {_LINK} for more info.\nAdd EMIT CHANGES if you intended to issue a push query."
_TABLE_SCANS = "ksql.query.pull.table.scan.enabled"
_RANGE_SCANS = "ksql.query.pull.range.scan.enabled"
_LIMITS = "ksql.query.pull.limit.clause.enabled"
_COMPARISONS = ("=", ">", ">=", "<", "<=")


@dataclass(frozen=True)
class Bound:
    """One limit of a range, in milliseconds for windows."""

    value: object
    inclusive: bool


@dataclass(frozen=True)
class Range:
    """The values between two bounds; a missing bound does not limit."""

    lower: Bound | None = None
    upper: Bound | None = None

    @property
    def is_all(self) -> bool:
        return self.lower is None and self.upper is None


@dataclass(frozen=True)
class KeyConstraint:
    """One alternative of WHERE: a key, or a range of the only key column; and windows."""

    key: tuple[object, ...] | None = None
    range: Range | None = None
    window_start: Range = Range()
    window_end: Range = Range()


@dataclass(frozen=True)
class PullPlan:
    """A planned pull query: `node` answers it when run over the whole source; `constraints`, if not
    None, are the parts of the source that can hold its rows."""

    source: Source
    node: nodes.Answer
    schema: Schema
    constraints: tuple[KeyConstraint, ...] | None

    @property
    def limit(self) -> int | None:
        return self.node.limit

    @property
    def project(self) -> nodes.Project:
        assert isinstance(self.node.input, nodes.Project)
        return self.node.input

    @property
    def filter(self) -> nodes.Filter | None:
        below = self.project.input
        return below if isinstance(below, nodes.Filter) else None


def plan_pull(query: ast.Query, view: CatalogView, settings: Mapping[str, str]) -> PullPlan:
    analysis = analyze(query, view, persistent=False, pull=True)
    _check(analysis, settings)
    reserved.check_sources([analysis.left.source])
    planning = Planning(analysis, view, settings)
    source = analysis.left.source
    stage = read_stage(analysis.left)
    constraints: tuple[KeyConstraint, ...] | None = None
    if analysis.where is not None:
        condition = planning.flatten(analysis.where)
        _check_likes(condition, source)
        bound = predicate(planning.binder(stage.node), condition, "WHERE", "expression")
        if source.is_table:
            constants = Binder.of({}, view.type, settings)
            constraints = _KeyConstraints(source, settings, constants).of(condition)
        stage = stage.on(nodes.Filter(stage.node.schema, stage.node.kind, stage.node, bound))
    elif source.is_table and not is_on(settings, _TABLE_SCANS):
        raise _invalid("Missing WHERE clause", source)
    chosen = choices(planning, stage, None)
    selected = [
        dataclasses.replace(s, column=_pulled(s.column, source))
        for s in selected_columns(planning.binder(stage.node), Schema(), chosen)
    ]
    check_unique(Column(s.column.name, s.column.type) for s in selected)
    schema = Schema.of(s.column for s in selected)
    project = nodes.Project(schema, source.kind, stage.node, tuple(selected))
    answer = prune(nodes.Answer(schema, source.kind, project, query.limit))
    assert isinstance(answer, nodes.Answer)
    return PullPlan(source, answer, schema, constraints)


def _pulled(column: Column, source: Source) -> Column:
    """A table's answer has as key what is named as its key columns, and windows' bounds."""
    keys = {c.name for c in source.schema.key} | set(WINDOW_BOUNDS) if source.is_table else set()
    namespace = Namespace.KEY if column.name in keys else Namespace.VALUE
    return Column(column.name, column.type, namespace)


# -------------------------------------------------------------------------------------- rules


def _check(analysis: Analysis, settings: Mapping[str, str]) -> None:
    unsupported = {
        "JOIN": analysis.scope.is_join,
        "WINDOW": analysis.window is not None,
        "GROUP BY": analysis.group_by is not None,
        "PARTITION BY": analysis.partition_by is not None,
        "HAVING": analysis.having is not None,
    }
    for clause, used in unsupported.items():
        if used:
            raise StatementError(f"Pull queries don't support {clause} clauses.{_HELP}")
    if analysis.limit is not None and not is_on(settings, _LIMITS):
        raise StatementError(
            "LIMIT clause in pull queries is currently disabled. You can enable them by setting "
            f"{_LIMITS}=true.{_HELP}"
        )
    if analysis.limit is not None and analysis.limit < 0:
        raise StatementError(
            f"Pull queries don't support negative integers in the LIMIT clause.{_HELP}"
        )
    if analysis.emit is not None:
        raise StatementError(f"Pull queries don't support EMIT clauses.{_HELP}")


def _check_likes(condition: ast.Expression, source: Source) -> None:
    for like in ast.walk(condition):
        if isinstance(like, ast.Like) and isinstance(like.value, ast.ColumnRef):
            column = source.schema.find(like.value.name)
            if column is not None and column.type != STRING:
                raise _invalid(
                    "The column type for Like condition must be VARCHAR. The column type is "
                    f"{base_name(column.type)}",
                    source,
                )


def _invalid(message: str, source: Source | None) -> StatementError:
    windowed = ""
    if source is not None and source.window is not None:
        windowed = (
            "\n - (optionally) limits the time bounds of the windowed table.\n"
            f"\t Bounds on [{quote(WINDOWSTART)}, {quote(WINDOWEND)}] are supported\n"
            "\t Supported operators are [EQUAL, GREATER_THAN, GREATER_THAN_OR_EQUAL, LESS_THAN, "
            "LESS_THAN_OR_EQUAL]"
        )
    return StatementError(
        f"{message}. {_HELP}\nPull queries require a WHERE clause that:\n"
        " - includes a key equality expression, e.g. `SELECT * FROM X WHERE <key-column> = Y;`.\n"
        " - in the case of a multi-column key, is a conjunction of equality expressions that cover "
        "all key columns.\n"
        " - to support range expressions, e.g.,  SELECT * FROM X WHERE <key-column> < Y;`, range "
        f"scans need to be enabled by setting {_RANGE_SCANS}=true{windowed}\n"
        "If more flexible queries are needed, , table scans can be enabled by setting "
        f"{_TABLE_SCANS}=true."
    )


# ------------------------------------------------------------------------------------ constraints


class _Scan(Exception):
    """The whole table has to be read; `problem` is the error where scans are not allowed."""

    def __init__(self, problem: Callable[[], StatementError]) -> None:
        super().__init__()
        self.problem = problem


@dataclass(frozen=True)
class _KeyConstraints:
    source: Source
    settings: Mapping[str, str]
    binder: Binder  # of no columns: what a key is compared with is constant

    @property
    def keys(self) -> tuple[Column, ...]:
        return self.source.schema.key

    def of(self, where: ast.Expression) -> tuple[KeyConstraint, ...] | None:
        """The constraints that find all rows of the condition, or None if all have to be read."""
        scans = is_on(self.settings, _TABLE_SCANS)
        try:
            parts = alternatives(with_times(where))
            if parts is None:
                raise _Scan(self._needs_scan)
            found = tuple(self._constraint(part, scans) for part in parts)
            ranges = [constraint for constraint in found if constraint.key is None]
            if ranges and (len(found) > 1 or not self._ranges_allowed()):
                raise _Scan(self._needs_scan)
        except _Scan as scan:
            if scans:
                return None
            raise scan.problem() from None
        return found

    def _ranges_allowed(self) -> bool:
        return self.source.window is None and is_on(self.settings, _RANGE_SCANS)

    def _needs_scan(self) -> StatementError:
        return StatementError(
            "Query requires table scan to be enabled. Table scans can be enabled by setting "
            f"{_TABLE_SCANS}=true"
        )

    def _constraint(self, part: list[ast.Expression], scans: bool) -> KeyConstraint:
        """The constraint for a conjunction."""
        found: dict[str, tuple[str, object]] = {}
        windows = {WINDOWSTART: Range(), WINDOWEND: Range()}
        for term in part:
            column, op, other = self._term(term)
            if column.name in WINDOW_BOUNDS:
                windows[column.name] = self._window(windows[column.name], column, op, other, term)
                continue
            key = next((c for c in self.keys if c.name == column.name), None)
            if key is None:
                continue
            if column.name in found and not scans:
                raise _invalid(
                    "A comparison condition on the key column cannot be combined with other "
                    "comparisons such as an IN predicate",
                    self.source,
                )
            if op not in _COMPARISONS:
                raise _Scan(
                    lambda: _invalid(
                        f"Bound on key columns '[{', '.join(map(str, self.keys))}]' must "
                        "currently be '='",
                        self.source,
                    )
                )
            value = self._key_value(key, other, term)
            if column.name not in found or (op == "=" and found[column.name][0] != "="):
                found[column.name] = (op, value)
        return self._combined(found, windows, part)

    def _combined(
        self,
        found: dict[str, tuple[str, object]],
        windows: dict[str, Range],
        part: list[ast.Expression],
    ) -> KeyConstraint:
        start, end = windows[WINDOWSTART], windows[WINDOWEND]
        if not found:
            shown = text(_conjunction(part))
            raise _Scan(
                lambda: _invalid(
                    f"WHERE clause missing key column for disjunct: {shown}", self.source
                )
            )
        if len(found) != len(self.keys):
            names = [quote(c.name) for c in self.keys if c.name in found]
            raise _Scan(
                lambda: _invalid(
                    "Multi-column sources must specify every key in the WHERE clause. Specified: "
                    f"[{', '.join(names)}] Expected: [{', '.join(map(str, self.keys))}]",
                    self.source,
                )
            )
        if all(op == "=" for op, _ in found.values()):
            key = tuple(found[c.name][1] for c in self.keys)
            return KeyConstraint(key=key, window_start=start, window_end=end)
        if len(self.keys) > 1 or self.keys[0].type not in (STRING, BYTES):
            raise _Scan(self._needs_scan)
        ((op, value),) = found.values()
        limit = Bound(value, "=" in op)
        limits = Range(lower=limit) if op.startswith(">") else Range(upper=limit)
        return KeyConstraint(range=limits, window_start=start, window_end=end)

    def _term(self, term: ast.Expression) -> tuple[ast.ColumnRef, str, ast.Expression]:
        """A comparison as column, operator, value."""
        if isinstance(term, ast.Like):
            if not isinstance(term.value, ast.ColumnRef):
                raise _Scan(lambda: _invalid("Like condition must be between strings", self.source))
            raise _Scan(
                lambda: _invalid(
                    f"WHERE clause missing key column for disjunct: {text(term)}", self.source
                )
            )
        if not isinstance(term, ast.Comparison):
            raise _Scan(
                lambda: _invalid(f"Unsupported expression in WHERE clause: {text(term)}", None)
            )
        match term:
            case ast.Comparison(op, other, ast.ColumnRef() as column):
                op = _MIRRORED.get(op, op)
            case ast.Comparison(op, ast.ColumnRef() as column, other):
                pass
            case _:
                raise _Scan(
                    lambda: _invalid(
                        "A comparison must directly reference a key column", self.source
                    )
                )
        if any(column_refs(other)):
            raise _Scan(
                lambda: _invalid(
                    "A comparison must be between a key column and a resolvable expression",
                    self.source,
                )
            )
        return column, op, other

    def _key_value(self, key: Column, other: ast.Expression, term: ast.Expression) -> object:
        if isinstance(other, ast.NullLiteral):
            raise StatementError(f"Primary key columns can not be NULL: {text(term)}")
        constant = folded(self.binder.bind(other))
        if constant is None:
            raise _Scan(self._needs_scan)
        if not can_cast_implicitly(constant.type, key.type):
            raise StatementError(
                f"'{constant.value}' can not be converted to the type of the key column: "
                f"{key.name} {key.type} KEY"
            )
        return literal_value(constant.value, constant.type, key.type)

    def _window(
        self,
        so_far: Range,
        column: ast.ColumnRef,
        op: str,
        other: ast.Expression,
        term: ast.Expression,
    ) -> Range:
        if op not in _COMPARISONS:
            raise _invalid(f"Unsupported {quote(column.name)} bounds: {op}", self.source)
        if self.source.window is None:
            raise _invalid("Cannot use WINDOWSTART/WINDOWEND on non-windowed source", None)
        constant = self.binder.bind(other)
        if constant.type not in (INTEGER, BIGINT):
            raise _invalid(
                "Window bounds must resolve to an INT, BIGINT, or STRING containing a datetime.",
                self.source,
            )
        value = folded(constant)
        if value is None:
            return so_far
        limit = Bound(value.value, "=" in op)
        both = so_far.lower is not None and so_far.lower == so_far.upper
        if (op == "=" and not so_far.is_all) or both:
            raise _invalid(
                f"`{text(term)}` cannot be combined with other {quote(column.name)} bounds",
                self.source,
            )
        if op == "=":
            return Range(limit, limit)
        side = "lower" if op.startswith(">") else "upper"
        if getattr(so_far, side) is not None:
            name = "GREATER_THAN" if side == "lower" else "LESS_THAN"
            raise _invalid(f"Duplicate {quote(column.name)} bounds on: {name}", self.source)
        return Range(limit, so_far.upper) if side == "lower" else Range(so_far.lower, limit)


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _conjunction(part: list[ast.Expression]) -> ast.Expression:
    first, *rest = part
    for term in rest:
        first = ast.Logical("AND", first, term)
    return first
