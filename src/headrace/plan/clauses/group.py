"""GROUP BY: aggregates, the expressions allowed beside them, and windows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.formats import format_named
from headrace.functions.declare.declaration import FunctionKind
from headrace.functions.registry import REGISTRY
from headrace.model.errors import StatementError
from headrace.model.schema import WINDOW_BOUNDS, Column, Namespace, Schema
from headrace.model.sources import SourceKind, WindowType
from headrace.model.types import quote
from headrace.plan import nodes
from headrace.plan.clauses.analysis import EVERYTHING, default_argument
from headrace.plan.clauses.filter import predicate
from headrace.plan.clauses.project import (
    KEY_ONCE,
    Choice,
    key_first,
    selected_columns,
)
from headrace.plan.clauses.stage import (
    Planning,
    Stage,
    evaluated,
    missing_key,
)
from headrace.plan.language.binder import Binder, EvaluationError
from headrace.plan.language.column_names import check_unique
from headrace.plan.language.expressions import Literal
from headrace.plan.language.messages import joined, text
from headrace.plan.language.names import Aliases, aggregate_column
from headrace.plan.language.rewriting import map_children
from headrace.plan.nodes import Selected
from headrace.sql import ast


def aggregate(planning: Planning, stage: Stage, chosen: Sequence[Choice]) -> nodes.Node:
    """The aggregation of a stage's rows, its HAVING, and its projection."""
    analysis = planning.analysis
    grouping = tuple(map(planning.flatten, analysis.group_by or ()))
    having = analysis.having and planning.flatten(analysis.having)
    found = _Aggregates(planning, grouping)
    found.check(chosen, having)
    window = _window(analysis.window, analysis.emit)
    key_names = [_key_name(e, chosen, stage) for e in grouping]
    rewritten = [Choice(found.rewrite(c.expression, key_names), c.alias) for c in chosen]
    condition = having and found.rewrite(having, key_names)
    node = _aggregate_node(planning, stage, grouping, key_names, found, window)
    result: nodes.Node = node
    if analysis.emit is ast.Emit.FINAL and window is not None:
        result = nodes.Suppress(node.schema, node.kind, node, window)
    binder = planning.binder(node)
    if condition is not None:
        result = nodes.Filter(
            node.schema, node.kind, result, predicate(binder, condition, "HAVING")
        )
    return _project(planning, result, binder, rewritten)


def check_key(
    planning: Planning, chosen: Sequence[Choice], sink: str, functions: Sequence[ast.Call]
) -> None:
    selected = [c.expression for c in chosen]
    grouping = tuple(map(planning.flatten, planning.analysis.group_by or ()))
    missing = tuple(e for e in grouping if e not in selected)
    if EVERYTHING in missing:
        raise StatementError(
            "CREATE TABLE AS SELECT statement does not support aggregate function "
            f"[{', '.join(map(text, functions))}] without a GROUP BY clause."
        )
    if missing:
        raise missing_key(sink, "grouping expression", missing)


def aggregate_calls(planning: Planning, chosen: Sequence[Choice]) -> list[ast.Call]:
    calls = _Aggregates(planning, ())
    return [call for c in chosen for call in calls.of(c.expression)]


def _project(
    planning: Planning, node: nodes.Node, binder: Binder, chosen: Sequence[Choice]
) -> nodes.Project:
    selected = selected_columns(binder, node.schema, chosen)
    check_unique(Column(s.column.name, s.column.type) for s in selected)
    if planning.analysis.persistent:
        selected = key_first(selected)
        values = [s for s in selected if s.column.namespace is not Namespace.KEY]
        if not values:
            raise StatementError("The projection contains no value columns.")
    schema = Schema.of(s.column for s in selected)
    return nodes.Project(schema, node.kind, node, tuple(selected))


def _key_name(expression: ast.Expression, chosen: Sequence[Choice], stage: Stage) -> str:
    """A key column is called as the projection calls it."""
    aliases = [c.alias for c in chosen if c.expression == expression]
    if len(aliases) > 1:
        raise StatementError(
            "The projection contains a key column more than once: "
            f"{joined(map(quote, aliases), ' and ')}.\n{KEY_ONCE}"
        )
    if aliases:
        return aliases[0]
    if isinstance(expression, ast.ColumnRef):
        return expression.name
    return Aliases(c.name for c in stage.node.schema).alias(expression)


# --------------------------------------------------------------------------------- aggregates


