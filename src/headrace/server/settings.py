"""The settings of the REST server: address, TLS, access, limits."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from headrace.model.allowed_callers import ALLOWED_HOSTS, Callers
from headrace.model.errors import HeadraceError
from headrace.model.settings import Settings
from headrace.server.response_headers import Header, read_headers

EVERYONE = "*"


@dataclass(frozen=True)
class Limits:
    """How much one client, and all of them together, may ask for."""

    body_bytes: int = 4 * 1024 * 1024  # of a request body, and of one row of an insert stream
    push_queries: int = 100  # at once
    pull_queries: int | None = None  # at once
    prints: int = 32  # at once
    insert_streams: int = 100  # at once
    assertions: int = 100  # that wait for what they assert
    waiting_requests: int = 1000  # that no thread has taken up yet
    query_seconds: float | None = None  # how long a push query may last
    query_rows: int | None = None  # how many rows one query may return
    pulls_per_second: int | None = None
    pull_megabytes: int | None = None  # of answers, within an hour
    push_megabytes: int | None = None
    idle_seconds: int = 86_400  # of a connection

    @staticmethod
    def of(settings: Settings) -> Limits:
        longest = settings["ksql.query.push.max.duration.ms"]
        return Limits(
            body_bytes=settings.number("ksql.server.max.request.bytes"),
            push_queries=settings.number("ksql.max.push.queries"),
            pull_queries=_optional(settings, "ksql.query.pull.max.concurrent.requests"),
            prints=settings.number("ksql.server.max.prints"),
            insert_streams=settings.number("ksql.server.max.insert.streams"),
            assertions=settings.number("ksql.server.max.waiting.assertions"),
            waiting_requests=settings.number("ksql.server.max.waiting.requests"),
            query_seconds=None if longest is None else float(longest) / 1000,
            query_rows=_optional(settings, "ksql.query.max.rows"),
            pulls_per_second=_optional(settings, "ksql.query.pull.max.qps"),
            pull_megabytes=_optional(settings, "ksql.query.pull.max.hourly.bandwidth.megabytes"),
            push_megabytes=_optional(settings, "ksql.query.push.v2.max.hourly.bandwidth.megabytes"),
            idle_seconds=settings.number("ksql.idle.connection.timeout.seconds"),
        )


@dataclass(frozen=True)
class Tls:
    """PEM files. With `client_ca`, only clients with a certificate of that authority are let in."""

    certificate: Path
    key: Path
    key_password: str | None = None
    client_ca: Path | None = None

    @staticmethod
    def of(settings: Settings) -> Tls:
        store = _given(settings, "ssl.keystore.location")
        certificate = settings.text("listeners.ssl.certificate") or store
        key = settings.text("listeners.ssl.key") or certificate
        if certificate is None or key is None:
            raise HeadraceError(
                "An https listener needs a certificate: set listeners.ssl.certificate and "
                "listeners.ssl.key to PEM files."
            )
        asked = _given(settings, "ssl.client.authentication") or "NONE"
        trusted = _given(settings, "ssl.truststore.location")
        if asked.upper() == "REQUIRED" and trusted is None:
            raise HeadraceError(
                "ssl.client.authentication=REQUIRED needs ssl.truststore.location: a PEM file."
            )
        return Tls(
            _pem(certificate),
            _pem(key),
            settings.text("listeners.ssl.key.password") or _given(settings, "ssl.key.password"),
            _pem(trusted) if trusted is not None and asked.upper() == "REQUIRED" else None,
        )


@dataclass(frozen=True)
class Access:
    """Who may access the server: a file's users in one of `roles`; `open_paths` are for all."""

    credentials: Path
    realm: str = "headrace"
    roles: frozenset[str] = frozenset({EVERYONE})
    open_paths: tuple[str, ...] = ()

    @staticmethod
    def of(settings: Settings) -> Access | None:
        if settings.text("authentication.method") != "basic":
            return None
        file = settings.text("authentication.credentials.file")
        if file is None:
            raise HeadraceError(
                "authentication.method=BASIC needs authentication.credentials.file; "
                "`headrace password` makes its lines."
            )
        return Access(
            Path(file),
            settings.text("authentication.realm") or "headrace",
            frozenset(_list(settings, "authentication.roles")),
            _list(settings, "authentication.skip.paths"),
        )


@dataclass(frozen=True)
class ServerSettings:
    """The server's settings; `origins` are web pages besides its own that may call the API.

    `hosts`: names that the server is called by besides those of the address it listens on.
    """

    host: str = "127.0.0.1"
    port: int = 8088  # 0: any free one
    limits: Limits = field(default_factory=Limits)
    origins: tuple[str, ...] = ()
    tls: Tls | None = None
    access: Access | None = None  # None: no authentication
    hosts: tuple[str, ...] = ()
    headers: tuple[Header, ...] = ()  # of every answer

    def callers(self) -> Callers:
        return Callers.of(self.host, self.hosts, self.origins, socket.gethostname())

    @staticmethod
    def of(settings: Settings, host: str, port: int) -> ServerSettings:
        """The settings at an address that was derived from `listeners`."""
        secure = Listener.of(settings).secure
        return ServerSettings(
            host,
            port,
            Limits.of(settings),
            _list(settings, "access.control.allow.origin"),
            Tls.of(settings) if secure else None,
            Access.of(settings),
            (*_list(settings, ALLOWED_HOSTS), *_advertised(settings)),
            read_headers(settings.text("response.http.headers.config") or ""),
        )


@dataclass(frozen=True)
class Listener:
    """The address of `listeners`; `given` if it is not the default, which may be replaced."""

    host: str
    port: int
    secure: bool
    given: bool

    @staticmethod
    def of(settings: Settings) -> Listener:
        addresses = _list(settings, "listeners")
        if len(addresses) != 1:
            raise HeadraceError(f"listeners names {len(addresses)} addresses: it takes one.")
        try:
            parts = urlsplit(addresses[0])
            port = parts.port
        except ValueError:
            port = None
        if port is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise HeadraceError(
                f"listeners: '{addresses[0]}' is no address like http://0.0.0.0:8088"
            )
        given = settings.given.get("listeners") is not None
        return Listener(parts.hostname, port, parts.scheme == "https", given)


def _advertised(settings: Settings) -> tuple[str, ...]:
    told = settings.text("ksql.advertised.listener")
    name = urlsplit(told).hostname if told is not None else None
    return () if name is None else (name,)


def _optional(settings: Settings, name: str) -> int | None:
    return None if settings[name] is None else settings.number(name)


def _list(settings: Settings, name: str) -> tuple[str, ...]:
    parts = (part.strip() for part in (settings.text(name) or "").split(","))
    return tuple(part for part in parts if part)


def _given(settings: Settings, name: str) -> str | None:
    """A setting that belongs to the Kafka clients too, and so has no declaration of its own."""
    value = settings.given.get(name)
    return None if value is None else str(value)


def _pem(path: str) -> Path:
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise HeadraceError(f"Cannot read {path}: {error.strerror}") from None
    if b"-----BEGIN " not in text:
        raise HeadraceError(
            f"{path} is no PEM file. Of a Java key store one is made with `keytool "
            "-importkeystore … -deststoretype PKCS12` and `openssl pkcs12 -in … -out …`."
        )
    return Path(path)
