"""Removes columns that no later step reads, pseudocolumns above all."""

from __future__ import annotations

from headrace.plan.nodes import Names, Node, inputs


def prune(node: Node, needed: Names | None = None) -> Node:
    """The same plan with no more columns than its result needs; None stands for all."""
    wanted = frozenset(c.name for c in node.schema) if needed is None else needed
    required = zip(inputs(node), node.requires(wanted), strict=True)
    return node.over([prune(below, names) for below, names in required], wanted)
