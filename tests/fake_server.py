"""A server with a fake engine, on a free port, for as long as a test wants it."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

import httpx

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


# Requests of their own connections. Nobody needs the certificates of the world for them, which take
# longer to read than all the rest.
get, post, stream = (partial(ask, verify=False) for ask in (httpx.get, httpx.post, httpx.stream))

__all__ = ["Limits", "get", "post", "running", "stream"]
