"""Test cases, independent of their file format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Any  # what json.loads gives, with Decimal for numbers that have a fraction


@dataclass(frozen=True)
class Window:
    """The window in a record's key; `end` matters for sessions only."""

    start: int
    end: int | None = None
    session: bool = False


@dataclass(frozen=True)
class CaseRecord:
    """A record to be written or expected; without a time, any time is expected."""

    topic: str
    key: Json = None
    value: Json = None
    timestamp: int | None = None
    window: Window | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class CaseSchema:
    """A schema that stands in the registry before the statements run."""

    text: str
    format: str
    id: int | None = None
    references: tuple[CaseReference, ...] = ()


@dataclass(frozen=True)
class CaseReference:
    """A schema that another one imports."""

    name: str
    subject: str
    text: str


@dataclass(frozen=True)
class CaseTopic:
    """A topic that exists before the statements run."""

    name: str
    partitions: int | None = None
    replicas: int | None = None
    key: CaseSchema | None = None
    value: CaseSchema | None = None


@dataclass(frozen=True)
class ExpectedError:
    """An error: `message` is part of its text, `kind` the name of ksqlDB's Java class."""

    message: str = ""
    kind: str = ""

    @property
    def comes_with_data(self) -> bool:
        """The statements are fine; a record is not."""
        return self.kind.endswith("StreamsException")


@dataclass(frozen=True)
class ExpectedSource:
    """The expected final state of a stream or table; None matches anything."""

    name: str
    kind: str
    schema: str | None = None
    key_format: str | None = None
    value_format: str | None = None
    key_features: frozenset[str] | None = None
    value_features: frozenset[str] | None = None
    window: str | None = None
    window_size_ms: int | None = None
    read_only: bool | None = None


@dataclass(frozen=True)
class ExpectedTopic:
    """What a source's topic looks like in the end."""

    name: str
    partitions: int | None = None
    key_format: str | None = None
    value_format: str | None = None
    key_schema: Json = None
    value_schema: Json = None


@dataclass(frozen=True)
class Case:
    """One test. `skip` says why it is not to be run."""

    file: str
    name: str
    skip: str | None = field(default=None, kw_only=True)
    error: ExpectedError | None = field(default=None, kw_only=True)

    @property
    def label(self) -> str:
        return f"{self.file}: {self.name}"

    @property
    def runs_queries(self) -> bool:
        """Whether records flow; other cases are only planned."""
        return False


@dataclass(frozen=True)
class RecordCase(Case):
    """Statements, records in, records out: ksqlDB's JSON form."""

    statements: tuple[str, ...] = ()
    properties: Mapping[str, object] = field(default_factory=dict)
    topics: tuple[CaseTopic, ...] = ()
    inputs: tuple[CaseRecord, ...] = ()
    outputs: tuple[CaseRecord, ...] = ()
    sources: tuple[ExpectedSource, ...] = ()
    sink_topics: tuple[ExpectedTopic, ...] = ()

    @property
    def script(self) -> str:
        """All statements, each on a line of its own, which errors count."""
        return "\n".join(self.statements)

    @property
    def runs_queries(self) -> bool:
        if self.error is not None:
            return self.error.comes_with_data
        return bool(self.inputs or self.outputs)


@dataclass(frozen=True)
class ServerCase(Case):
    """Statements and queries, and what a server answers to each.

    A response holds `admin`, which the answer contains, or `query`, the lines of its rows.
    `waits_for_query`: the records are only written once a query listens.
    """

    statements: tuple[str, ...] = ()
    properties: Mapping[str, object] = field(default_factory=dict)
    topics: tuple[CaseTopic, ...] = ()
    inputs: tuple[CaseRecord, ...] = ()
    outputs: tuple[CaseRecord, ...] = ()
    responses: tuple[Json, ...] = ()
    waits_for_query: bool = False
    status: int | None = None

    @property
    def runs_queries(self) -> bool:
        return True
