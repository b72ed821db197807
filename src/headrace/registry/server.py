"""The embedded schema registry: serves the REST API on its own port, stores schemas in Kafka."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from headrace.kafka.client import KafkaConnection
from headrace.kafka.ports import LOOPBACK
from headrace.model.allowed_callers import FORM_TYPES, Callers, media_type
from headrace.model.errors import UnavailableError
from headrace.registry.api import Answer, RegistryApi, error_answer
from headrace.registry.core import SchemaRegistry
from headrace.registry.log import RegistryLog, TopicLog

LOG = logging.getLogger("headrace.registry")
WATCH_SECONDS = 0.25
# More than a record of the topic that keeps schemas can hold.
LARGEST_BODY = 2 * 1024 * 1024


class EmbeddedRegistry:
    """Serves a registry from a thread. `port` is used or refused; 0 takes a free one.

    `log` is where changes are kept: the `_schemas` topic if a connection is given instead.
    `hosts` are names it may be called by, besides those of the loopback address.
    """

    def __init__(
        self, log: RegistryLog | KafkaConnection, port: int = 0, hosts: Iterable[str] = ()
    ) -> None:
        self._log = log
        self._callers = Callers.of(LOOPBACK, hosts)
        self._port = port
        self._server: _Server | None = None
        self._registry: SchemaRegistry | None = None
        self._thread: threading.Thread | None = None

    @property
    def registry(self) -> SchemaRegistry:
        if self._registry is None:
            raise UnavailableError("The embedded schema registry has not been started.")
        return self._registry

    @property
    def port(self) -> int:
        return self._server.server_port if self._server else self._port

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def start(self) -> None:
        """Replays the log and listens."""
        if self._server is not None:
            return
        try:
            server = _Server((LOOPBACK, self._port), _RequestHandler)
        except OSError as failure:
            raise UnavailableError(
                f"Port {self._port} for the schema registry is taken: "
                "stop what listens on it or choose another port."
            ) from failure
        try:
            log = TopicLog(self._log) if isinstance(self._log, KafkaConnection) else self._log
            self._registry = SchemaRegistry(log)
        except BaseException:  # whatever it is, the port is closed
            server.server_close()
            raise
        server.api = RegistryApi(self._registry)
        server.callers = self._callers
        self._server = server
        self._port = server.server_port
        self._serve(server)

    def _serve(self, server: _Server) -> None:
        self._thread = threading.Thread(
            target=server.serve_forever, args=(0.05,), name="headrace-registry", daemon=True
        )
        self._thread.start()

    def keep(self, stopping: threading.Event) -> None:
        """Restarts the serving thread whenever it ends, until `stopping` is set."""
        while not stopping.wait(WATCH_SECONDS):
            if self._server is not None and self.failure is not None:
                LOG.error("The thread of the embedded schema registry has ended: it starts again")
                self._serve(self._server)

    @property
    def failure(self) -> str | None:
        """Why it does not serve right now; None if it does."""
        serving = self._thread is not None and self._thread.is_alive()
        return None if serving else "The registry's thread has ended"

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        if self._registry is not None:
            self._registry.close()
            self._registry = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # an idle connection must not hold up the end
    request_queue_size = 128
    api: RegistryApi
    callers: Callers


class _RequestHandler(BaseHTTPRequestHandler):
    """Hands requests to the API, one after the other on each connection."""

    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = 300  # seconds that a connection may be idle

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PUT = do_DELETE = do_GET

    def _answer(self) -> None:
        refused = self._refusal()
        if refused is not None:
            self.close_connection = True  # its body is not read
            self._send(refused)
            return
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or len(length) > 12 or int(length) > LARGEST_BODY:
            self.close_connection = True
            self.send_error(413)
            return
        body = self.rfile.read(int(length))
        self._send(self.server.api.answer(self.command, self.path, body))

    def _refusal(self) -> Answer | None:
        """The refusal of a request from a foreign page or to an unknown host name."""
        told = self.headers
        site = told.get("Sec-Fetch-Site") if self.command != "GET" else None
        reason = self.server.callers.refusal(told.get("Host"), told.get("Origin"), site)
        if reason is not None:
            return error_answer(403, reason)
        kind = media_type(told.get("Content-Type", ""))
        if self.command != "GET" and kind in FORM_TYPES:
            return error_answer(415, f"A body of the type {kind} is not taken: send JSON.")
        return None

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:
        LOG.debug(format, *args)
