"""The web page at `/`: static files without external resources.

Browsers get it; other clients are sent on from `/` to `/info`, as by ksqlDB. The page talks to the
server through the REST API alone.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from headrace.server.error_responses import NOT_FOUND, ApiError
from headrace.sql.keywords import NON_RESERVED, RESERVED

# The page may load from this server, talk to it, and do nothing else.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",  # kept, but asked for again: a new server has a new page
}
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
}


@dataclass(frozen=True)
class File:
    content: bytes
    type: str
    tag: str


def _file(name: str, content: bytes) -> File:
    digest = hashlib.sha256(content).hexdigest()[:20]
    return File(content, _TYPES[name.rpartition(".")[2]], f'"{digest}"')


@cache
def files() -> dict[str, File]:
    """What the page is made of, by name; the words of the language among it."""
    found = {
        entry.name: _file(entry.name, entry.read_bytes())
        for entry in (resources.files(__package__) / "static").iterdir()
    }
    words = {"reserved": sorted(RESERVED), "others": sorted(NON_RESERVED)}
    return {**found, "words.json": _file("words.json", json.dumps(words).encode())}


def _answer(request: Request, file: File) -> Response:
    headers = {**_HEADERS, "etag": file.tag}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.type)


async def front(request: Request) -> Response:
    response: Response
    if "text/html" in request.headers.get("accept", ""):
        response = _answer(request, files()["index.html"])
    else:
        response = RedirectResponse("/info", status_code=307)
    response.headers["vary"] = "accept"
    return response


async def part(request: Request) -> Response:
    file = files().get(request.path_params["name"])
    if file is None:
        raise ApiError(NOT_FOUND, f"Not Found: {request.url.path}")
    return _answer(request, file)


PAGES: tuple[BaseRoute, ...] = (Route("/", front), Route("/page/{name}", part))
