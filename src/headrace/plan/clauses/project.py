"""The projection: the columns of a query's result, and which of them are its key."""

from __future__ import annotations

import decimal
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headrace.model.errors import StatementError
from headrace.model.schema import WINDOW_BOUNDS, Column, Namespace, Schema
from headrace.model.types import NULL, Decimal, Struct, quote
from headrace.plan.clauses.analysis import Fields, Item, Star
from headrace.plan.clauses.stage import Planning, Stage, evaluated
from headrace.plan.language.binder import Binder
from headrace.plan.language.casts import can_cast_implicitly, decimal_of
from headrace.plan.language.coercion import fitted
from headrace.plan.language.column_names import check_field, check_selected, check_unique
from headrace.plan.language.expressions import ColumnValue
from headrace.plan.language.messages import joined
from headrace.plan.nodes import Project, Selected
from headrace.sql import ast


@dataclass(frozen=True)
class Choice:
    """A selected expression over the columns of the stage below, and its name."""

    expression: ast.Expression
    alias: str


def choices(
    planning: Planning, stage: Stage, target: Schema | None, *, grouped: bool = False
) -> list[Choice]:
    """The projection with stars and `struct->*` spelled out; `target` is an INSERT's sink.

    A grouped query has a key of its own, so the stage's key means nothing to its projection.
    """
    chosen: list[Choice] = []
    binder = planning.binder(stage.node)
    resolve = (lambda e: e) if grouped else stage.resolve
    for index, item in enumerate(planning.analysis.select):
        match item:
            case Item(expression, alias):
                resolved = resolve(planning.flatten(expression))
                chosen.append(Choice(_fitting(resolved, target, index), alias))
            case Star(source):
                for name in stage.star(source):
                    column = resolve(ast.ColumnRef(None, name))
                    if name not in WINDOW_BOUNDS:  # these are part of a windowed source's key
                        check_selected(column, name, planning.analysis.persistent)
                    chosen.append(Choice(column, name))
            case Fields(base):
                resolved = resolve(planning.flatten(base))
                for field in _struct_of(binder, resolved).fields:
                    check_field(base, field.name)
                    chosen.append(Choice(ast.Dereference(resolved, field.name), field.name))
    return chosen


def _fitting(e: ast.Expression, target: Schema | None, index: int) -> ast.Expression:
    """A number that is inserted into a decimal column takes that column's precision."""
    if target is None or index >= len(target) or not isinstance(e, ast.Literal):
        return e
    wanted = target.columns[index].type
    if not isinstance(wanted, Decimal) or isinstance(e.value, bool | str | None):
        return e
    number = decimal.Decimal(str(e.value))
    if not can_cast_implicitly(decimal_of(number), wanted):
        return e
    return ast.DecimalLiteral(fitted(number, wanted))


def _struct_of(binder: Binder, base: ast.Expression) -> Struct:
    match base:
        case ast.ColumnRef(_, name):
            what = f"Column {quote(name)}"
        case ast.Dereference(inner, name):
            if _struct_of(binder, inner).field(name) is None:
                raise StatementError(f"Field {name} was not found on STRUCT.")
            what = f"Field {name}"
        case _:
            raise StatementError(f"Unsupported struct column expression: {type(base).__name__}")
    type_ = binder.bind(base).type
    if not isinstance(type_, Struct):
        raise StatementError(f"{what} is not a STRUCT type.")
    return type_


def project(planning: Planning, stage: Stage, chosen: Sequence[Choice]) -> Project:
    """A query's last step: the selected columns, a sink's key columns first."""
    selected = selected_columns(planning.binder(stage.node), stage.node.schema, chosen)
    if planning.analysis.persistent:
        _check_keys_once(stage, selected)
        selected = key_first(_without_bounds(selected))
        if all(s.column.namespace is Namespace.KEY for s in selected):
            raise StatementError("The projection contains no value columns.")
    else:
        check_unique(Column(s.column.name, s.column.type) for s in selected)
    schema = Schema.of(s.column for s in selected)
    return Project(schema, stage.node.kind, stage.node, tuple(selected))


def selected_columns(binder: Binder, schema: Schema, chosen: Sequence[Choice]) -> list[Selected]:
    """The choices with their types, in their order; key columns among themselves as below."""
    keys = [c.name for c in schema.key]
    places = [i for i, c in enumerate(chosen) if _key_index(c, keys) is not None]
    in_order = sorted(places, key=lambda i: _key_index(chosen[i], keys) or 0)
    source = dict(zip(places, in_order, strict=True))
    selected = []
    for index in range(len(chosen)):
        choice = chosen[source.get(index, index)]
        expression = evaluated(binder, choice.expression, "Select")
        if expression.type == NULL:
            raise StatementError(
                "Can't infer a type of null. Please explicitly cast it to a required type, "
                "e.g. CAST(null AS VARCHAR)."
            )
        namespace = Namespace.KEY if index in source else Namespace.VALUE
        selected.append(Selected(Column(choice.alias, expression.type, namespace), expression))
    check_unique(s.column for s in selected)
    return selected


def _key_index(choice: Choice, keys: list[str]) -> int | None:
    match choice.expression:
        case ast.ColumnRef(None, name) if name in keys:
            return keys.index(name)
    return None


def _check_keys_once(stage: Stage, selected: Sequence[Selected]) -> None:
    aliases: dict[str, set[str]] = {}
    for s in selected:
        if s.column.namespace is Namespace.KEY and isinstance(s.expression, ColumnValue):
            aliases.setdefault(s.expression.name, set()).add(s.column.name)
    for key, names in aliases.items():
        if len(names) > 1:
            shown = stage.key_names.get(key, key)
            raise StatementError(
                f"The projection contains a key column ({quote(shown)}) more than once, aliased "
                f"as: {joined(sorted(names), ' and ')}.\n{KEY_ONCE}"
            )


KEY_ONCE = (
    "Each key column must only be in the projection once. If you intended to copy the key into "
    "the value, then consider using the AS_VALUE function to indicate which key reference should "
    "be copied."
)


def _without_bounds(selected: Sequence[Selected]) -> list[Selected]:
    """A windowed key brings its bounds along, so `*` does not copy them into the value."""
    return [
        s
        for s in selected
        if s.column.name not in WINDOW_BOUNDS
        or not isinstance(s.expression, ColumnValue)
        or s.expression.name != s.column.name
    ]


def key_first(selected: Iterable[Selected]) -> list[Selected]:
    return sorted(selected, key=lambda s: s.column.namespace is not Namespace.KEY)


def check_clashes(schema: Schema) -> None:
    times = Counter(c.name for c in schema)
    clashing = [quote(name) for name, count in times.items() if count > 1]
    if clashing:
        raise StatementError(f"Value columns clash with key columns: {', '.join(clashing)}")
