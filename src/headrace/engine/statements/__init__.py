"""Statements that only tell (SHOW, DESCRIBE, EXPLAIN, ASSERT), INSERT … VALUES and connectors.

One module for each theme; a statement's handler is found by its type.
"""

from __future__ import annotations

from headrace.engine.statements import (
    assertions,
    connectors,
    elsewhere,
    facts,
    functions,
    inserting,
    queries,
    sources,
    topics,
)
from headrace.engine.statements.handling import Asked, answer, handled_kinds, is_answered

__all__ = [
    "Asked",
    "answer",
    "assertions",
    "connectors",
    "elsewhere",
    "facts",
    "functions",
    "handled_kinds",
    "inserting",
    "is_answered",
    "queries",
    "sources",
    "topics",
]
