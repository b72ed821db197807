"""Aggregates: each as Python steps, and as a Spark aggregate where that gives the same results."""

from __future__ import annotations

from headrace.functions.aggregates import collect, extremes, offsets, spread, totals

FUNCTIONS = (
    *totals.FUNCTIONS,
    *extremes.FUNCTIONS,
    *collect.FUNCTIONS,
    *offsets.FUNCTIONS,
    *spread.FUNCTIONS,
)
