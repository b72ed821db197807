"""Our schema registry behind TLS and a login."""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from headrace.registry.api import RegistryApi
from headrace.registry.core import SchemaRegistry


class SecuredRegistry:
    """`logins` are what it takes for an Authorization; `seen`, what it was shown."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self.api = RegistryApi(registry)
        self.url = ""
        self.logins: set[str] = set()
        self.seen: set[str] = set()


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@contextmanager
def secured_registry(
    registry: SchemaRegistry, context: ssl.SSLContext
) -> Iterator[SecuredRegistry]:
    secured = SecuredRegistry(registry)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            login = self.headers.get("Authorization", "")
            secured.seen.add(login)
            if login in secured.logins:
                answer = secured.api.answer(self.command, self.path, body)
                status, content = answer.status, answer.body
            else:
                status, content = 401, b'{"error_code": 401, "message": "Unauthorized"}'
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = handle_one

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client without a certificate ends here."""

    http = Server(("127.0.0.1", 0), Handler)
    http.socket = context.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    secured.url = f"https://127.0.0.1:{http.server_port}"
    try:
        yield secured
    finally:
        http.shutdown()
        http.server_close()
