"""Limits over time, and what a client sees of them: queries a second, bytes an hour, idle
connections; and the headers that every answer gets."""

import socket
import sys
import time

import httpx
import pytest

from fake_engine import FakeEngine, FakeQuery
from fake_server import Limits, post, running
from headrace.model.errors import HeadraceError
from headrace.model.requests import QueryKind, ResultRow
from headrace.server.error_responses import ApiError
from headrace.server.rates import HOUR, MEGABYTE, Bandwidth, QueryRate
from headrace.server.response_headers import Header, read_headers
from websocket_client import Socket, query_path

PULL = {"sql": "SELECT * FROM T;"}
PUSH = {"sql": "SELECT * FROM S EMIT CHANGES LIMIT 2;"}
AT_RATE = "Host is at rate limit for pull queries. Currently set to 1.0 qps."


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_so_many_queries_a_second_and_no_more_are_saved_up():
    clock = Clock()
    rate = QueryRate(3, clock)
    clock.now += 60
    for _ in range(3):
        rate.take()
    with pytest.raises(ApiError, match=r"Currently set to 3\.0 qps"):
        rate.take()
    clock.now += 0.34
    rate.take()


def test_so_many_bytes_an_hour():
    clock = Clock()
    sent = Bandwidth("pull", 1, clock)
    sent.add("x" * MEGABYTE)
    sent.check()
    clock.now += 10
    sent.add("ä")
    with pytest.raises(ApiError, match="Host is at bandwidth rate limit for pull queries"):
        sent.check()
    clock.now += HOUR - 10
    sent.check()


class ReadyEngine(FakeEngine):
    """Knows the rows of every pull query."""

    def answer_now(self, request):
        if "EMIT" in request.text:
            return None
        return FakeQuery("q", QueryKind.PULL, [ResultRow(("a", 1, None, 0.5))])


@pytest.mark.parametrize("engine", [FakeEngine, ReadyEngine])
def test_pull_queries_beyond_the_rate_are_refused(engine):
    with running(engine(), limits=Limits(pulls_per_second=1)) as (_, url):
        answers = [post(f"{url}/query-stream", json=PULL) for _ in range(2)]
        assert [a.status_code for a in answers] == [200, 429]
        assert answers[1].json()["message"] == AT_RATE
        assert answers[1].json()["error_code"] == 42900
        again = post(f"{url}/query", json={"ksql": PULL["sql"]})
        assert (again.status_code, again.json()["message"]) == (429, AT_RATE)


def test_the_rate_counts_websockets_too():
    with running(limits=Limits(pulls_per_second=1)) as (_, url):
        assert post(f"{url}/query-stream", json=PULL).status_code == 200
        refused = Socket(url, query_path({"ksql": PULL["sql"]}))
        assert refused.message() == {"error": AT_RATE}
        refused.close()


def test_push_queries_are_not_what_the_rate_is_about():
    with running(limits=Limits(pulls_per_second=1)) as (_, url):
        assert [post(f"{url}/query-stream", json=PUSH).status_code for _ in range(3)] == [200] * 3


@pytest.mark.parametrize("engine", [FakeEngine, ReadyEngine])
def test_pull_queries_beyond_the_bandwidth_are_refused(engine):
    with running(engine(), limits=Limits(pull_megabytes=0)) as (_, url):
        answers = [post(f"{url}/query-stream", json=PULL) for _ in range(2)]
        assert [a.status_code for a in answers] == [200, 400]
        assert answers[1].json()["message"] == "Host is at bandwidth rate limit for pull queries."
        assert post(f"{url}/query-stream", json=PUSH).status_code == 200


def test_push_queries_beyond_the_bandwidth_are_refused():
    with running(limits=Limits(push_megabytes=0)) as (_, url):
        answers = [post(f"{url}/query-stream", json=PUSH) for _ in range(2)]
        assert [a.status_code for a in answers] == [200, 400]
        assert answers[1].json()["message"] == "Host is at bandwidth rate limit for push queries."
        assert post(f"{url}/query-stream", json=PULL).status_code == 200


linux = pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell")


@linux
def test_an_idle_connection_is_closed():
    with running(limits=Limits(idle_seconds=1)) as (_, url):
        address = httpx.URL(url)
        with socket.create_connection((address.host, address.port), timeout=20) as idle:
            began = time.monotonic()
            assert idle.recv(1) == b""
            assert 0.9 < time.monotonic() - began < 10


@linux
def test_a_connection_that_is_used_stays():
    with running(limits=Limits(idle_seconds=1)) as (_, url):
        address = httpx.URL(url)
        request = f"GET /info HTTP/1.1\r\nHost: {address.host}:{address.port}\r\n\r\n".encode()
        with socket.create_connection((address.host, address.port), timeout=20) as used:
            until = time.monotonic() + 2.5
            while time.monotonic() < until:
                used.sendall(request)
                assert used.recv(65536).startswith(b"HTTP/1.1 200")


@linux
def test_a_push_query_without_rows_ends_with_its_connection():
    with running(limits=Limits(idle_seconds=1)) as (engine, url):
        body = {"sql": "SELECT * FROM S EMIT CHANGES;"}
        with pytest.raises(httpx.HTTPError):
            post(f"{url}/query-stream", json=body, timeout=20)
        (query,) = engine.queries.values()
        assert query.closed.wait(20)


def test_headers_of_every_answer():
    text = '"add Cache-Control: no-cache, no-store", set Server: none, add X-A: 1; mode=block'
    headers = read_headers(text)
    assert headers == (
        Header("Cache-Control", "no-cache, no-store", False),
        Header("Server", "none", True),
        Header("X-A", "1; mode=block", False),
    )
    with running(headers=headers) as (_, url):
        for path, status in [("/info", 200), ("/nowhere", 404)]:
            answer = httpx.get(url + path, verify=False)
            assert answer.status_code == status
            assert answer.headers["cache-control"] == "no-cache, no-store"
            assert (answer.headers["server"], answer.headers["x-a"]) == ("none", "1; mode=block")


@pytest.mark.parametrize("text", ["X: 1", "add X", "setDate X: 1", "add : 1"])
def test_headers_that_cannot_be_read(text):
    with pytest.raises(HeadraceError, match=r"response\.http\.headers\.config"):
        read_headers(text)
