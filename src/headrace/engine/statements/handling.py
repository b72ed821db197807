"""Who answers which kind of statement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from headrace.engine.session import Session
from headrace.model.entities import Entity
from headrace.model.settings import Settings
from headrace.sql import ast

if TYPE_CHECKING:
    from headrace.catalog.catalog import Catalog
    from headrace.engine.engine import Engine
    from headrace.engine.world import World


@dataclass(frozen=True)
class Asked:
    """What a handler may look at besides the statement: its text, the engine, the session."""

    text: str
    engine: Engine
    session: Session

    @property
    def catalog(self) -> Catalog:
        return self.engine.catalog

    @property
    def world(self) -> World:
        return self.engine.world

    @cached_property
    def settings(self) -> Settings:
        return self.session.settings(self.world.settings)


S = TypeVar("S", bound=ast.Statement)
Handler = Callable[[S, Asked], Entity | None]
_HANDLERS: dict[type[ast.Statement], Callable[..., Entity | None]] = {}


def handles(*kinds: type[S]) -> Callable[[Handler[S]], Handler[S]]:
    """Declares who answers a kind of statement."""

    def declare(handler: Handler[S]) -> Handler[S]:
        for kind in kinds:
            _HANDLERS[kind] = handler
        return handler

    return declare


def is_answered(statement: ast.Statement) -> bool:
    return type(statement) in _HANDLERS


def handled_kinds() -> frozenset[type[ast.Statement]]:
    return frozenset(_HANDLERS)


def answer(statement: ast.Statement, text: str, engine: Engine, session: Session) -> Entity | None:
    return _HANDLERS[type(statement)](statement, Asked(text, engine, session))
