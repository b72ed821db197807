"""EXPLAIN: a plan's steps as text, from its end to its sources, in the shape of ksqlDB's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.model.types import quote
from headrace.plan import expressions as e
from headrace.plan import nodes
from headrace.plan.coercion import string_value


def explain(node: nodes.Node, query_id: str | None = None, depth: int = 0) -> str:
    """One line for each step; `query_id` names the loggers of a query that runs."""
    name, describe = _STEPS[type(node)]
    parts = [f"Schema: {node.schema}", *describe(node)]
    if query_id is not None:
        parts.append(f"Logger: {query_id}.{step_name(node)}")
    line = f"{chr(9) * 2 * depth} > [ {name} ] | " + " | ".join(parts)
    below = (explain(child, query_id, depth + 1) for child in nodes.inputs(node))
    return "\n".join([line, *below])


def step_name(node: nodes.Node) -> str:
    """What the processing log calls a step of a query."""
    match node:
        case nodes.ReadSource(source=source):
            return f"{source}.Source"
        case nodes.Rekey():
            return "PartitionBy"
        case nodes.Write():
            return "Sink"
    return type(node).__name__


def describe(x: e.Expression) -> str:
    """A bound expression as SQL, with the casts that were put in."""
    return _EXPRESSIONS[type(x)](x)


def _listed(items: tuple[e.Expression, ...]) -> str:
    return ", ".join(map(describe, items))


def _selected(selected: tuple[nodes.Selected, ...]) -> str:
    return ", ".join(f"{describe(s.expression)} AS {quote(s.column.name)}" for s in selected)


# -------------------------------------------------------------------------------------- steps


def _read(node: nodes.ReadSource) -> list[str]:
    parts = [f"Source: {quote(node.source)}", f"Topic: {node.topic}"]
    parts.append(f"Formats: {node.key.format}, {node.value.format}")
    if node.window is not None:
        parts.append(f"Windowed: {node.window.type.value}")
    if node.timestamp is not None:
        parts.append(f"Timestamp: {quote(node.timestamp.name)}")
    return parts


def _aggregate(node: nodes.Aggregate) -> list[str]:
    calls = ", ".join(
        f"{c.function}({', '.join([*map(describe, c.args), *map(_value, c.literals)])}) "
        f"AS {quote(c.column.name)}"
        for c in node.calls
    )
    parts = [f"Group by: {_selected(node.keys)}", f"Aggregates: {calls}"]
    return [*parts, *_window(node.window)]


def _window(window: nodes.Window | None) -> list[str]:
    if window is None:
        return []
    what = {"SIZE": window.size_ms, "ADVANCE": window.advance_ms, "GRACE": window.grace_ms}
    shown = ", ".join(f"{name} {ms} MILLISECONDS" for name, ms in what.items() if ms is not None)
    return [f"Window: {window.type.value} ({shown})"]


def _join(node: nodes.Join) -> list[str]:
    parts = [
        f"Type: {node.type.value}",
        f"On: {describe(node.left_key)} = {describe(node.right_key)}",
    ]
    if isinstance(node, nodes.StreamStreamJoin):
        parts.append(f"Within: {node.before_ms} before, {node.after_ms} after, in milliseconds")
    return parts


def _write(node: nodes.Write) -> list[str]:
    formats = f"Formats: {node.key.format}, {node.value.format}"
    return [f"Sink: {quote(node.sink)}", f"Topic: {node.topic}", formats]


def _calls(node: nodes.FlatMap) -> list[str]:
    calls = (f"{c.function}({_listed(c.args)}) AS {quote(c.column.name)}" for c in node.calls)
    return [f"Table functions: {', '.join(calls)}"]


_STEPS: dict[type[nodes.Node], tuple[str, Callable[[Any], list[str]]]] = {
    nodes.ReadSource: ("SOURCE", _read),
    nodes.Filter: ("FILTER", lambda n: [f"Where: {describe(n.predicate)}"]),
    nodes.Project: ("PROJECT", lambda n: [f"Select: {_selected(n.selected)}"]),
    nodes.FlatMap: ("FLAT_MAP", _calls),
    nodes.Rekey: ("REKEY", lambda n: [f"Partition by: {_selected(n.keys) or 'null'}"]),
    nodes.Aggregate: ("AGGREGATE", _aggregate),
    nodes.Suppress: ("SUPPRESS", lambda n: _window(n.window)),
    nodes.StreamStreamJoin: ("STREAM_STREAM_JOIN", _join),
    nodes.StreamTableJoin: ("STREAM_TABLE_JOIN", _join),
    nodes.TableTableJoin: ("TABLE_TABLE_JOIN", _join),
    nodes.ForeignKeyJoin: ("FK_TABLE_TABLE_JOIN", _join),
    nodes.Write: ("SINK", _write),
    nodes.Answer: ("ANSWER", lambda n: [] if n.limit is None else [f"Limit: {n.limit}"]),
}


# -------------------------------------------------------------------------------- expressions


def _value(value: object) -> str:
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
    escape = "" if x.escape is None else f" ESCAPE {_value(x.escape)}"
    return f"({describe(x.value)} LIKE {describe(x.pattern)}{escape})"


def _binary(x: e.Arithmetic | e.Comparison | e.Logical) -> str:
    return f"({describe(x.left)} {x.op} {describe(x.right)})"


def _lambda(x: e.LambdaFunction) -> str:
    return f"({', '.join(p.name for p in x.parameters)}) => {describe(x.body)}"


def _pairs(pairs: Any) -> str:
    return ", ".join(f"{name}:={describe(value)}" for name, value in pairs)


_EXPRESSIONS: dict[type[e.Expression], Callable[[Any], str]] = {
    e.Literal: lambda x: _value(x.value),
    e.ColumnValue: lambda x: x.name,
    e.LambdaParameter: lambda x: x.name,
    e.LambdaFunction: _lambda,
    e.Call: lambda x: f"{x.function}({_listed(x.args)})",
    e.OfRecord: lambda x: describe(x.call),
    e.Arithmetic: _binary,
    e.Comparison: _binary,
    e.Logical: _binary,
    e.Negate: lambda x: f"-{describe(x.operand)}",
    e.Not: lambda x: f"(NOT {describe(x.operand)})",
    e.IsNull: lambda x: f"({describe(x.operand)} IS NULL)",
    e.Like: _like,
    e.In: lambda x: f"({describe(x.value)} IN ({_listed(x.items)}))",
    e.Between: lambda x: f"({describe(x.value)} BETWEEN {describe(x.low)} AND {describe(x.high)})",
    e.Case: _case,
    e.Cast: lambda x: f"CAST({describe(x.operand)} AS {x.type})",
    e.Subscript: lambda x: f"{describe(x.base)}[{describe(x.index)}]",
    e.FieldValue: lambda x: f"{describe(x.base)}->{x.field}",
    e.MakeArray: lambda x: f"ARRAY[{_listed(x.items)}]",
    e.MakeMap: lambda x: f"MAP({_pairs((describe(k), v) for k, v in x.entries)})",
    e.MakeStruct: lambda x: f"STRUCT({_pairs(x.fields)})",
}
