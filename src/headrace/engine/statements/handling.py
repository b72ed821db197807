"""The table of statement handlers, and the context that a handler gets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeVar

from headrace.catalog.catalog import Catalog
from headrace.engine.cluster.membership import Membership
from headrace.engine.environment import Environment
from headrace.engine.queries.persistent import PersistentQuery
from headrace.engine.queries.push import PushQuery
from headrace.engine.queries.statistics import TopicStatistics
from headrace.engine.statements.request_session import Session
from headrace.model.entities import Entity
from headrace.model.settings import Settings
from headrace.sql import ast


class PersistentQueries(Protocol):
    """The persistent queries of a server, as handlers may look at them."""

    def __iter__(self) -> Iterator[PersistentQuery]: ...

    def get(self, id_: str) -> PersistentQuery | None: ...


class InsertValues(Protocol):
    """Writes the rows of INSERT … VALUES."""

    def values(self, statement: ast.InsertValues, catalog: Catalog, settings: Settings) -> None: ...


@dataclass(frozen=True)
class Queries:
    """The queries of a server, where they run, and what they have done with their topics."""

    persistent: PersistentQueries
    push: Iterable[PushQuery]
    members: Membership
    statistics: TopicStatistics = field(default_factory=TopicStatistics)


@dataclass(frozen=True)
class StatementContext:
    """A statement's text, and what its handler may look at. `unplanned` has the commands that can
    no longer be planned, and why."""

    text: str
    session: Session
    catalog: Catalog
    env: Environment
    queries: Queries
    inserts: InsertValues
    unplanned: Mapping[str, str]

    @cached_property
    def settings(self) -> Settings:
        return self.session.settings(self.env.settings)

    @property
    def texts(self) -> dict[str, str]:
        """The settings in force as planning reads them."""
        return self.session.texts(self.env.settings)


S = TypeVar("S", bound=ast.Statement)
Handler = Callable[[S, StatementContext], Entity | None]
_HANDLERS: dict[type[ast.Statement], Callable[..., Entity | None]] = {}


def handles(*kinds: type[S]) -> Callable[[Handler[S]], Handler[S]]:
    """Declares the handler of a kind of statement."""

    def declare(handler: Handler[S]) -> Handler[S]:
        for kind in kinds:
            _HANDLERS[kind] = handler
        return handler

    return declare


def handled_kinds() -> frozenset[type[ast.Statement]]:
    return frozenset(_HANDLERS)


def answer(statement: ast.Statement, context: StatementContext) -> Entity | None:
    return _HANDLERS[type(statement)](statement, context)
