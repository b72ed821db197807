"""Every endpoint of both ports against every kind of caller: who is let in, and who is not."""

from __future__ import annotations

import http.client
import json
from base64 import b64encode

import pytest

from fake_server import running
from headrace.model.allowed_callers import Callers
from headrace.registry import api
from headrace.registry.log import MemoryLog
from headrace.registry.server import EmbeddedRegistry
from headrace.server.app import OPENAPI_PATH, ROUTES, WEBSOCKET_PATH
from headrace.server.auth import credentials_line
from headrace.server.endpoints import ENDPOINTS
from headrace.server.page import PAGES
from headrace.server.settings import Access
from websocket_client import Socket, query_path

READER = "Basic cmVhZGVyOnI="  # reader:r
WRITER = "Basic d3JpdGVyOnc="  # writer:w
CHANGE = {"ksql": "DROP STREAM S;", "sql": "DROP STREAM S;"}
BODY = {**CHANGE, "queryId": "none", "target": "S"}

# What each kind of caller sends besides what an honest one does.
CALLERS = {
    "honest": {},
    "foreign Origin": {"origin": "http://evil.example"},
    "null Origin": {"origin": "null"},
    "foreign Host": {"host": "evil.example"},
    "foreign Host and its Origin": {"host": "evil.example:1", "origin": "http://evil.example:1"},
    "another port's page": {"origin": "http://127.0.0.1:1"},
    "cross-site form": {"sec-fetch-site": "cross-site"},
    "text/plain": {"content-type": "text/plain"},
    "no password": {"authorization": None},
    "wrong password": {"authorization": "Basic e30="},
    "read role": {"authorization": READER},
}
OPEN = {"/chc/live", "/chc/ready"}  # these need no password


CHANGING = ("/ksql", "/ksql/terminate", "/inserts-stream", "/heartbeat", "/lag")


def expected(path, method, caller):
    """The status that a caller gets; None for whatever an honest one gets."""
    if caller in ("foreign Origin", "null Origin", "another port's page") or "Host" in caller:
        return 403
    if caller == "cross-site form":
        return 403 if method == "POST" else None
    if caller == "text/plain":
        return 415 if method == "POST" else None
    if caller in ("no password", "wrong password"):
        return None if path in OPEN else 401
    if caller == "read role":
        return 403 if path in CHANGING else None
    return None


def endpoints():
    yield from ((e.path, e.method) for e in ENDPOINTS)
    yield OPENAPI_PATH, "GET"
    yield from ((page.path, "GET") for page in PAGES if hasattr(page, "path"))


def test_the_table_has_every_route():
    paths = {path for path, _ in endpoints()} | {WEBSOCKET_PATH}
    assert {route.path for route in ROUTES} <= paths


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    users = tmp_path_factory.mktemp("users") / "users.txt"
    lines = [
        credentials_line("reader", "r", ("read",)),
        credentials_line("writer", "w", ("write",)),
    ]
    users.write_text("\n".join(lines))
    with running(pages=PAGES, access=Access(users)) as (_, url):
        yield url


def ask(url, method, path, headers, body=None):
    """The status alone: not every answer ends."""
    host = url.removeprefix("http://")
    link = http.client.HTTPConnection(host, timeout=10)
    sent = {"host": host, "content-type": "application/json", **headers}
    link.putrequest(method, path, skip_host=True)
    data = b"" if body is None else json.dumps(body).encode()
    for name, value in {**sent, "content-length": str(len(data))}.items():
        if value is not None:
            link.putheader(name, value)
    link.endheaders(data)
    try:
        return link.getresponse().status
    finally:
        link.close()


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(("path", "method"), list(endpoints()))
def test_every_endpoint_of_the_server(secured, path, method, caller):
    filled = path.format(type="stream", entity="S", action="create", property="x", name="dom.js")
    body = BODY if method == "POST" else None
    honest = {"authorization": WRITER}
    headers = {**honest, **CALLERS[caller]}
    if caller == "wrong password":  # of another user each time: who fails often has to wait
        headers["authorization"] = "Basic " + b64encode(f"{path}:wrong".encode()).decode()
    status = ask(secured, method, filled, headers, body)
    wanted = expected(path, method, caller)
    assert status == (wanted or ask(secured, method, filled, honest, body))
    assert status != 404


