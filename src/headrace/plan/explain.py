"""EXPLAIN: the steps of a plan as text, from sink to sources, in ksqlDB's form."""

from __future__ import annotations

from headrace.plan.nodes import Node, inputs


def explain(node: Node, query_id: str | None = None, depth: int = 0) -> str:
    """One line for each step; `query_id` names the loggers of a query that runs."""
    parts = [f"Schema: {node.schema}", *node.details()]
    if query_id is not None:
        parts.append(f"Logger: {query_id}.{node.step_name}")
    line = f"{chr(9) * 2 * depth} > [ {node.title} ] | " + " | ".join(parts)
    below = (explain(child, query_id, depth + 1) for child in inputs(node))
    return "\n".join([line, *below])
