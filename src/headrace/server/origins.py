"""Middleware that refuses requests of foreign web pages and to unknown host names
(`headrace.model.allowed_callers` says why)."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.model.allowed_callers import Callers
from headrace.server.error_responses import FORBIDDEN, ApiError, entity_of, error_response

_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})


class Origins:
    def __init__(self, app: ASGIApp, callers: Callers) -> None:
        self.app = app
        self.callers = callers
        self.cors = CORSMiddleware(
            app,
            allow_origins=sorted(callers.origins),
            allow_methods=["GET", "POST", "HEAD"],
            allow_headers=["*"],
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host, origin = headers.get("host"), headers.get("origin")
        # A link on any page may lead here: only what could change something is refused.
        with_body = scope.get("method", "GET") not in _WITHOUT_BODY
        site = headers.get("sec-fetch-site") if with_body else None
        refusal = self.callers.refusal(host, origin, site)
        if refusal is not None:
            await _refuse(scope, receive, send, refusal)
        elif origin is None or self.callers.is_own(origin, host):
            await self.app(scope, receive, send)
        else:
            await self.cors(scope, receive, send)


async def _refuse(scope: Scope, receive: Receive, send: Send, reason: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": reason[:120]})
    else:
        error = ApiError(FORBIDDEN, reason)
        await error_response(entity_of(error))(scope, receive, send)