@pytest.mark.parametrize("caller", CALLERS)
def test_the_websocket(secured, caller):
    given = {"authorization": WRITER, **CALLERS[caller]}
    host = given.pop("host", None)
    headers = "".join(f"{k}: {v}\r\n" for k, v in given.items() if v is not None)
    path = query_path({"ksql": "SELECT * FROM T;"})
    socket = Socket(secured, path, headers, host=host)
    socket.close()
    refused = expected(WEBSOCKET_PATH, "GET", caller)
    assert socket.status == (101 if refused is None else 403)


# ------------------------------------------------------------------------------- the registry

REGISTRY_PATHS = [
    (pattern.pattern, method) for pattern, handlers in api.ROUTES for method in handlers
]


@pytest.fixture(scope="module")
def registry():
    with EmbeddedRegistry(MemoryLog()) as server:
        yield server.url


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(("pattern", "method"), REGISTRY_PATHS)
def test_every_endpoint_of_the_registry(registry, pattern, method, caller):
    """It listens on the loopback address alone, and knows no users: there it is open to all."""
    path = pattern
    for name in ("subject", "version", "id"):
        path = path.replace(f"(?P<{name}>[^/]+)", "1")
    body = None if method == "GET" else {}
    status = ask(registry, method, path, CALLERS[caller], body)
    changes = "GET" if method == "GET" else "POST"
    wanted = expected(path, changes, caller)
    if caller in ("no password", "wrong password", "read role"):
        wanted = None
    honest = ask(registry, method, path, {}, body)
    assert honest not in (403, 415)
    assert status == (wanted or honest)


def test_a_refused_schema_is_not_registered(registry):
    body = {"schema": '"string"'}
    path = "/subjects/s/versions"
    plain = {"content-type": "text/plain;charset=UTF-8", "origin": "http://evil.example"}
    for headers in (plain, {"content-type": "text/plain"}, {"host": "evil.example"}):
        assert ask(registry, "POST", path, headers, body) in (403, 415)
    assert ask(registry, "GET", path, {}) == 404
    assert ask(registry, "POST", path, {}, body) == 200


# ------------------------------------------------------------------------------------- names

LOCAL = Callers.of("127.0.0.1")
EVERYWHERE = Callers.of("0.0.0.0", machine="box")
NAMED = Callers.of("10.1.2.3", ["Streams.Example.com", "other:9000"])


@pytest.mark.parametrize(
    ("callers", "host", "let_in"),
    [
        (LOCAL, "127.0.0.1:8088", True),
        (LOCAL, "localhost:8088", True),
        (LOCAL, "LOCALHOST", True),
        (LOCAL, "localhost.:8088", True),
        (LOCAL, "[::1]:8088", True),
        (LOCAL, "10.1.2.3:8088", False),
        (LOCAL, "localhost.evil.example", False),
        (LOCAL, "127.0.0.1.evil.example:8088", False),
        (LOCAL, "evil.example:8088", False),
        (LOCAL, "", False),
        (LOCAL, "@127.0.0.1", False),
        (EVERYWHERE, "192.168.0.7:8088", True),
        (EVERYWHERE, "[fe80::1]:8088", True),
        (EVERYWHERE, "localhost:1234", True),
        (EVERYWHERE, "box:8088", True),
        (EVERYWHERE, "evil.example", False),
        (NAMED, "10.1.2.3", True),
        (NAMED, "streams.example.com:443", True),
        (NAMED, "other", True),
        (NAMED, "localhost", False),
        (NAMED, "10.1.2.4", False),
        (Callers.of("127.0.0.1", ["*"]), "evil.example", True),
    ],
)
def test_names_of_a_server(callers, host, let_in):
    assert (callers.refusal(host, None, None) is None) is let_in


def test_pages_that_are_allowed_are_told_so():
    with running(origins=("http://page.example",)) as (_, url):
        link = http.client.HTTPConnection(url.removeprefix("http://"))
        link.request("GET", "/info", headers={"origin": "http://page.example"})
        answer = link.getresponse()
        assert answer.headers["access-control-allow-origin"] == "http://page.example"
        link.close()
        assert ask(url, "GET", "/info", {"origin": "http://page.example", "host": "x.y"}) == 403
    with running(hosts=("x.y",)) as (_, url):
        assert ask(url, "GET", "/info", {"origin": "http://x.y", "host": "x.y"}) == 200
