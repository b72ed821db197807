"""A server with a fake engine, on a free port, for as long as a test wants it."""

from __future__ import annotations

from contextlib import contextmanager

from fake_engine import FakeEngine

from headrace.server.app import build_app
from headrace.server.http import HttpServer
from headrace.server.settings import Limits, ServerSettings


@contextmanager
def running(engine=None, pages=(), **settings):
    """Yields (engine, url)."""
    engine = engine or FakeEngine()
    chosen = ServerSettings(port=0, **settings)
    server = HttpServer(build_app(engine, chosen, pages), chosen)
    server.start()
    try:
        yield engine, server.url
    finally:
        server.stop()


__all__ = ["Limits", "running"]
