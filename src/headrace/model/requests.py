"""Requests and result rows, shared by the server and the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


@dataclass(frozen=True)
class Request:
    """Statements to run, with what holds for this request alone.

    `properties` are the client's overrides (`streamsProperties`), `variables` its session
    variables. Nothing runs before the command `after_command` has. A push query goes on from where
    the token `continuation` says.
    """

    text: str
    properties: Mapping[str, object] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    after_command: int | None = None
    continuation: str | None = None


class QueryKind(Enum):
    PUSH = "PUSH"  # runs until it is closed or its LIMIT is reached
    PULL = "PULL"  # answers from what is there, and ends


class ResultRow(NamedTuple):
    """One row of a query. A tombstone has the key's values only; the others are None.

    With a `token` it is no row: it says where to go on after the rows before it, and comes as a
    batch of its own."""

    values: Sequence[object]
    tombstone: bool = False
    token: str | None = None


# How a push query that ended by itself says so.
LIMIT_REACHED = "Limit Reached"
QUERY_COMPLETED = "Query Completed"
