"""Leaving out what nobody reads: columns, and pseudocolumns above all, only where needed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from headrace.model.schema import Namespace, Schema
from headrace.plan import nodes
from headrace.plan.expressions import Expression, columns_used

Names = frozenset[str]


def prune(node: nodes.Node, needed: Names | None = None) -> nodes.Node:
    """The same plan with no more columns than its result needs; None stands for all."""
    wanted = frozenset(c.name for c in node.schema) if needed is None else needed
    pruned: nodes.Node = _RULES[type(node)](node, wanted)
    return pruned


def _kept(schema: Schema, needed: Names) -> Schema:
    """Key columns stay whether or not anyone reads them."""
    return Schema.of(c for c in schema if c.name in needed or c.namespace is Namespace.KEY)


def _used(expressions: Iterable[Expression]) -> Names:
    return frozenset().union(*map(columns_used, expressions))


def _read(node: nodes.ReadSource, needed: Names) -> nodes.Node:
    schema = _kept(node.schema, needed)
    outputs = tuple(pair for pair in node.outputs if schema.find(pair[0]))
    return dataclasses.replace(node, schema=schema, outputs=outputs)


def _filter(node: nodes.Filter, needed: Names) -> nodes.Node:
    below = prune(node.input, needed | columns_used(node.predicate))
    return dataclasses.replace(node, schema=below.schema, input=below)


def _project(node: nodes.Project, needed: Names) -> nodes.Node:
    return dataclasses.replace(node, input=prune(node.input, _used(_selected(node.selected))))


def _selected(selected: Iterable[nodes.Selected]) -> Iterable[Expression]:
    return (s.expression for s in selected)


def _flat_map(node: nodes.FlatMap, needed: Names) -> nodes.Node:
    made = frozenset(c.column.name for c in node.calls)
    args = _used(arg for call in node.calls for arg in call.args)
    below = prune(node.input, (needed - made) | args)
    schema = Schema.of((*below.schema, *(c.column for c in node.calls)))
    return dataclasses.replace(node, schema=schema, input=below)


def _rekey(node: nodes.Rekey, needed: Names) -> nodes.Node:
    below = prune(node.input, needed | _used(_selected(node.keys)))
    there = {c.name for c in below.schema}
    keys = {k.column.name for k in node.keys}
    schema = Schema.of(c for c in node.schema if c.name in there or c.name in keys)
    return dataclasses.replace(node, schema=schema, input=below)


def _aggregate(node: nodes.Aggregate, needed: Names) -> nodes.Node:
    args = (arg for call in node.calls for arg in call.args)
    below = prune(node.input, _used((*_selected(node.keys), *args, *_selected(node.required))))
    results = frozenset(c.column.name for c in node.calls)
    return dataclasses.replace(node, schema=_kept(node.schema, needed | results), input=below)


def _suppress(node: nodes.Suppress, needed: Names) -> nodes.Node:
    below = prune(node.input, needed)
    return dataclasses.replace(node, schema=below.schema, input=below)


def _join(node: nodes.Join, needed: Names) -> nodes.Node:
    left = prune(node.left, needed | columns_used(node.left_key))
    right = prune(node.right, needed | columns_used(node.right_key))
    schema = _kept(node.schema, needed)
    return dataclasses.replace(node, schema=schema, left=left, right=right)


def _end(node: nodes.Write | nodes.Answer, needed: Names) -> nodes.Node:
    return dataclasses.replace(node, input=prune(node.input))


_RULES: dict[type[nodes.Node], Callable[[Any, Names], nodes.Node]] = {
    nodes.ReadSource: _read,
    nodes.Filter: _filter,
    nodes.Project: _project,
    nodes.FlatMap: _flat_map,
    nodes.Rekey: _rekey,
    nodes.Aggregate: _aggregate,
    nodes.Suppress: _suppress,
    nodes.StreamStreamJoin: _join,
    nodes.StreamTableJoin: _join,
    nodes.TableTableJoin: _join,
    nodes.ForeignKeyJoin: _join,
    nodes.Write: _end,
    nodes.Answer: _end,
}
