"""Queries over the wire: every content type, limits, clients that leave, a server that stops."""

import base64
import json
import socket
import threading
import time

import httpx
import pytest

from fake_engine import FakeEngine, FakeQuery
from fake_server import Limits, post, running
from headrace.model.errors import HeadraceError, UnavailableError
from headrace.model.requests import QueryKind, ResultRow
from headrace.server.app import build_app
from headrace.server.http import HttpServer
from headrace.server.settings import ServerSettings

DELIMITED = "application/vnd.ksqlapi.delimited.v1"
KSQL = "application/vnd.ksql.v1+json"
PULL = "SELECT * FROM T WHERE ID = 'a';"
PUSH = "SELECT * FROM S EMIT CHANGES;"
LIMITED = "SELECT * FROM S EMIT CHANGES LIMIT 2;"

NAMES = ["ID", "N", "PRICE", "X"]
TYPES = ["STRING", "BIGINT", "DECIMAL(6, 2)", "DOUBLE"]
ROWS = [["a", 1, 1.5, 0.5], ["b", 2, None, "NaN"]]


def wait_until(condition, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def test_pull_delimited_is_the_default(http, engine):
    answer = http.post("/query-stream", json={"sql": PULL})
    assert answer.headers["content-type"] == DELIMITED
    head, *rows = [json.loads(line) for line in answer.text.splitlines()]
    assert (head["columnNames"], head["columnTypes"]) == (NAMES, TYPES)
    assert rows == ROWS
    assert '"a",1,1.50,0.5' in answer.text  # a decimal keeps its digits
    assert engine.queries[head["queryId"]].closed.is_set()


def test_rows_at_hand_are_answered_without_a_thread(http, engine):
    answer = http.post("/query-stream", json={"sql": "SELECT * FROM AT_HAND;"})
    assert [json.loads(line) for line in answer.text.splitlines()][1:] == ROWS


def test_pull_json(http, engine):
    answer = http.post("/query-stream", json={"sql": PULL}, headers={"accept": "application/json"})
    assert answer.headers["content-type"] == "application/json"
    head, *rows = answer.json()
    assert head["columnNames"] == NAMES
    assert rows == ROWS


@pytest.mark.parametrize("path", ["/query", "/query-stream"])
def test_pull_streamed_rows(http, engine, path):
    body = {"sql": PULL, "ksql": PULL}
    answer = http.post(path, json=body, headers={"accept": KSQL})
    assert answer.headers["content-type"] == KSQL
    head, *rows = answer.json()
    assert head["header"]["schema"] == (
        "`ID` STRING KEY, `N` BIGINT, `PRICE` DECIMAL(6, 2), `X` DOUBLE"
    )
    assert rows == [{"row": {"columns": row}} for row in ROWS]


def test_query_prefers_streamed_rows(http, engine):
    for accept in ("*/*", "application/json", KSQL):
        answer = http.post("/query", json={"ksql": PULL}, headers={"accept": accept})
        assert answer.headers["content-type"] == KSQL
    answer = http.post("/query", json={"ksql": PULL}, headers={"accept": DELIMITED})
    assert answer.headers["content-type"] == DELIMITED


PROTOBUF = "application/vnd.ksql.v1+protobuf"


@pytest.mark.parametrize("path", ["/query", "/query-stream"])
def test_rows_in_protobuf(http, engine, path):
    body = {"sql": PULL, "ksql": PULL}
    answer = http.post(path, json=body, headers={"accept": PROTOBUF})
    assert answer.headers["content-type"] == PROTOBUF
    head, *rows = answer.json()
    schema = head["header"]["protoSchema"]
    assert schema.startswith('syntax = "proto3";\n')
    assert "message ConnectDefault1 {\n  string ID = 1;\n  int64 N = 2;\n" in schema
    messages = [base64.b64decode(row["row"]["protobufBytes"]) for row in rows]
    assert messages[0][:5] == b"\x0a\x01a\x10\x01"  # field 1 is "a", field 2 is 1
    push = http.post(path, json={"sql": LIMITED, "ksql": LIMITED}, headers={"accept": PROTOBUF})
    assert [list(part) for part in push.json()] == [["header"], ["row"], ["row"], ["finalMessage"]]


def test_push_with_limit_ends_with_a_final_message(http, engine):
    answer = http.post("/query", json={"ksql": LIMITED})
    head, *rows, last = answer.json()
    assert head["header"]["schema"].startswith("`ID` STRING, `N` BIGINT")
    assert [r["row"]["columns"] for r in rows] == ROWS
    assert last == {"finalMessage": "Limit Reached"}


def test_properties_and_variables_reach_the_engine(http, engine):
    body = {
        "sql": PULL,
        "properties": {"a": "1"},
        "streamsProperties": {"b": "2"},
        "sessionVariables": {"v": 3},
    }
    http.post("/query-stream", json=body)
    (asked,) = engine.requests
    assert asked.properties == {"a": "1", "b": "2"}
    assert asked.variables == {"v": "3"}


def test_refused_queries(http, engine):
    for path, field in (("/query", "ksql"), ("/query-stream", "sql")):
        answer = http.post(path, json={field: "SELECT * FROM NO_SUCH;"})
        assert (answer.status_code, answer.json()["@type"]) == (400, "statement_error")
        empty = http.post(path, json={field: " "})
        assert empty.json()["message"] == f'"{field}" field must be populated'
        assert http.post(path, json={field: "BUG"}).json()["error_code"] == 50000
    assert http.post("/query-stream", json={}).json()["error_code"] == 40000


def rows_of(lines):
    return [json.loads(line.strip("[],")) for line in lines if line.strip("[],")]


def test_push_rows_come_as_they_are_made_and_close_query_ends_it(http, engine):
    with http.stream("POST", "/query-stream", json={"sql": PUSH}) as answer:
        lines = answer.iter_lines()
        head = json.loads(next(lines))
        assert [json.loads(next(lines)) for _ in ROWS] == ROWS
        query = engine.queries[head["queryId"]]
        started = time.monotonic()
        query.push("c", 3, None, 1.0)
        assert json.loads(next(lines)) == ["c", 3, None, 1.0]
        assert time.monotonic() - started < 0.5
        query.push("c", None, None, None, tombstone=True)  # has no form in this content type
        query.push("d", 4, None, 1.0)
        assert json.loads(next(lines))[0] == "d"
        with httpx.Client(base_url=http.base_url, verify=False) as other:
            closed = other.post("/close-query", json={"queryId": head["queryId"]})
            assert (closed.status_code, closed.content) == (200, b"")
        assert list(lines) == []


def test_close_query_of_nothing(http, engine):
    answer = http.post("/close-query", json={"queryId": "nope"})
    assert (answer.status_code, answer.json()["message"]) == (400, "No query with id nope")
    assert http.post("/close-query", json={}).json()["error_code"] == 40000


def test_tombstones_are_marked(http, engine):
    with http.stream("POST", "/query", json={"ksql": PUSH}) as answer:
        lines = answer.iter_lines()
        head = rows_of([next(lines)])[0]
        next(lines), next(lines)
        query = engine.queries[head["header"]["queryId"]]
        query.push("a", None, None, None, tombstone=True)
        row = rows_of([next(lines)])[0]["row"]
        assert row == {"columns": ["a", None, None, None], "tombstone": True}
        query.close()


def test_failure_in_the_middle(http, engine):
    with http.stream("POST", "/query", json={"ksql": PUSH}) as answer:
        lines = answer.iter_lines()
        head = rows_of([next(lines)])[0]
        engine.queries[head["header"]["queryId"]].fail(HeadraceError("it broke"))
        last = rows_of(list(lines))[-1]
        assert last["errorMessage"]["message"] == "it broke"


def test_print(http, engine):
    for path, field in (("/query", "ksql"), ("/query-stream", "sql")):
        answer = http.post(path, json={field: "-- hello\n print `s` LIMIT 1;"})
        assert answer.text == "Key format: KAFKA_STRING\nrowtime: …, key: a, value: 1\n"
        wait_until(engine.printed[-1].closed.is_set)
    answer = http.post(
        "/query-stream", json={"sql": "PRINT s;"}, headers={"accept": "application/json"}
    )
    assert answer.status_code == 406


def test_http1_client_that_leaves_ends_its_query(engine, url):
    with httpx.Client(base_url=url, verify=False) as http:
        with http.stream("POST", "/query-stream", json={"sql": PUSH}) as answer:
            head = json.loads(next(answer.iter_lines()))
        query = engine.queries[head["queryId"]]
        wait_until(query.closed.is_set, 2)


def test_http2_stream_that_is_reset_ends_its_query(engine, url):
    h2 = pytest.importorskip("h2.connection")
    host, port = url.removeprefix("http://").split(":")
    before = set(engine.queries)
    with socket.create_connection((host, int(port))) as link:
        connection = h2.H2Connection()
        connection.initiate_connection()
        headers = [
            (":method", "POST"),
            (":path", "/query-stream"),
            (":scheme", "http"),
            (":authority", "localhost"),
        ]
        connection.send_headers(1, headers)
        connection.send_data(1, json.dumps({"sql": PUSH}).encode(), end_stream=True)
        link.sendall(connection.data_to_send())
        wait_until(lambda: set(engine.queries) != before)
        connection.receive_data(link.recv(65535))
        connection.reset_stream(1)
        link.sendall(connection.data_to_send())
        (new,) = set(engine.queries) - before
        wait_until(engine.queries[new].closed.is_set, 2)


class Slow(FakeEngine):
    """Starts no query before it is told to."""

    def __init__(self):
        super().__init__()
        self.go = threading.Event()

    def query(self, request):
        self.go.wait(10)
        return super().query(request)


def test_a_query_whose_client_has_left_is_not_started():
    with running(Slow()) as (engine, url):
        for i in range(12):
            with pytest.raises(httpx.ReadTimeout):
                post(url + "/query", json={"ksql": f"SELECT {i} FROM T;"}, timeout=0.2)
        time.sleep(0.2)  # what the server hears of the last one
        engine.go.set()
        wait_until(lambda: len(engine.queries) == 8)  # as many as there are threads
        wait_until(lambda: all(query.closed.is_set() for query in engine.queries.values()))
        assert post(url + "/query", json={"ksql": PULL}).status_code == 200
        assert len(engine.queries) == 9


class Endless(FakeQuery):
    """Has 2,000 rows of a kilobyte whenever it is asked."""

    asked = 0

    def next_batch(self, timeout):
        self.asked += 1
        rows = [ResultRow(("x" * 1000, i, None, 0.5)) for i in range(2000)]
        return None if self.closed.is_set() else rows


class Generous(FakeEngine):
    def query(self, request):
        self.endless = Endless("q", QueryKind.PUSH, endless=True)
        return self.endless


@pytest.mark.parametrize("modern", [False, True], ids=["http1", "http2"])
def test_a_client_that_does_not_read_is_not_sent_more(modern):
    with running(Generous()) as (engine, url):
        http = httpx.Client(base_url=url, http1=not modern, http2=modern, timeout=10, verify=False)
        with http, http.stream("POST", "/query-stream", json={"sql": PUSH}):
            seen = -1
            while seen != engine.endless.asked:  # until it asks for no more
                seen = engine.endless.asked
                time.sleep(0.5)
            assert seen < 50
        wait_until(engine.endless.closed.is_set)


def test_push_queries_are_limited():
    with (
        running(limits=Limits(push_queries=2)) as (engine, url),
        httpx.Client(base_url=url, verify=False) as http,
    ):
        streams = [http.stream("POST", "/query-stream", json={"sql": PUSH}) for _ in range(2)]
        for stream in streams:
            stream.__enter__()
        answer = http.post("/query-stream", json={"sql": PUSH})
        assert answer.json()["error_code"] == 40003
        assert http.post("/query-stream", json={"sql": PULL}).status_code == 200
        for stream in streams:
            stream.__exit__(None, None, None)
        wait_until(lambda: all(q.closed.is_set() for q in engine.queries.values()))
        assert http.post("/query-stream", json={"sql": LIMITED}).status_code == 200


def test_pull_queries_are_limited():
    with running(limits=Limits(pull_queries=0)) as (_, url):
        answer = post(url + "/query", json={"ksql": PULL})
        assert (answer.status_code, answer.json()["error_code"]) == (429, 42900)
        assert "concurrency limit for pull queries" in answer.json()["message"]


def test_rows_and_time_are_limited():
    limits = Limits(query_rows=1, query_seconds=0.0)
    with running(limits=limits) as (_, url), httpx.Client(base_url=url, verify=False) as http:
        pull = http.post("/query-stream", json={"sql": PULL})
        assert pull.json()["message"] == "The query returned more rows than the limit of 1."
        push = http.post("/query-stream", json={"sql": PUSH})
        assert "longer than the limit" in push.text


def test_stopping_server_ends_its_streams():
    engine = FakeEngine()
    told = []

    def read(url):
        with httpx.Client(base_url=url, verify=False) as http:
            told.append(http.post("/query-stream", json={"sql": PUSH}).text)

    with running(engine) as (_, url):
        reader = threading.Thread(target=read, args=(url,))
        reader.start()
        wait_until(lambda: engine.queries)
        started = time.monotonic()
    reader.join(5)
    assert time.monotonic() - started < 3
    assert json.loads(told[0].splitlines()[-1])["error_code"] == 50303
    assert all(query.closed.is_set() for query in engine.queries.values())


@pytest.mark.parametrize("path", ["/query", "/query-stream"])
def test_a_stopping_server_tells_also_who_has_yet_to_read_what_came_before(path):
    """The answer had ended as if that were all."""
    engine, settings = FakeEngine(), ServerSettings(port=0)
    app = build_app(engine, settings)
    server = HttpServer(app, settings)
    server.start()
    with httpx.Client(base_url=server.url, verify=False) as http:
        asked = http.build_request("POST", path, json={"sql": PUSH, "ksql": PUSH})
        answer = http.send(asked, stream=True)
        (query,) = engine.queries.values()
        for n in range(300):
            query.push("x" * 100_000, n, None, 0.5)
        wait_until(steady(query.queue.qsize), 30)
        assert query.queue.qsize() > 0  # the server waits for its client
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        wait_until(app.state.services.stopping.is_set)
        *rows, last = [line for line in answer.iter_lines() if line.strip(" ,[]")]
        stopping.join(5)
        assert not stopping.is_alive()
        answer.close()
    assert "The server is shutting down" in last
    pushed = rows[1 + len(ROWS) :]
    assert all(f",{n},null," in row for n, row in enumerate(pushed))
    assert 10 < len(pushed) < 300


def test_a_client_that_does_not_read_does_not_hold_up_a_stopping_server():
    engine = FakeEngine()
    with httpx.Client(verify=False) as http:
        with running(engine) as (_, url):
            asked = http.build_request("POST", f"{url}/query", json={"ksql": PUSH})
            answer = http.send(asked, stream=True)
            (query,) = engine.queries.values()
            for n in range(300):
                query.push("x" * 100_000, n, None, 0.5)
            wait_until(steady(query.queue.qsize), 30)
            started = time.monotonic()
        assert time.monotonic() - started < 5
        assert query.closed.is_set()
        answer.close()


def steady(look, seconds=0.5):
    """Whether what is seen has been the same for so long."""
    seen, since = None, time.monotonic()

    def is_steady():
        nonlocal seen, since
        now = look()
        if now != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since > seconds

    return is_steady


def test_idle_connections_do_not_hold_up_a_stopping_server():
    idle = httpx.Client(http1=False, http2=True, verify=False)
    with running() as (_, url):
        assert idle.get(f"{url}/info").status_code == 200
        started = time.monotonic()
    assert time.monotonic() - started < 3
    idle.close()


def test_taken_port_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = ServerSettings(port=taken.getsockname()[1])
        server = HttpServer(build_app(FakeEngine(), settings), settings)
        with pytest.raises(UnavailableError, match="Address already in use"):
            server.start()


@pytest.mark.parametrize(
    ("accept", "token"),
    [
        (DELIMITED, {"continuationToken": "abc"}),
        ("application/json", {"continuationToken": "abc"}),
        (KSQL, {"continuationToken": {"continuationToken": "abc"}}),
    ],
)
def test_tokens_stand_between_rows(http, engine, monkeypatch, accept, token):
    rows = [ResultRow(("a", 1, None, 0.5)), ResultRow((), token="abc")]
    asked = []

    def query(request):
        asked.append(request)
        return FakeQuery("q", QueryKind.PUSH, rows)

    monkeypatch.setattr(engine, "query", query)
    given = {"request.ksql.query.push.continuation.token": "before"}
    body = {"sql": PUSH, "requestProperties": given}
    answer = http.post("/query-stream", json=body, headers={"accept": accept})
    lines = answer.text.splitlines() if accept == DELIMITED else answer.json()
    found = [json.loads(line) if isinstance(line, str) else line for line in lines]
    assert found[2] == token
    assert asked[0].continuation == "before"
    assert asked[0].properties == {}


def test_a_token_that_is_no_text(http, engine):
    given = {"request.ksql.query.push.continuation.token": 5}
    answer = http.post("/query-stream", json={"sql": PUSH, "requestProperties": given})
    assert answer.json()["error_code"] == 40000