@dataclass
class _Aggregates:
    """The aggregate calls of a query in the order they are met, and the rules around them."""

    planning: Planning
    grouping: tuple[ast.Expression, ...]

    def __post_init__(self) -> None:
        self.calls: list[ast.Call] = []
        self._windowed = self.planning.analysis.window is not None
        self._default = self.planning.flatten(default_argument(self.planning.analysis))

    def of(self, expression: ast.Expression) -> list[ast.Call]:
        """The aggregate calls in an expression, with the argument that `f(*)` stands for."""
        calls: list[ast.Call] = []
        self._walk(expression, None, lambda column, inside: None, calls.append)
        return calls

    def check(self, chosen: Sequence[Choice], having: ast.Expression | None) -> None:
        unmatched: list[str] = []
        for choice in chosen:
            outside: list[ast.Expression] = []

            def selected(
                column: ast.ColumnRef,
                inside: str | None,
                outside: list[ast.Expression] = outside,
            ) -> None:
                if inside is not None:
                    self._check_bounds(column)
                elif not self._grouped(column):
                    outside.append(column)

            self._walk(choice.expression, None, selected, self.calls.append)
            if outside and not self._grouped(choice.expression):
                unmatched.append(text(choice.expression))
        for expression in self.grouping:
            self._check_grouping(expression)
        having_only = self._check_having(having) if having is not None else []
        self.calls = list(dict.fromkeys(self.calls))
        if not self.calls:
            raise StatementError(
                "GROUP BY requires aggregate functions in either the SELECT or HAVING clause."
            )
        if unmatched:
            raise StatementError(
                "Non-aggregate SELECT expression(s) not part of GROUP BY: "
                f"{', '.join(unmatched)}\n"
                "Either add the column(s) to the GROUP BY or remove them from the SELECT."
            )
        if having_only:
            raise StatementError(
                f"Non-aggregate HAVING expression not part of GROUP BY: {', '.join(having_only)}\n"
                "Consider switching the HAVING clause to a WHERE clause before the GROUP BY."
            )

    def _check_grouping(self, expression: ast.Expression) -> None:
        for node in ast.walk(expression):
            if isinstance(node, ast.ColumnRef):
                self._check_bounds(node)
            if isinstance(node, ast.Call) and REGISTRY.kind(node.name) is FunctionKind.AGGREGATE:
                raise StatementError(
                    "GROUP BY does not support aggregate functions: "
                    f"{node.name} is an aggregate function."
                )

    def _check_having(self, having: ast.Expression) -> list[str]:
        outside: list[str] = []

        def met(column: ast.ColumnRef, inside: str | None) -> None:
            self._check_bounds(column)
            if inside is None and not self._grouped(column):
                outside.append(text(column))

        self._walk(having, None, met, self.calls.append)
        return outside

    def _grouped(self, expression: ast.Expression) -> bool:
        if expression in self.grouping:
            return True
        return (
            self._windowed
            and isinstance(expression, ast.ColumnRef)
            and expression.name in WINDOW_BOUNDS
        )

    def _check_bounds(self, column: ast.ColumnRef) -> None:
        if self._windowed and column.name in WINDOW_BOUNDS:
            raise StatementError(
                f"Window bounds column {text(column)} can only be used in the SELECT clause of "
                "windowed aggregations and can not be passed to aggregate functions.\n"
                "See https://github.com/confluentinc/ksql/issues/4397"
            )

    def _walk(
        self,
        node: ast.Node,
        inside: str | None,
        column: Callable[[ast.ColumnRef, str | None], None],
        call: Callable[[ast.Call], None],
    ) -> None:
        """Meets columns outside of grouping expressions, and aggregates; `inside` names the
        aggregate that a column is an argument of."""
        bound = isinstance(node, ast.ColumnRef) and node.name in WINDOW_BOUNDS
        if inside is None and isinstance(node, ast.Expression) and node in self.grouping:
            if bound:
                assert isinstance(node, ast.ColumnRef)
                column(node, inside)
            return
        if isinstance(node, ast.ColumnRef):
            column(node, inside)
        if isinstance(node, ast.Call):
            kind = REGISTRY.kind(node.name)
            if kind is None:
                raise StatementError(f"Can't find any functions with the name '{node.name}'")
            if kind is FunctionKind.AGGREGATE:
                if inside is not None:
                    raise StatementError(
                        f"Aggregate functions can not be nested: {inside}({node.name}())"
                    )
                node = self.with_argument(node)
                call(node)
                inside = node.name
        for child in ast.children(node):
            self._walk(child, inside, column, call)

    def with_argument(self, call: ast.Call) -> ast.Call:
        return call if call.args else dataclasses.replace(call, args=(self._default,))

    def rewrite(self, expression: ast.Expression, keys: Sequence[str]) -> ast.Expression:
        """The expression over the aggregated rows: keys and results are columns there."""
        if expression in self.grouping:
            key = keys[self.grouping.index(expression)]
            return ast.ColumnRef(None, key, stands_for=text(expression))
        if (
            isinstance(expression, ast.Call)
            and REGISTRY.kind(expression.name) is FunctionKind.AGGREGATE
        ):
            index = self.calls.index(self.with_argument(expression))
            return ast.ColumnRef(None, aggregate_column(index), stands_for=text(expression))
        return map_children(expression, lambda e: self.rewrite(e, keys))


