"""A plan as a DataFrame program: the way in, with every kind of node known."""

from __future__ import annotations

from headrace.spark import stateful, stateless
from headrace.spark.lowering import Context, lower_node, lowered_kinds

__all__ = ["Context", "lower_node", "lowered_kinds", "stateful", "stateless"]
