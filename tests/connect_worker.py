"""A Kafka Connect worker that is a small HTTP server."""

from __future__ import annotations

import json
import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FILE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


class Worker:
    """Connectors by name; `answers` are what to say instead, by method and path."""

    def __init__(self) -> None:
        self.connectors: dict[str, dict] = {}
        self.answers: dict[tuple[str, str], tuple[int, object]] = {}

    def answer(self, method: str, path: str, body) -> tuple[int, object]:
        if (method, path) in self.answers:
            return self.answers[method, path]
        match method, path.strip("/").split("/"):
            case "GET", ["connectors"]:
                return 200, list(self.connectors)
            case "POST", ["connectors"]:
                made = {**body, "tasks": [{"connector": body["name"], "task": 0}], "type": "source"}
                self.connectors[body["name"]] = made
                return 201, made
            case "PUT", ["connector-plugins", _, "config", "validate"]:
                errors = [] if "file" in body else ["Missing required configuration"]
                return 200, {"configs": [{"value": {"name": "file", "errors": errors}}]}
            case "GET", ["connector-plugins"]:
                return 200, [{"class": FILE, "type": "source", "version": "4.3"}]
            case "GET" | "DELETE", ["connectors", name, *_] if name not in self.connectors:
                return 404, {"error_code": 404, "message": f"Connector {name} not found"}
            case "GET", ["connectors", name]:
                return 200, self.connectors[name]
            case "GET", ["connectors", name, "status"]:
                state = {"state": "RUNNING", "worker_id": "w:8083"}
                tasks = [{**state, "id": 0}, {**state, "id": 1, "state": "FAILED", "trace": "oh"}]
                return 200, {"name": name, "connector": state, "tasks": tasks, "type": "source"}
            case "GET", ["connectors", name, "topics"]:
                return 200, {name: {"topics": ["lines"]}}
            case "DELETE", ["connectors", name]:
                del self.connectors[name]
                return 204, None
        return 404, "no such path"


@contextmanager
def connect_worker(tls: ssl.SSLContext | None = None, login: str | None = None):
    """A worker on a free port; its `settings` are those of a server that knows it. `login` is the
    Authorization that it wants."""
    worker = Worker()

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, content = 401, "who are you"
            if login in (None, self.headers.get("Authorization")):
                status, content = worker.answer(self.command, self.path, body)
            data = b"" if content is None else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = handle_one

        def log_message(self, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        http.socket = tls.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    worker.settings = {
        "ksql.connect.url": f"{'https' if tls else 'http'}://127.0.0.1:{http.server_port}"
    }
    try:
        yield worker
    finally:
        http.shutdown()
        http.server_close()
