"""What a server may be told: where it listens, what it allows, how much it takes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Limits:
    """How much one client, and all of them together, may ask for."""

    body_bytes: int = 4 * 1024 * 1024  # of a request body, and of one row of an insert stream
    push_queries: int = 100  # at once
    waiting_requests: int = 1000  # that no thread has taken up yet
    query_seconds: float | None = None  # how long a push query may last
    query_rows: int | None = None  # how many rows one query may return


@dataclass(frozen=True)
class Tls:
    certificate: Path
    key: Path
    key_password: str | None = None


@dataclass(frozen=True)
class ServerSettings:
    """`origins`: web pages that may call the API besides the server's own (`*` for all)."""

    host: str = "127.0.0.1"
    port: int = 8088  # 0: any free one
    limits: Limits = field(default_factory=Limits)
    origins: tuple[str, ...] = ()
    tls: Tls | None = None
    credentials: Path | None = None  # a file of users; None: no authentication
    realm: str = "headrace"
