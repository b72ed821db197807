"""The HTTP server: HTTP/1.1 and HTTP/2 on one port, in the process of the Spark driver.

Granian runs embedded, on an event loop in a thread of its own. It is given a socket that is
already bound: so a taken port is an error (Granian's own sockets would share it), and a free one
can be chosen by the system and told.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import threading
import time
from typing import Any

import uvloop
from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces, SSLProtocols
from granian.http import HTTP1Settings, HTTP2Settings
from granian.server.embed import Server
from starlette.applications import Starlette

from headrace.model.errors import UnavailableError
from headrace.server.idle_connections import close_idle_connections
from headrace.server.settings import ServerSettings
from headrace.server.streams import Services

log = logging.getLogger(__name__)

_BACKLOG = 1024
# What waits here for a client that does not read, beside what the system keeps for it; no request's
# head may be larger either. Granian's own is 400 KiB.
_UNSENT_BYTES = 128 * 1024
_REFUSED = "Cannot listen on {host}:{port}: {reason}"
# Granian's own threads let go of the event loop shortly after it says it has stopped.
_SETTLE_SECONDS = 0.2
_HANG_UP_SECONDS = 1.0
_STEP_SECONDS = 0.01
# How long a thread that computes may go on while the event loop waits to run: it waits several
# times for each request. Python's own 5 ms would be felt by everybody who asks for little.
_SWITCH_INTERVAL = 0.0005


class _Embedded(Server):
    def __init__(self, bound: socket.socket, app: Starlette, settings: ServerSettings) -> None:
        tls = settings.tls
        super().__init__(
            app,
            address=settings.host,
            port=bound.getsockname()[1],
            interface=Interfaces.ASGINL,
            http=HTTPModes.auto,
            websockets=True,
            backlog=_BACKLOG,
            log_enabled=False,
            http1_settings=HTTP1Settings(max_buffer_size=_UNSENT_BYTES),
            http2_settings=HTTP2Settings(max_send_buffer_size=_UNSENT_BYTES),
            ssl_cert=tls.certificate if tls else None,
            ssl_key=tls.key if tls else None,
            ssl_key_password=tls.key_password if tls else None,
            ssl_protocol_min=SSLProtocols.tls12,
            ssl_ca=tls.client_ca if tls else None,
            ssl_client_verify=tls is not None and tls.client_ca is not None,
        )
        self._bound = bound

    def _init_shared_socket(self) -> None:
        holder: Any = SocketHolder
        self._ssp = None
        self._shd = holder(self._bound.detach(), False, _BACKLOG)  # Granian closes it


class HttpServer:
    """A running server. `start` returns when it listens; `stop` when every request has ended."""

    def __init__(self, app: Starlette, settings: ServerSettings) -> None:
        self._app = app
        self._settings = settings
        self._loop = uvloop.new_event_loop()
        self._thread: threading.Thread | None = None
        self._port = settings.port
        self._server: _Embedded | None = None
        self._ready = threading.Event()

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        scheme = "https" if self._settings.tls else "http"
        host = self._settings.host
        name = f"[{host}]" if ":" in host else host
        return f"{scheme}://{name}:{self.port}"

    def start(self) -> None:
        sys.setswitchinterval(_SWITCH_INTERVAL)
        host, port = self._settings.host, self._settings.port
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            bound = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        except OSError as error:
            reason = error.strerror or str(error)
            raise UnavailableError(_REFUSED.format(host=host, port=port, reason=reason)) from None
        bound.setblocking(False)
        self._port = bound.getsockname()[1]
        self._thread = threading.Thread(
            target=self._run, args=(bound,), name="headrace-http", daemon=True
        )
        self._thread.start()
        self._ready.wait()

    def _run(self, bound: socket.socket) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = _Embedded(bound, self._app, self._settings)
        self._loop.call_soon(self._ready.set)
        # The loop is left open: Granian's threads may still call into it for a moment.
        self._loop.run_until_complete(self._serve(self._server))

    async def _serve(self, server: _Embedded) -> None:
        idle = close_idle_connections(self.port, self._settings.limits.idle_seconds)
        watching = asyncio.create_task(idle)
        try:
            await server.serve()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    def stop(self, seconds: float = 10.0) -> None:
        """Ends every lasting response, lets the others finish, and closes the port."""
        if self._thread is None or not self._thread.is_alive():
            return
        services: Services = self._app.state.services
        self._loop.call_soon_threadsafe(services.stopping.set)
        assert self._server is not None
        self._loop.call_soon_threadsafe(self._server.stop)
        deadline = time.monotonic() + seconds
        while self._busy() and time.monotonic() < deadline:
            time.sleep(_STEP_SECONDS)
        if self._busy():
            log.warning("Requests were still under way %s s after the server was stopped", seconds)
        # Granian waits for clients to hang up; one that holds an idle connection may never.
        self._thread.join(_HANG_UP_SECONDS)
        services.workers.stop()
        time.sleep(_SETTLE_SECONDS)

    def _busy(self) -> bool:
        """Whether requests are under way, and an event loop on which they can still end.

        Granian's ends with the last connection: what a client has left behind stays under way.
        """
        assert self._thread is not None
        return self._app.state.services.requests.under_way > 0 and self._thread.is_alive()
