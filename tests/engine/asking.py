"""Statements asked of an engine of which only parts are there."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from headrace.catalog.catalog import Catalog
from headrace.engine.session import Session
from headrace.engine.statements import answer
from headrace.engine.statements.assertions import eventually
from headrace.model.settings import Settings
from headrace.sql.parser import parse_statement


def ask(
    text: str,
    *,
    settings: dict[str, object] | None = None,
    properties: dict[str, object] | None = None,
    variables: dict[str, str] | None = None,
    catalog: Catalog | None = None,
    **world: Any,
) -> dict[str, Any]:
    """The answer to a statement, as JSON."""
    engine = SimpleNamespace(
        world=SimpleNamespace(settings=Settings(settings or {}), **world),
        catalog=catalog or Catalog(),
    )
    session = Session(properties or {}, variables or {})
    steps = eventually(lambda: answer(parse_statement(text), text, engine, session))
    while True:
        try:
            time.sleep(next(steps))
        except StopIteration as end:
            entity = end.value
            break
    assert entity is not None
    return entity.to_json()
