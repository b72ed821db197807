"""Many clients, slow clients, careless clients: what a server does then."""

from __future__ import annotations

import json
import threading
import time
import uuid
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api_requests import api_requests
from headrace.client import Client
from headrace.engine.queries.row_buffer import BUFFERED_BYTES
from headrace.kafka.client import KafkaConnection
from headrace.kafka.records import NewRecord, RecordWriter
from server_process import eventually

pytestmark = pytest.mark.heavy

PUSH_QUERIES = 20
# It would end the server that all tests share.
ENDS_ALL = frozenset({"/ksql/terminate"})


@pytest.fixture(scope="module")
def client(server):
    with Client(server.url, properties={"auto.offset.reset": "earliest"}) as client:
        yield client


@pytest.fixture
def stream(client):
    name = f"LOAD_{uuid.uuid4().hex[:6].upper()}"
    client.execute(
        f"CREATE STREAM {name} (ID STRING KEY, N INT, T STRING) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )
    yield name
    client.execute(f"DROP STREAM {name} DELETE TOPIC;")


def test_twenty_push_queries_at_once(server, client, stream):
    client.execute(f"INSERT INTO {stream} VALUES ('a', 1, 'x');")
    found: dict[int, list[list[object]]] = {}

    def read(number):
        with client.connect(server.url) as own:
            sql = f"SELECT N + {number} AS M FROM {stream} EMIT CHANGES LIMIT 2;"
            found[number] = [list(row) for row in own.pull(sql)]

    readers = [threading.Thread(target=read, args=(i,), daemon=True) for i in range(PUSH_QUERIES)]
    for reader in readers:
        reader.start()
    eventually(lambda: len(server.engine.pushes) == PUSH_QUERIES, 180)
    client.execute(f"INSERT INTO {stream} VALUES ('b', 2, 'x');")
    for reader in readers:
        reader.join(200)
    assert found == {i: [[1 + i], [2 + i]] for i in range(PUSH_QUERIES)}
    eventually(lambda: not server.engine.pushes)


def test_a_client_that_does_not_read_slows_its_query_down(server, client, stream):
    text = "x" * 1000
    with RecordWriter(KafkaConnection({"bootstrap.servers": server.kafka})) as writer:
        writer.write_all(
            NewRecord(stream, b"k", json.dumps({"N": i, "T": text}).encode()) for i in range(60_000)
        )
    # A micro-batch is 1,000 rows here, of 60: what waits is a small part of the topic.
    own = {"ksql.streams.max.offsets.per.trigger": 1000}
    with client.stream(f"SELECT * FROM {stream} EMIT CHANGES;", properties=own) as rows:
        (running,) = server.engine.pushes
        before = _stalled(running)
        assert before < 45
        assert running.waiting_bytes <= BUFFERED_BYTES + 1_500_000
        numbers = [row[1] for _, row in zip(range(60_000), rows, strict=False)]
    assert numbers == list(range(60_000))
    eventually(lambda: not server.engine.pushes)


def _stalled(running):
    """The number of the batch in which a query has come to a halt."""
    seen, since = -1, time.monotonic()
    while seen < 1 or time.monotonic() - since < 3:
        if (now := _batches(running)) != seen:
            seen, since = now, time.monotonic()
        time.sleep(0.1)
    return seen


def _batches(running):
    progress = running._streaming.lastProgress
    return -1 if progress is None else progress["batchId"]


@pytest.mark.parametrize("way", ["hang up", "close", "terminate", "drop"])
def test_a_push_query_leaves_nothing_behind(server, client, stream, way):
    client.execute(f"INSERT INTO {stream} VALUES ('a', 1, 'x');")
    with client.connect(server.url) as own:
        rows = own.stream(f"SELECT * FROM {stream} EMIT CHANGES;")
        each = iter(rows)
        next(each)
        (running,) = server.engine.pushes
        streaming = running._streaming
        folder = Path(running.checkpoint)
        assert folder.exists()
        if way == "hang up":
            rows.close()
        elif way == "close":
            own.close_query(rows.query_id)
            assert list(each) == []
        elif way == "terminate":
            client.execute(f"TERMINATE {rows.query_id};")
            assert list(each) == []
        else:
            own.close()
    eventually(lambda: not server.engine.pushes and not folder.exists())
    assert not streaming.isActive


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_described_request_breaks_the_server(server, described, data):
    request = data.draw(api_requests(described, ENDS_ALL))
    with httpx.stream(
        request.method,
        server.url + request.path,
        content=request.content,
        headers=request.headers,
        timeout=60,
    ) as answer:
        # A command that never comes is waited for in vain.
        assert answer.status_code < 500 or _is_late(answer), answer.read()


def _is_late(answer):
    return json.loads(answer.read())["error_code"] == 50301


@pytest.fixture(scope="module")
def described(server, client):
    client.execute(
        "CREATE STREAM S (ID STRING KEY, N INT) "
        "WITH (KAFKA_TOPIC='s', PARTITIONS=1, VALUE_FORMAT='JSON');"
        "CREATE TABLE T (ID STRING PRIMARY KEY, N INT) "
        "WITH (KAFKA_TOPIC='t', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )
    return httpx.get(f"{server.url}/openapi.json").json()
