"""The table of endpoints, from which routes, roles and the OpenAPI description are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from headrace.server import bodies, status
from headrace.server.bodies import Member
from headrace.server.insert_endpoints import inserts_stream
from headrace.server.query_endpoints import QUERY, QUERY_STREAM, close_query
from headrace.server.response_formats import DELIMITED, JSON, KSQL_JSON
from headrace.server.statement_endpoints import ksql, terminate

Handler = Callable[[HttpRequest], Awaitable[Response]]

_EITHER_JSON = (KSQL_JSON, JSON)


@dataclass(frozen=True)
class Endpoint:
    """An endpoint; `answers` are the content types of its responses, the preferred one first.

    With `lines`, the body goes on after its first object: one JSON object a line.
    """

    path: str
    handler: Handler = field(repr=False)
    doc: str
    answers: tuple[str, ...] = _EITHER_JSON
    body: tuple[Member[object], ...] | None = None
    lines: bool = False
    writes: bool = (
        False  # only for those who may change things; statements are looked at one by one
    )
    open: bool = False  # to those without a password, too

    @property
    def method(self) -> str:
        return "GET" if self.body is None else "POST"


# Tried in this order: those that are asked most come first.
ENDPOINTS = (
    Endpoint(
        "/query-stream",
        QUERY_STREAM.__call__,
        "Runs a push or pull query, or PRINT, and streams its rows.",
        tuple(QUERY_STREAM.answers),
        bodies.QUERY_STREAM_BODY,
    ),
    Endpoint(
        "/query",
        QUERY.__call__,
        "The same, in the older form.",
        tuple(QUERY.answers),
        bodies.STATEMENT_BODY,
    ),
    Endpoint(
        "/ksql", ksql, "Runs statements other than SELECT and PRINT.", body=bodies.STATEMENT_BODY
    ),
    Endpoint(
        "/ksql/terminate",
        terminate,
        "Ends every query, forgets every statement, and deletes the topics named.",
        body=(bodies.DELETE_TOPIC_LIST,),
        writes=True,
    ),
    Endpoint("/close-query", close_query, "Ends a push query.", (JSON,), body=(bodies.QUERY_ID,)),
    Endpoint(
        "/inserts-stream",
        inserts_stream,
        "Takes rows, a JSON object a line, and acknowledges each.",
        (DELIMITED, JSON),
        (bodies.TARGET, bodies.PROPERTIES),
        lines=True,
        writes=True,
    ),
    Endpoint("/info", status.info, "What the server is."),
    Endpoint("/healthcheck", status.healthcheck, "How it is: 200 when healthy, 503 otherwise."),
    Endpoint("/clusterStatus", status.cluster_status, "Which servers there are, and how."),
    Endpoint(
        "/heartbeat",
        status.heartbeat,
        "Takes another server's heartbeat, for /clusterStatus.",
        body=(bodies.HOST_INFO, bodies.TIMESTAMP),
        writes=True,
    ),
    Endpoint(
        "/lag",
        status.lag,
        "Takes how far another server's stores are behind, for /clusterStatus.",
        body=(bodies.KSQL_HOST, bodies.HOST_STORE_LAGS),
        writes=True,
    ),
    Endpoint("/status", status.command_statuses, "What became of every command."),
    Endpoint(
        "/status/{type}/{entity}/{action}",
        status.command_status,
        "What became of one command, by the commandId that /ksql answered.",
    ),
    Endpoint(
        "/is_valid_property/{property}",
        status.is_valid_property,
        "Whether a client may set a property; an error says why not.",
    ),
    Endpoint("/v1/metadata", status.metadata, "The server's version, and what it belongs to."),
    Endpoint("/v1/metadata/id", status.cluster_id, "What it belongs to."),
    Endpoint("/chc/live", status.alive, "Whether the process answers.", (JSON,), open=True),
    Endpoint(
        "/chc/ready",
        status.ready,
        "Whether its queries run, or another server's do: 200 if so, 503 otherwise.",
        (JSON,),
        open=True,
    ),
)