def _aggregate_node(
    planning: Planning,
    stage: Stage,
    grouping: Sequence[ast.Expression],
    key_names: Sequence[str],
    found: _Aggregates,
    window: nodes.Window | None,
) -> nodes.Aggregate:
    binder = planning.binder(stage.node)
    keys = tuple(
        Selected(Column(name, expression.type, Namespace.KEY), expression)
        for name, expression in zip(
            key_names, (evaluated(binder, e, "Group By") for e in grouping), strict=True
        )
    )
    check_unique(k.column for k in keys)
    calls = tuple(_call(binder, call, i) for i, call in enumerate(found.calls))
    if stage.node.kind is SourceKind.TABLE:
        _check_table(calls, window)
    bounds = WINDOW_BOUNDS if window is not None else {}
    schema = Schema.of(
        (
            *(k.column for k in keys),
            *(c.column for c in calls),
            *(Column(name, type_) for name, type_ in bounds.items()),
        )
    )
    return nodes.Aggregate(schema, SourceKind.TABLE, stage.node, keys, calls, window)


def _call(binder: Binder, call: ast.Call, index: int) -> nodes.AggregateCall:
    try:
        chosen = binder.arguments(call)
    except EvaluationError as e:
        raise StatementError(f"Invalid Select: {e}. expression: {text(call)}") from None
    split = len(chosen.args) - chosen.constants
    literals = []
    for position, arg in enumerate(chosen.args[split:], split):
        if not isinstance(arg, Literal):
            raise StatementError(
                f"Parameter {position + 1} passed to function {call.name} must be a literal "
                f"constant, but was expression: '{text(call.args[position])}'"
            )
        literals.append(arg.value)
    return nodes.AggregateCall(
        Column(aggregate_column(index), chosen.type),
        call.name,
        chosen.signature,
        chosen.args[:split],
        tuple(literals),
    )


def _check_table(calls: Sequence[nodes.AggregateCall], window: nodes.Window | None) -> None:
    """A table's rows change: only what can take a row back can aggregate them."""
    if window is not None:
        raise StatementError("Windowing not supported for table aggregations.")
    unsupported = dict.fromkeys(
        c.function for c in calls if not REGISTRY.find(c.function, c.signature).undoes
    )
    if unsupported:
        raise StatementError(
            f"The aggregation function{'s' if len(unsupported) > 1 else ''} "
            f"{joined(unsupported, ' and ')} cannot be applied to a table source, only to a "
            "stream source."
        )


# ------------------------------------------------------------------------------------ windows


def _window(window: ast.Window | None, emit: ast.Emit | None) -> nodes.Window | None:
    """EMIT FINAL waits for no late rows unless told to."""
    match window:
        case ast.TumblingWindow(size):
            type_, length, advance = WindowType.TUMBLING, size, None
        case ast.HoppingWindow(size, by):
            type_, length, advance = WindowType.HOPPING, size, by
            if not 0 < by.millis <= size.millis:
                raise StatementError(
                    "Window advancement interval should be more than zero and less than window "
                    f"duration which is {size.millis} ms, but given advancement interval is: "
                    f"{by.millis} ms"
                )
        case ast.SessionWindow(gap):
            type_, length, advance = WindowType.SESSION, gap, None
        case _:
            return None
    grace = window.grace.millis if window.grace else 0 if emit is ast.Emit.FINAL else None
    return nodes.Window(
        type_,
        length.millis,
        advance.millis if advance else None,
        grace,
        window.retention.millis if window.retention else None,
    )


def check_states(node: nodes.Node, value_format: str) -> None:
    """ksqlDB writes an aggregate's state in the source's format, which has to be able to."""
    if isinstance(node, nodes.Aggregate):
        functions = (REGISTRY.get(c.function) for c in node.calls)
        simple = all(f.simple_state for f in functions if f.path == "internal")
        if not format_named(value_format).structured and not simple:
            raise StatementError(
                "One of the functions used in the statement has an intermediate type that the "
                "value format can not handle. Please remove the function or change the format.\n"
                "Consider up-voting https://github.com/confluentinc/ksql/issues/3950, which will "
                "resolve this limitation."
            )
    for below in nodes.inputs(node):
        check_states(below, value_format)


def window_used(node: nodes.Node) -> nodes.Window | None:
    """The window of the aggregation in a plan, if there is one."""
    if isinstance(node, nodes.Aggregate):
        return node.window
    return next((w for w in map(window_used, nodes.inputs(node)) if w is not None), None)
