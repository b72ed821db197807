"""A plan as a DataFrame program: the way in, with every kind of node known."""

from __future__ import annotations

from headrace.spark.lower import stateful, stateless
from headrace.spark.lower.lowering import Context, Lowered, lower_node

__all__ = ["Context", "Lowered", "lower_node", "stateful", "stateless"]
