"""Aggregates: each one as plain Python steps, and as Spark's own aggregate where that is equal."""

from __future__ import annotations

from headrace.functions.aggregates import collect, extremes, offsets, spread, totals
from headrace.functions.aggregates.steps import intermediate_type

FUNCTIONS = (
    *totals.FUNCTIONS,
    *extremes.FUNCTIONS,
    *collect.FUNCTIONS,
    *offsets.FUNCTIONS,
    *spread.FUNCTIONS,
)

__all__ = ["FUNCTIONS", "intermediate_type"]
