"""Error responses: an error entity with the HTTP status of its code."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.model.entities import Entity, ErrorEntity, StatementErrorEntity
from headrace.model.errors import HeadraceError, ParseError, StatementError
from headrace.server.response_formats import JSON, dumps
from headrace.sql.cursor import TOO_LARGE

log = logging.getLogger(__name__)

# ksqlDB's error codes: the HTTP status and two digits of detail.
BAD_REQUEST = 40000
MAX_PUSH_QUERIES = 40003
UNAUTHORIZED = 40100
FORBIDDEN = 40300
NOT_FOUND = 40400
NOT_ACCEPTABLE = 40600
BODY_TOO_LARGE = 41300
UNSUPPORTED_CONTENT_TYPE = 41500
TOO_MANY_REQUESTS = 42900
SERVER_ERROR = 50000
SHUTTING_DOWN = 50303

INTERNAL = ErrorEntity(
    SERVER_ERROR,
    "The server encountered an internal error when processing the query."
    " Please consult the server logs for more information.",
)
STOPPING = ErrorEntity(SHUTTING_DOWN, "The server is shutting down")


class ApiError(HeadraceError):
    """A request that the server itself refuses."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code


def entity_of(error: Exception, text: str | None = None) -> ErrorEntity:
    """The entity for a failure; `text` is the statement it belongs to, if the error has none."""
    if isinstance(error, RecursionError):  # nested deeper than those can go who walk through it
        error = ParseError(TOO_LARGE, statement=text)
    if not isinstance(error, HeadraceError):
        log.error("Request failed", exc_info=error)
        return INTERNAL
    if isinstance(error, StatementError):
        statement = error.statement if error.statement is not None else text or ""
        done: tuple[Entity, ...] = tuple(getattr(error, "entities", ()))
        return StatementErrorEntity(error.error_code, error.message, statement, done)
    return ErrorEntity(error.error_code, error.message)


def error_response(entity: ErrorEntity, headers: dict[str, str] | None = None) -> Response:
    body = dumps(entity.to_json())
    return Response(body, status_code=entity.status, headers=headers, media_type=JSON)


async def http_error(request: Request, error: Exception) -> Response:
    """Unknown endpoints and wrong methods, as the router reports them."""
    assert isinstance(error, HTTPException)
    path, method = request.url.path, request.method
    reasons = {
        404: f"Not Found: {path}",
        405: f"Method Not Allowed: {method} {path}",
    }
    message = reasons.get(error.status_code, error.detail)
    headers = dict(error.headers or {})
    return error_response(ErrorEntity(error.status_code * 100, message), headers)


class Guard:
    """The outermost middleware: counts requests, and turns any exception into an error entity."""

    def __init__(self, app: ASGIApp, counter: RequestCounter) -> None:
        self.app = app
        self.counter = counter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.counter.under_way += 1
        try:
            if scope["type"] == "http":
                await self._guarded(scope, receive, send)
            else:
                await self.app(scope, receive, send)
        finally:
            self.counter.under_way -= 1

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception as error:  # whatever it is, the client gets an error entity
            entity = entity_of(error)
            if not started:
                await error_response(entity)(scope, receive, send)


@dataclass
class RequestCounter:
    """The number of requests in progress; changed on the event loop only."""

    under_way: int = 0
