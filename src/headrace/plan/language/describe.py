"""Bound expressions as SQL text, for EXPLAIN and the processing log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headrace.plan.language import expressions as e
from headrace.plan.language.coercion import string_value


def describe(x: e.Expression) -> str:
    """A bound expression as SQL, with the casts that were put in."""
    return _EXPRESSIONS[type(x)](x)


def listed(items: Iterable[e.Expression]) -> str:
    return ", ".join(map(describe, items))


def literal(value: object) -> str:
    match value:
        case None:
            return "null"
        case str():
            return "'" + value.replace("'", "''") + "'"
    return string_value(value)


def _case(x: e.Case) -> str:
    whens = (f"WHEN {describe(w.condition)} THEN {describe(w.result)}" for w in x.whens)
    default = [] if x.default is None else [f"ELSE {describe(x.default)}"]
    return f"({' '.join(['CASE', *whens, *default, 'END'])})"


def _like(x: e.Like) -> str:
    escape = "" if x.escape is None else f" ESCAPE {literal(x.escape)}"
    return f"({describe(x.value)} LIKE {describe(x.pattern)}{escape})"


def _binary(x: e.Arithmetic | e.Comparison | e.Logical) -> str:
    return f"({describe(x.left)} {x.op} {describe(x.right)})"


def _lambda(x: e.LambdaFunction) -> str:
    return f"({', '.join(p.name for p in x.parameters)}) => {describe(x.body)}"


def _pairs(pairs: Any) -> str:
    return ", ".join(f"{name}:={describe(value)}" for name, value in pairs)


_EXPRESSIONS: dict[type[e.Expression], Callable[[Any], str]] = {
    e.Literal: lambda x: literal(x.value),
    e.ColumnValue: lambda x: x.name,
    e.LambdaParameter: lambda x: x.name,
    e.LambdaFunction: _lambda,
    e.Call: lambda x: f"{x.function}({listed(x.args)})",
    e.OfRecord: lambda x: describe(x.call),
    e.Arithmetic: _binary,
    e.Comparison: _binary,
    e.Logical: _binary,
    e.Negate: lambda x: f"-{describe(x.operand)}",
    e.Not: lambda x: f"(NOT {describe(x.operand)})",
    e.IsNull: lambda x: f"({describe(x.operand)} IS NULL)",
    e.Like: _like,
    e.In: lambda x: f"({describe(x.value)} IN ({listed(x.items)}))",
    e.Between: lambda x: f"({describe(x.value)} BETWEEN {describe(x.low)} AND {describe(x.high)})",
    e.Case: _case,
    e.Cast: lambda x: f"CAST({describe(x.operand)} AS {x.type})",
    e.Subscript: lambda x: f"{describe(x.base)}[{describe(x.index)}]",
    e.FieldValue: lambda x: f"{describe(x.base)}->{x.field}",
    e.MakeArray: lambda x: f"ARRAY[{listed(x.items)}]",
    e.MakeMap: lambda x: f"MAP({_pairs((describe(k), v) for k, v in x.entries)})",
    e.MakeStruct: lambda x: f"STRUCT({_pairs(x.fields)})",
}
