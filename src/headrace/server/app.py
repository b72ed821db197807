"""The application: a table of endpoints, and the layers every request passes."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route, WebSocketRoute

from headrace.server import status
from headrace.server.auth import Authentication, read_users
from headrace.server.failures import Guard, http_error
from headrace.server.headless import Headless
from headrace.server.inserts import inserts_stream
from headrace.server.origins import Origins
from headrace.server.ports import Engine
from headrace.server.queries import QUERY, QUERY_STREAM, close_query
from headrace.server.settings import ServerSettings
from headrace.server.statements import ksql, terminate
from headrace.server.streams import Services
from headrace.server.websocket import ws_query
from headrace.server.workers import Workers

# Tried in this order: those that are asked most come first.
ROUTES: tuple[BaseRoute, ...] = (
    Route("/query-stream", QUERY_STREAM.__call__, methods=["POST"]),
    Route("/query", QUERY.__call__, methods=["POST"]),
    Route("/ksql", ksql, methods=["POST"]),
    Route("/ksql/terminate", terminate, methods=["POST"]),
    Route("/close-query", close_query, methods=["POST"]),
    Route("/inserts-stream", inserts_stream, methods=["POST"]),
    Route("/info", status.info),
    Route("/healthcheck", status.healthcheck),
    Route("/clusterStatus", status.cluster_status),
    Route("/status", status.command_statuses),
    Route("/status/{type}/{entity}/{action}", status.command_status),
    Route("/is_valid_property/{property}", status.is_valid_property),
    Route("/v1/metadata", status.metadata),
    Route("/v1/metadata/id", status.cluster_id),
    Route("/chc/live", status.alive),
    Route("/chc/ready", status.alive),
    WebSocketRoute("/ws/query", ws_query),
)


def build_app(
    engine: Engine,
    settings: ServerSettings,
    pages: Sequence[BaseRoute] = (),
    headless: bool = False,
) -> Starlette:
    """The server's application; `pages` are further routes, the web page at `/` among them.

    `headless`: nobody may change anything.
    """
    front = tuple(pages) or (Route("/", status.root),)
    services = Services(engine, settings, Workers(settings.limits))
    layers = [
        Middleware(Guard, counter=services.requests),
        Middleware(Origins, allowed=settings.origins),
    ]
    if settings.credentials is not None:
        users = read_users(settings.credentials)
        layers.append(
            Middleware(Authentication, users=users, realm=settings.realm, workers=services.workers)
        )
    if headless:
        layers.append(Middleware(Headless))
    app = Starlette(
        routes=[*ROUTES, *front],
        middleware=layers,
        exception_handlers={HTTPException: http_error},
    )
    app.state.services = services
    return app
