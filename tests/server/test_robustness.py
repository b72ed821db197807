"""Whatever comes in, no 500 goes out; whoever comes and goes, nothing stays behind."""

import asyncio
import gc
import random
import threading
import time
from pathlib import Path

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fake_server import running

PATHS = [
    *("/ksql", "/query", "/query-stream", "/inserts-stream", "/close-query", "/ksql/terminate"),
    *("/info", "/status", "/status/a/b/c", "/is_valid_property/x", "/clusterStatus", "/nothing"),
]
MEMBERS = [
    *("ksql", "sql", "streamsProperties", "properties", "sessionVariables", "queryId", "target"),
    *("commandSequenceNumber", "deleteTopicList"),
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
BODIES = st.one_of(
    st.binary(max_size=200),
    st.dictionaries(st.sampled_from(MEMBERS), VALUES).map(
        lambda body: httpx.Request("POST", "http://x", json=body).content
    ),
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "content-type": st.sampled_from(["application/json", "text/html", "", ";", "a/b;q"]),
        "accept": st.sampled_from(["*/*", "", "q=1", "application/*;q=x", "application/json;q=0"]),
        "origin": st.sampled_from(["null", "http://[", "http://a"]),
    },
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "HEAD", "OPTIONS"]),
    path=st.sampled_from(PATHS),
    body=BODIES,
    headers=HEADERS,
    stream=st.booleans(),
)
def test_no_request_breaks_the_server(url, method, path, body, headers, stream):
    content = iter([body[:5], body[5:]]) if stream else body
    with httpx.Client(base_url=url, verify=False) as http:
        answer = http.request(method, path, content=content, headers=headers)
    assert answer.status_code < 500, (answer.status_code, answer.text)
    if answer.status_code >= 400 and method != "HEAD":
        assert answer.json()["error_code"] // 100 == answer.status_code


def held():
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


async def visit(url, count):
    """Streams opened and dropped at random, some before their first row."""

    async def one(number):
        async with httpx.AsyncClient(base_url=url, verify=False) as http:
            body = {"sql": "SELECT * FROM S EMIT CHANGES;"}
            try:
                async with asyncio.timeout(random.Random(number).uniform(0.001, 0.3)):
                    async with http.stream("POST", "/query-stream", json=body) as answer:
                        async for _ in answer.aiter_lines():
                            pass
            except TimeoutError:
                return

    for start in range(0, count, 20):
        await asyncio.gather(*map(one, range(start, min(start + 20, count))))


def test_clients_that_come_and_go_leave_nothing():
    with running() as (engine, url):
        asyncio.run(visit(url, 40))  # threads of the pools are there from now on
        wait_for_quiet(engine)
        before = held()
        asyncio.run(visit(url, 200))
        wait_for_quiet(engine)
        files, threads = held()
        assert files <= before[0] + 5
        assert threads <= before[1] + 25


def wait_for_quiet(engine):
    deadline = time.monotonic() + 10
    while not all(query.closed.is_set() for query in engine.queries.values()):
        assert time.monotonic() < deadline, "a query was left running"
        time.sleep(0.05)
