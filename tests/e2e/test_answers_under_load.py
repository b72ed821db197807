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
from headrace.kafka.ports import free_port
from headrace.kafka.records import NewRecord, RecordWriter
from headrace.model.requests import Request
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


def write(server, topic, count, first=0):
    """Records of about a kilobyte: ten for each second, of 500 keys in turn."""
    text = "x" * 1000
    with RecordWriter(KafkaConnection({"bootstrap.servers": server.kafka})) as writer:
        writer.write_all(
            NewRecord(
                topic,
                f"k{i % 500}".encode(),
                json.dumps({"N": i, "T": text}).encode(),
                timestamp=1_000_000 + 100 * i,
            )
            for i in range(first, first + count)
        )


def test_a_client_that_does_not_read_slows_its_query_down(server, client, stream):
    write(server, stream, 60_000)
    # A micro-batch is 1,000 rows here, of 60: what waits is a small part of the topic.
    own = {"ksql.streams.max.offsets.per.trigger": 1000}
    with client.stream(f"SELECT * FROM {stream} EMIT CHANGES;", properties=own) as rows:
        (running,) = server.engine.pushes
        eventually(lambda: running.is_parked)
        assert 0 < len(list(Path(running.checkpoint, "commits").glob("[0-9]*"))) < 45
        assert running.waiting_bytes <= BUFFERED_BYTES + 1_500_000
        assert not server.engine.env.spark.streams.active
        numbers = [row[1] for _, row in zip(range(60_000), rows, strict=False)]
    assert numbers == list(range(60_000))
    eventually(lambda: not server.engine.pushes)


SLOWLY_READ = {
    "stateless": "SELECT * FROM {S} WHERE N % 3 > 0 EMIT CHANGES",
    "limit": "SELECT * FROM {S} EMIT CHANGES LIMIT 7654",
    "aggregate": "SELECT ID, COUNT(*), MAX(T) FROM {S} GROUP BY ID EMIT CHANGES",
    "window": (
        "SELECT ID, COUNT(*), LATEST_BY_OFFSET(T) FROM {S} WINDOW TUMBLING (SIZE 90 SECONDS) "
        "GROUP BY ID EMIT CHANGES"
    ),
    "final": (
        "SELECT ID, COUNT(*), LATEST_BY_OFFSET(T) FROM {S} WINDOW TUMBLING "
        "(SIZE 10 SECONDS, GRACE PERIOD 0 SECONDS) GROUP BY ID EMIT FINAL"
    ),
    "joined with a table": (
        "SELECT S.ID, S.N, T.N, S.T FROM {S} S LEFT JOIN {S}_T T ON S.ID = T.ID EMIT CHANGES"
    ),
    "joined with a stream": (
        "SELECT A.ID, A.N, B.N, A.T FROM {S} A JOIN {S}_2 B WITHIN 60 SECONDS "
        "GRACE PERIOD 0 SECONDS ON A.ID = B.ID EMIT CHANGES"
    ),
    "table": "SELECT * FROM {S}_T EMIT CHANGES",
}


@pytest.fixture(scope="module")
def slowly_read(server, client):
    client.execute(
        "CREATE STREAM SLOWLY (ID STRING KEY, N INT, T STRING) "
        "WITH (KAFKA_TOPIC='slowly', PARTITIONS=2, VALUE_FORMAT='JSON');"
        "CREATE STREAM SLOWLY_2 (ID STRING KEY, N INT, T STRING) "
        "WITH (KAFKA_TOPIC='slowly', VALUE_FORMAT='JSON');"
        "CREATE TABLE SLOWLY_T (ID STRING PRIMARY KEY, N INT, T STRING) "
        "WITH (KAFKA_TOPIC='slowly', VALUE_FORMAT='JSON');"
    )
    write(server, "slowly", 8_000)
    yield "SLOWLY"
    client.execute("DROP STREAM SLOWLY; DROP STREAM SLOWLY_2; DROP TABLE SLOWLY_T DELETE TOPIC;")


@pytest.mark.parametrize("kind", SLOWLY_READ)
def test_a_slow_reader_whose_query_was_parked_misses_and_doubles_nothing(server, slowly_read, kind):
    asked = Request(
        SLOWLY_READ[kind].format(S=slowly_read) + ";",
        {"auto.offset.reset": "earliest", "ksql.streams.max.offsets.per.trigger": 1000},
    )
    at_once, _ = _all_rows(server.engine.query(asked), pauses=0)
    assert len(at_once) > 1000
    slowly, runs = _all_rows(server.engine.query(asked), pauses=2)
    assert len(runs) > 2
    assert sorted(slowly) == sorted(at_once)
    eventually(lambda: not server.engine.pushes)


def _all_rows(push, pauses):
    """The rows of a query until it waits for records, and its runs in Spark; the reader pauses so
    many times, each until the query is parked."""
    found, runs, deadline = [], [], time.monotonic() + 180
    while time.monotonic() < deadline:
        if push.run not in runs:
            runs.append(push.run)
            if len(runs) <= pauses:
                eventually(lambda: push.is_parked)
        done = _waits_for_records(push)
        batch = push.next_batch(0.5)
        if batch is None or (done and not batch):
            break
        found += [str(row.values) for row in batch]
    push.close()
    return found, runs


def _waits_for_records(push):
    streaming = push._streaming
    waits = streaming is not None and streaming.status["message"] == "Waiting for data to arrive"
    return waits and not push.waiting_bytes


def test_a_parked_query_waits_for_a_registry_that_is_away(server, client):
    client.execute(
        "CREATE STREAM REGISTERED (ID STRING KEY, N INT, T STRING) "
        "WITH (KAFKA_TOPIC='registered', PARTITIONS=1, VALUE_FORMAT='JSON');"
        "CREATE STREAM IN_AVRO WITH (VALUE_FORMAT='AVRO') AS SELECT * FROM REGISTERED;"
    )
    write(server, "registered", 8_000)
    own = {"auto.offset.reset": "earliest", "ksql.streams.max.offsets.per.trigger": 1000}
    push = server.engine.query(Request("SELECT * FROM IN_AVRO EMIT CHANGES LIMIT 8000;", own))
    eventually(lambda: push.is_parked)
    registry = server.engine.env.registry
    urls, registry._urls = registry._urls, [f"http://127.0.0.1:{free_port()}"]
    found, tried = [], 0
    try:
        while tried < 3:
            batch = push.next_batch(1.0)
            found += [row.values[1] for row in batch]
            tried += not batch
        assert push.is_parked
    finally:
        registry._urls = urls
    while (batch := push.next_batch(1.0)) is not None:
        found += [row.values[1] for row in batch]
    assert found == list(range(8_000))
    client.execute("DROP STREAM IN_AVRO; DROP STREAM REGISTERED DELETE TOPIC;")


def test_a_parked_query_is_shown_and_can_be_terminated(server, client, stream):
    write(server, stream, 4000)
    own = {"auto.offset.reset": "earliest", "ksql.streams.max.offsets.per.trigger": 1000}
    push = server.engine.query(Request(f"SELECT * FROM {stream} EMIT CHANGES;", own))
    eventually(lambda: push.is_parked)
    (shown,) = [q for q in client.queries() if q["queryType"] == "PUSH"]
    assert (shown["id"], shown["state"]) == (push.id, "RUNNING")
    assert Path(push.checkpoint).exists()
    client.execute(f"TERMINATE {push.id};")
    assert push.next_batch(5) is None
    assert not server.engine.pushes and not Path(push.checkpoint).exists()


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
