"""The ASGI application: endpoints and middleware."""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from headrace.server import status
from headrace.server.auth import Authentication, read_users
from headrace.server.endpoints import ENDPOINTS
from headrace.server.engine_interface import Engine
from headrace.server.error_responses import Guard, http_error
from headrace.server.headless import Headless
from headrace.server.openapi import describe
from headrace.server.origins import Origins
from headrace.server.response_formats import JSON, dumps
from headrace.server.response_headers import ResponseHeaders
from headrace.server.settings import Access, ServerSettings
from headrace.server.streams import Services
from headrace.server.websocket import ws_query

OPENAPI_PATH = "/openapi.json"
WEBSOCKET_PATH = "/ws/query"


async def openapi(request: Request) -> Response:
    return Response(dumps(describe(ENDPOINTS)), media_type=JSON)


ROUTES: tuple[BaseRoute, ...] = (
    *(Route(e.path, e.handler, methods=[e.method]) for e in ENDPOINTS),
    Route(OPENAPI_PATH, openapi),
    WebSocketRoute(WEBSOCKET_PATH, ws_query),
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
    services = Services(engine, settings)
    layers = [
        Middleware(Guard, counter=services.requests),
        Middleware(Origins, callers=settings.callers()),
    ]
    if settings.headers:
        layers.insert(0, Middleware(ResponseHeaders, headers=settings.headers))
    access = settings.access
    writing = frozenset(e.path for e in ENDPOINTS if e.writes)
    if access is not None:
        layers.append(
            Middleware(
                Authentication,
                users=read_users(access.credentials),
                access=access,
                open_paths=_open_paths(access),
                writing=writing,
                workers=services.workers,
            )
        )
    if headless:
        layers.append(Middleware(Headless, writing=writing))
    app = Starlette(
        routes=[*ROUTES, *front],
        middleware=layers,
        exception_handlers={HTTPException: http_error},
    )
    app.state.services = services
    return app


def _open_paths(access: Access) -> re.Pattern[str]:
    """The paths that need no password."""
    paths = [re.escape(e.path) for e in ENDPOINTS if e.open]
    paths += [re.escape(pattern).replace(r"\*", ".*") for pattern in access.open_paths]
    return re.compile("|".join(paths))
