"""The engine's interface to the server. Methods may block, so the server calls them on threads.

User errors arrive as `HeadraceError`. One that `steps` raises may carry `entities`: the answers
of the statements before the failed one.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Protocol

from headrace.catalog.catalog import Catalog
from headrace.model.entities import (
    ClusterStatus,
    CommandStatus,
    Entity,
    Health,
    Json,
    ServerInfo,
)
from headrace.model.requests import QueryKind, Request, ResultRow
from headrace.model.schema import Schema


class RunningQuery(Protocol):
    """A running query. `close` may be called from any thread, at any time, and more than once."""

    @property
    def id(self) -> str: ...

    @property
    def kind(self) -> QueryKind: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def final_message(self) -> str | None:
        """Why the query ended by itself (`Limit Reached`, `Query Completed`); None for none."""
        ...

    def next_batch(self, timeout: float) -> Sequence[ResultRow] | None:
        """The next rows; empty when none came within `timeout` seconds; None when it is over."""
        ...

    def close(self) -> None: ...


class PrintedTopic(Protocol):
    """The output of PRINT, as lines of text without their line ends."""

    def next_batch(self, timeout: float) -> Sequence[str] | None:
        """As with a query: the next lines, none within `timeout` seconds, or None at the end."""
        ...

    def close(self) -> None: ...


class Inserter(Protocol):
    """Inserts rows into one stream or table."""

    def insert(self, row: Mapping[str, object]) -> None:
        """Takes one row, by column name; numbers with a fraction are `decimal.Decimal`."""
        ...

    def flush(self) -> None:
        """Returns when every row taken so far is in the topic."""
        ...

    def close(self) -> None: ...


class StatementEngine(Protocol):
    """The interface for running the statements of a file."""

    @property
    def catalog(self) -> Catalog: ...

    def execute(self, request: Request) -> Sequence[Entity]:
        """Runs the statements of the request; waits as long as they do."""
        ...


class Engine(Protocol):
    """The interface for the endpoints."""

    def steps(self, request: Request) -> Generator[float, None, Sequence[Entity]]:
        """Runs the statements of the request. Yields seconds to wait before it is asked to go on;
        each step may come from another thread. Left alone, it does no more."""
        ...

    def query(self, request: Request) -> RunningQuery:
        """Starts the one SELECT of the request, push or pull as its text says."""
        ...

    def answer_now(self, request: Request) -> RunningQuery | None:
        """The query, if its rows are local and fresh; None sends it to `query`.

        Called on the event loop, unlike all others: it must take microseconds and never wait.
        A lookup by key is worth it; a thread would cost more than the lookup.
        """
        ...

    def print_topic(self, request: Request) -> PrintedTopic: ...

    def insert(self, target: str, properties: Mapping[str, object]) -> Inserter: ...

    def close_query(self, query_id: str) -> bool:
        """Ends a push query; False if there is none of that id."""
        ...

    def info(self) -> ServerInfo: ...

    def health(self) -> Health: ...

    def is_ready(self) -> bool:
        """Whether every query has been started once, here or on another server. Called on the event
        loop: it never waits."""
        ...

    def cluster_status(self) -> ClusterStatus: ...

    def hear(self, host: str) -> None:
        """Takes the heartbeat of another server, `host:port`. Called on the event loop."""
        ...

    def hear_lags(self, host: str, lags: Mapping[str, Json], at_ms: int) -> None:
        """Takes how far another server's stores are behind. Called on the event loop."""
        ...

    def command_status(self, command_id: str) -> CommandStatus | None: ...

    def command_statuses(self) -> Mapping[str, CommandStatus]: ...

    def check_property(self, name: str) -> None:
        """Raises HeadraceError unless a client may set this property."""
        ...

    def terminate_cluster(self, delete_topics: Sequence[str]) -> Sequence[Entity]:
        """Terminates every query and empties the catalog; `delete_topics` are names or patterns."""
        ...
