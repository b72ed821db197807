"""What an origin gives: the statements of a ksqlDB in order, each with what it was made under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# How ksqlDB calls what its queries have in Kafka.
INTERNAL = "_confluent-ksql-"
DEFAULT_SERVICE = "default_"
PROCESSING_LOG = "KSQL_PROCESSING_LOG"


def command_topic(service_id: str) -> str:
    return f"{INTERNAL}{service_id}_command_topic"


def consumer_group(service_id: str, query_id: str) -> str:
    return f"{INTERNAL}{service_id}query_{query_id}"


@dataclass(frozen=True)
class Recorded:
    """A statement of a ksqlDB, its variables replaced. `place` says where it stands, for people.

    `server` and `session` are the settings in force, the latter the user's own. Of what ksqlDB
    had planned, where that is known: `query_id` and its consumer `group`; `schema`, the columns of
    the source in ksqlDB's text; `wrapped`, whether single values are records. `at` is when it was
    made, in milliseconds. `ended`: its query was terminated, and its source stayed.
    """

    text: str
    place: str
    server: Mapping[str, object] = field(default_factory=dict)
    session: Mapping[str, object] = field(default_factory=dict)
    query_id: str | None = None
    group: str | None = None
    schema: str | None = None
    wrapped: bool | None = None
    at: int | None = None
    ended: bool = False
    paused: bool = False


@dataclass(frozen=True)
class Unreadable:
    """What stands at a place and cannot be understood, and why."""

    place: str
    reason: str


@dataclass(frozen=True)
class History:
    """Everything an origin tells, in order. `has_run`: a ksqlDB has run these statements, so that
    their topics were there. `functions` are ksqlDB's descriptions of those of its functions that
    Headrace does not have, by their names, if the origin knows them."""

    origin: str
    entries: tuple[Recorded | Unreadable, ...]
    has_run: bool = True
    functions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
