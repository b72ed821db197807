"""Each kind of work is bounded for itself: no number of one kind stops another, nor health."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from fake_engine import FakeEngine, FakePrint
from fake_server import Limits, get, post, running, stream
from headrace.server import auth
from headrace.server.auth import credentials_line
from headrace.server.error_responses import ApiError
from headrace.server.logins import FREE_FAILURES, FailedLogins
from headrace.server.settings import Access

PUSH = {"sql": "SELECT * FROM S EMIT CHANGES;"}


def wait_until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def send(url, path, body):
    """A request whose answer nobody waits for."""
    host, port = url.removeprefix("http://").split(":")
    link = socket.create_connection((host, int(port)), timeout=10)
    data = httpx.Request("POST", url, json=body).content
    head = f"POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
    link.sendall(head.encode() + f"content-length: {len(data)}\r\n\r\n".encode() + data)
    return link


class EndlessPrint(FakePrint):
    """Waits for lines that do not come."""

    def __init__(self):
        self.closed = threading.Event()

    def next_batch(self, timeout):
        return None if self.closed.wait(timeout) else []


class PrintingEngine(FakeEngine):
    def print_topic(self, request):
        self.printed.append(EndlessPrint())
        return self.printed[-1]


def test_assertions_that_wait_hold_no_thread():
    """More of them than there are threads; a client that leaves ends its own."""
    with running() as (engine, url):
        body = {"ksql": "ASSERT TOPIC later TIMEOUT 1 DAYS;"}
        links = [send(url, "/ksql", body) for _ in range(40)]
        wait_until(lambda: engine.looks >= 80)
        assert post(f"{url}/ksql", json={"ksql": "SHOW STREAMS;"}).status_code == 200
        for link in links[1:]:
            link.close()
        engine.topics.add("later")
        assert links[0].recv(4096).startswith(b"HTTP/1.1 200 ")
        links[0].close()


def test_assertions_are_bounded():
    with running(limits=Limits(assertions=2)) as (engine, url):
        body = {"ksql": "ASSERT TOPIC later TIMEOUT 1 DAYS;"}
        links = [send(url, "/ksql", body) for _ in range(2)]
        wait_until(lambda: engine.looks >= 4)
        refused = post(f"{url}/ksql", json=body)
        assert (refused.status_code, refused.json()["message"]) == (
            429,
            "There are 2 assertions that wait already, as many as "
            "ksql.server.max.waiting.assertions allows.",
        )
        for link in links:
            link.close()
        engine.topics.add("later")

        def answered():
            return post(f"{url}/ksql", json=body).status_code == 200

        wait_until(answered)


def test_prints_do_not_end_push_queries():
    with running(PrintingEngine()) as (engine, url):
        with stream("POST", f"{url}/query-stream", json=PUSH, timeout=30) as answer:
            lines = answer.iter_lines()
            for _ in range(3):
                next(lines)
            links = [send(url, "/query-stream", {"sql": "PRINT t;"}) for _ in range(70)]
            heads = [link.recv(4096).partition(b"\r\n")[0] for link in links]
            accepted = sum(b"200" in head for head in heads)
            assert accepted == len(engine.printed) == 32
            assert sum(b"429" in head for head in heads) == 38
            (query,) = engine.queries.values()
            query.push("later", 1, None, 0.0)
            assert next(line for line in lines if line).startswith('["later"')
        for link in links:
            link.close()
        wait_until(lambda: all(one.closed.is_set() for one in engine.printed))
        after = send(url, "/query-stream", {"sql": "PRINT t;"})
        assert b"200" in after.recv(4096).partition(b"\r\n")[0]
        after.close()


class HangingEngine(FakeEngine):
    """What opens a topic hangs, as it does while Kafka is away."""

    def __init__(self):
        super().__init__()
        self.go_on = threading.Event()
        self.hanging = 0

    def print_topic(self, request):
        self.hanging += 1
        self.go_on.wait(30)
        return super().print_topic(request)

    def insert(self, target, properties):
        self.hanging += 1
        self.go_on.wait(30)
        return super().insert(target, properties)


def test_what_hangs_holds_up_its_own_kind_alone():
    engine = HangingEngine()
    with running(engine) as (_, url):
        links = [send(url, "/query-stream", {"sql": "PRINT t;"}) for _ in range(20)]
        links += [send(url, "/inserts-stream", {"target": "S"}) for _ in range(20)]
        wait_until(lambda: engine.hanging >= 28)  # as many as there are threads for
        with stream("POST", f"{url}/query-stream", json=PUSH, timeout=30) as answer:
            assert next(answer.iter_lines())
        pull = post(f"{url}/query-stream", json={"sql": "SELECT * FROM T;"}, timeout=30)
        assert pull.status_code == 200
        assert post(f"{url}/ksql", json={"ksql": "SHOW STREAMS;"}).status_code == 200
        engine.go_on.set()
        for link in links:
            link.close()


def test_what_hangs_for_clients_that_have_left_does_not_hold_up_a_stopping_server():
    engine = HangingEngine()
    try:
        with running(engine) as (_, url):
            links = [send(url, "/inserts-stream", {"target": "S"}) for _ in range(20)]
            wait_until(lambda: engine.hanging >= 8)
            for link in links:
                link.close()
            started = time.monotonic()
        assert time.monotonic() - started < 5
    finally:
        engine.go_on.set()


def test_insert_streams_are_bounded():
    with running(limits=Limits(insert_streams=1)) as (_, url):
        host, port = url.removeprefix("http://").split(":")
        link = socket.create_connection((host, int(port)), timeout=10)
        link.sendall(
            f"POST /inserts-stream HTTP/1.1\r\nhost: {host}\r\ntransfer-encoding: chunked\r\n\r\n"
            'f\r\n{"target":"S"}\n\r\n'.encode()
        )
        assert link.recv(4096).startswith(b"HTTP/1.1 200 ")
        refused = post(f"{url}/inserts-stream", content='{"target":"S"}\n')
        assert refused.status_code == 429 and "insert streams" in refused.json()["message"]
        link.close()
        wait_until(
            lambda: post(f"{url}/inserts-stream", content='{"target":"S"}\n').status_code == 200
        )


class SlowEngine(FakeEngine):
    """Statements and looks at health take as long as a test wants."""

    def __init__(self):
        super().__init__()
        self.go_on = threading.Event()
        self.health_asked = 0

    def info(self):
        self.go_on.wait(30)
        return super().info()

    def health(self):
        self.health_asked += 1
        self.go_on.wait(30)
        return super().health()


def test_health_shares_no_threads_with_users():
    """Twenty ask for /info and hang; those who ask for health share one look."""
    engine = SlowEngine()
    with running(engine) as (_, url), ThreadPoolExecutor(40) as threads:
        infos = [threads.submit(get, f"{url}/info", timeout=30) for _ in range(20)]
        healths = [threads.submit(get, f"{url}/healthcheck", timeout=30) for _ in range(10)]
        wait_until(lambda: engine.health_asked == 1)
        assert get(f"{url}/chc/live").status_code == 200
        assert get(f"{url}/chc/ready").status_code == 200
        engine.go_on.set()
        assert {one.result().status_code for one in infos + healths} == {200}
        assert engine.health_asked <= 10


def test_readiness_says_nothing_but_yes_or_no():
    with running() as (engine, url):
        engine.healthy = False
        assert get(f"{url}/healthcheck").status_code == 503
        assert (get(f"{url}/chc/ready").status_code, engine.ready) == (200, True)
        engine.ready = False
        answer = get(f"{url}/chc/ready")
        assert (answer.status_code, answer.text) == (503, "{}")
        assert (get(f"{url}/chc/live").status_code, answer.text) == (200, "{}")


@pytest.fixture
def users(tmp_path):
    path = tmp_path / "users.txt"
    path.write_text(credentials_line("reader", "r", ("read",)))
    return Access(path)


def test_wrong_passwords_take_no_threads_of_health(users, monkeypatch):
    """While every thread that checks passwords is busy, health is told."""
    go_on = threading.Event()

    def slow(password, hashed):
        go_on.wait(30)
        return password == "r"

    with running(access=users) as (_, url), ThreadPoolExecutor(50) as threads:
        assert get(f"{url}/info", auth=("reader", "r")).status_code == 200
        monkeypatch.setattr(auth, "verify", slow)
        tries = [
            threads.submit(get, f"{url}/info", auth=(f"u{i}", "x"), timeout=30) for i in range(45)
        ]
        wait_until(lambda: any(one.done() for one in tries))  # the queue is full
        known = get(f"{url}/healthcheck", auth=("reader", "r"))
        assert known.status_code == 200
        assert get(f"{url}/chc/live").status_code == 200
        go_on.set()
        assert {one.result().status_code for one in tries} == {401, 429}


def test_who_fails_again_and_again_has_to_wait(users):
    with running(access=users) as (_, url):
        for _ in range(FREE_FAILURES):
            assert get(f"{url}/info", auth=("reader", "x")).status_code == 401
        waits = get(f"{url}/info", auth=("reader", "r"))
        assert waits.status_code == 429
        assert waits.json()["message"].startswith("Too many failed logins of this user. Try again")
        assert get(f"{url}/info", auth=("other", "x")).status_code == 401
        wait_until(lambda: get(f"{url}/info", auth=("reader", "r")).status_code == 200)


def test_the_wait_doubles_up_to_a_minute():
    now = [0.0]
    failed = FailedLogins(lambda: now[0])
    waits = []
    for _ in range(20):
        failed.note("1.2.3.4", "a")
        try:
            failed.check("1.2.3.4", "a")
            waits.append(0)
        except ApiError as error:
            waits.append(int(error.message.split()[-2]))
    assert waits[:8] == [0, 0, 0, 0, 2, 3, 5, 9]
    assert max(waits) == 61
    failed.check("1.2.3.5", "a")
    now[0] = 60.1
    failed.check("1.2.3.4", "a")
    failed.forget("1.2.3.4", "a")
    for number in range(20_000):  # does not grow without end
        failed.note(str(number), "a")
    assert len(failed._failures) == 10_000
