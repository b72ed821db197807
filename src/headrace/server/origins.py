"""Which web pages may call the API: the server's own, and those it was told to trust.

Without this any page a user visits could send statements to a server on the same machine.
Programs that are not browsers send no Origin, and are not concerned.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.server.failures import FORBIDDEN, ApiError, entity_of, error_response


class Origins:
    def __init__(self, app: ASGIApp, allowed: Sequence[str]) -> None:
        self.app = app
        self.allowed = frozenset(allowed)
        self.cors = CORSMiddleware(
            app,
            allow_origins=list(allowed),
            allow_methods=["GET", "POST", "HEAD"],
            allow_headers=["*"],
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is None or origin.partition("://")[2] == headers.get("host"):
            await self.app(scope, receive, send)
        elif origin in self.allowed or "*" in self.allowed:
            await self.cors(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "origin refused"})
        else:
            error = ApiError(FORBIDDEN, f"Requests from pages of {origin} are not allowed.")
            await error_response(entity_of(error))(scope, receive, send)
