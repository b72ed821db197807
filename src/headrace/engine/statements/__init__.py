"""Statements: their handlers, the changes that they plan, and how changes are applied.

A module with handlers is imported here, which is how they are known.
"""

from headrace.engine.statements import (
    assertions,
    connectors,
    inserts,
    other_endpoints,
    show_functions,
    show_queries,
    show_settings,
    show_sources,
    show_topics,
)

__all__ = [
    "assertions",
    "connectors",
    "inserts",
    "other_endpoints",
    "show_functions",
    "show_queries",
    "show_settings",
    "show_sources",
    "show_topics",
]
