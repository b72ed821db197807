"""The application: the endpoints, and the layers every request passes."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from headrace.server import status
from headrace.server.answers import JSON, dumps
from headrace.server.auth import Authentication, Doors, read_users
from headrace.server.endpoints import ENDPOINTS
from headrace.server.failures import Guard, http_error
from headrace.server.headless import Headless
from headrace.server.openapi import describe
from headrace.server.origins import Origins
from headrace.server.ports import Engine
from headrace.server.settings import ServerSettings
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
    access = settings.access
    doors = Doors.of(ENDPOINTS, access.open_paths if access else ())
    if access is not None:
        users = read_users(access.credentials)
        layers.append(
            Middleware(
                Authentication, users=users, access=access, doors=doors, workers=services.workers
            )
        )
    if headless:
        layers.append(Middleware(Headless, writing=doors.writing))
    app = Starlette(
        routes=[*ROUTES, *front],
        middleware=layers,
        exception_handlers={HTTPException: http_error},
    )
    app.state.services = services
    return app
