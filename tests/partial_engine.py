"""Statements asked of an engine of which only parts are there."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from headrace.catalog.catalog import Catalog
from headrace.engine.statements.assertions import eventually
from headrace.engine.statements.handling import Queries, StatementContext, answer
from headrace.engine.statements.request_session import Session
from headrace.model.settings import Settings
from headrace.sql.parser import parse_statement


def ask(
    text: str,
    *,
    settings: dict[str, object] | None = None,
    properties: dict[str, object] | None = None,
    variables: dict[str, str] | None = None,
    catalog: Catalog | None = None,
    queries: Queries | None = None,
    **env: Any,
) -> dict[str, Any]:
    """The answer to a statement, as JSON."""
    context = StatementContext(
        text,
        Session(properties or {}, variables or {}),
        catalog or Catalog(),
        SimpleNamespace(settings=Settings(settings or {}), **env),
        queries or Queries({}, (), SimpleNamespace()),
        SimpleNamespace(),
        {},
    )
    steps = eventually(lambda: answer(parse_statement(text), context))
    while True:
        try:
            time.sleep(next(steps))
        except StopIteration as end:
            entity = end.value
            break
    assert entity is not None
    return entity.to_json()
