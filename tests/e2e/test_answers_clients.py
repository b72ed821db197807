"""Clients that were written for ksqlDB: its package on PyPI, and requests as its reference has."""

from __future__ import annotations

import asyncio
import base64
import json
import uuid

import httpx
import pytest
from google.protobuf.message_factory import GetMessageClass
from ksqldb import KSQLdbClient

from headrace.schemas import protobuf
from java_client import JavaClient
from scene import record
from websocket_client import Socket, query_path

pytestmark = pytest.mark.heavy

EARLIEST = {"ksql.streams.auto.offset.reset": "earliest"}
KSQL = "application/vnd.ksql.v1+json"
DELIMITED = "application/vnd.ksqlapi.delimited.v1"
PROTOBUF = "application/vnd.ksql.v1+protobuf"


@pytest.fixture(scope="module")
def http(server):
    """Cleartext HTTP/2 from the first byte."""
    with httpx.Client(base_url=server.url, http1=False, http2=True, timeout=120) as client:
        yield client


@pytest.fixture(scope="module")
def riders(server):
    """A stream with three rows, and a table over it."""
    client = KSQLdbClient(server.url)
    client.ksql(
        "CREATE STREAM RIDERS (PROFILEID STRING KEY, LATITUDE DOUBLE, ACTIVE BOOLEAN) "
        "WITH (kafka_topic='riders', value_format='json', partitions=1);"
    )
    rows = [
        {"PROFILEID": "c2309eec", "LATITUDE": 37.7877, "ACTIVE": True},
        {"profileid": "18f4ea86", "latitude": 37.3903, "active": False},
        {"PROFILEID": "c2309eec", "LATITUDE": 37.8, "ACTIVE": True},
    ]
    acks = client.inserts_stream("riders", rows)
    assert acks == [{"status": "ok", "seq": i} for i in range(3)]
    client.ksql(
        "CREATE TABLE CURRENT AS SELECT PROFILEID, LATEST_BY_OFFSET(LATITUDE) AS LA, COUNT(*) AS N "
        "FROM RIDERS GROUP BY PROFILEID EMIT CHANGES;",
        stream_properties=EARLIEST,
    )
    return client


# ------------------------------------------------------------------------ the package ksqldb


def test_properties_and_statements(riders):
    names = {p["name"] for p in riders.get_properties()}
    assert {"ksql.streams.auto.offset.reset", "ksql.service.id"} <= names
    assert any(t["name"] == "riders" for t in riders.ksql("show topics;")[0]["topics"])
    assert any(s["name"] == "RIDERS" for s in riders.ksql("show streams;")[0]["streams"])
    assert any(t["name"] == "CURRENT" for t in riders.ksql("show tables;")[0]["tables"])
    described = riders.ksql("describe RIDERS extended;")[0]["sourceDescription"]
    assert (described["topic"], described["partitions"]) == ("riders", 1)


def test_a_query_that_ends(riders):
    head, *rows = riders.query_sync("select * from RIDERS;", stream_properties=EARLIEST, timeout=60)
    assert head["columnNames"] == ["PROFILEID", "LATITUDE", "ACTIVE"]
    assert rows[1] == ["18f4ea86", 37.3903, False]
    assert len(rows) == 3


def test_a_query_that_goes_on_until_it_is_closed(riders):
    async def read():
        head, rows = None, []
        query = riders.query_async(
            "select PROFILEID, ACTIVE from RIDERS emit changes;",
            stream_properties=EARLIEST,
            timeout=None,
        )
        async for part in query:
            if head is None:
                head = part
                continue
            rows.append(part)
            if len(rows) == 3:
                assert await asyncio.to_thread(riders.close_query, head["queryId"])
        return head, rows

    head, rows = asyncio.run(asyncio.wait_for(read(), 120))
    assert head["columnTypes"] == ["STRING", "BOOLEAN"]
    assert rows[0] == ["c2309eec", True]
    assert riders.close_query(head["queryId"]) is False


# --------------------------------------------------------------------- the reference's requests


def test_statements_over_http2(server, http, riders):
    body = {"ksql": "LIST STREAMS;", "streamsProperties": {}}
    answer = http.post("/ksql", json=body, headers={"accept": KSQL, "content-type": KSQL})
    assert (answer.http_version, answer.headers["content-type"]) == ("HTTP/2", KSQL)
    (listed,) = answer.json()
    assert (listed["@type"], listed["statementText"]) == ("streams", "LIST STREAMS;")
    plain = httpx.post(
        f"{server.url}/ksql", content=json.dumps(body), headers={"accept": KSQL}, timeout=60
    )
    assert plain.json() == answer.json()


@pytest.mark.parametrize("path", ["/query", "/query-stream"])
def test_rows_in_every_form(http, riders, path):
    sql = "SELECT PROFILEID, LATITUDE FROM RIDERS WHERE ACTIVE EMIT CHANGES LIMIT 2;"
    body = {"sql": sql, "properties": EARLIEST, "ksql": sql, "streamsProperties": EARLIEST}
    rows = [["c2309eec", 37.7877], ["c2309eec", 37.8]]
    lined = http.post(path, json=body, headers={"accept": DELIMITED})
    assert lined.headers["content-type"] == DELIMITED
    head, *found = map(json.loads, lined.text.splitlines())
    assert (head["columnNames"], head["columnTypes"]) == (
        ["PROFILEID", "LATITUDE"],
        ["STRING", "DOUBLE"],
    )
    assert found == rows
    streamed = http.post(path, json=body, headers={"accept": KSQL}).json()
    assert streamed[0]["header"]["schema"] == "`PROFILEID` STRING, `LATITUDE` DOUBLE"
    assert streamed[1:] == [
        *({"row": {"columns": row}} for row in rows),
        {"finalMessage": "Limit Reached"},
    ]


def test_rows_in_protobuf(http, riders):
    body = {"sql": "SELECT * FROM RIDERS;"}
    answer = http.post("/query-stream", json=body, headers={"accept": PROTOBUF})
    assert answer.headers["content-type"] == PROTOBUF
    head, *rows, last = answer.json()
    message = GetMessageClass(protobuf.parse(head["header"]["protoSchema"], {}).message())
    found = [message.FromString(base64.b64decode(r["row"]["protobufBytes"])) for r in rows]
    assert [(m.PROFILEID, m.LATITUDE) for m in found][1] == ("18f4ea86", 37.3903)
    assert last == {"finalMessage": "Query Completed"}


def test_a_table_without_its_deleted_rows(http, server):
    name = f"T{uuid.uuid4().hex[:6].upper()}"
    made = (
        f"CREATE TABLE {name} (ID INT PRIMARY KEY, V INT) "
        f"WITH (kafka_topic='{name}', value_format='JSON', partitions=1);"
        f"INSERT INTO {name} VALUES (1, 10); INSERT INTO {name} (ID) VALUES (1);"
    )
    assert http.post("/ksql", json={"ksql": made}).status_code == 200
    sql = f"SELECT * FROM {name} EMIT CHANGES;"
    found = []
    with http.stream(
        "POST",
        "/query-stream",
        json={"sql": sql, "properties": {**EARLIEST, "cache.max.bytes.buffering": 0}},
        headers={"accept": KSQL},
    ) as answer:
        for line in answer.iter_lines():
            found += [json.loads(line.strip("[,"))] if line.strip() else []
            if len(found) == 3:
                break
    assert found[1:] == [
        {"row": {"columns": [1, 10]}},
        {"row": {"columns": [1, None], "tombstone": True}},
    ]


def test_variables_and_the_order_of_commands(http, riders):
    name = f"V{uuid.uuid4().hex[:6].upper()}"
    body = {
        "ksql": "CREATE STREAM ${name} (ID INT KEY, V ${type}) "
        "WITH (kafka_topic='${name}', value_format='JSON', partitions=1);",
        "sessionVariables": {"name": name, "type": "INT"},
    }
    (created,) = http.post("/ksql", json=body).json()
    assert created["commandId"] == f"stream/{name}/create"
    assert created["commandStatus"]["status"] == "SUCCESS"
    sequence = created["commandSequenceNumber"]
    after = {"ksql": f"DESCRIBE {name};", "commandSequenceNumber": sequence}
    assert http.post("/ksql", json=after).json()[0]["sourceDescription"]["name"] == name
    status = http.get(f"/status/{created['commandId']}").json()
    assert status["status"] == "SUCCESS"
    assert http.get("/status").json()["commandStatuses"][created["commandId"]] == "SUCCESS"
    late = http.post("/ksql", json={**after, "commandSequenceNumber": sequence + 1000})
    assert (late.status_code, late.json()) == (
        503,
        {
            "@type": "generic_error",
            "error_code": 50301,
            "message": "Timed out while waiting for a previous command to execute. command "
            f"sequence number: {sequence + 1000}",
        },
    )
    column = {
        "sql": "SELECT LATITUDE AS ${name} FROM RIDERS;",
        "sessionVariables": {"name": "user"},
    }
    head = json.loads(http.post("/query-stream", json=column).text.splitlines()[0])
    assert head["columnNames"] == ["USER"]


@pytest.mark.parametrize(
    ("body", "code", "type_"),
    [
        ({"ksql": "SELECT * FROM RIDERS;"}, 40002, "statement_error"),
        ({"ksql": "PRINT riders;"}, 40002, "statement_error"),
        ({"ksql": "CREATE NONSENSE;"}, 40001, "statement_error"),
        ({"ksql": "DESCRIBE NOWHERE;"}, 40001, "statement_error"),
        ({"ksql": "SHOW STREAMS;", "streamsProperties": {"ksql.service.id": "x"}}, 40000, None),
        ({"ksql": "SHOW STREAMS;", "streamsProperties": {"no.such": "x"}}, 40000, None),
    ],
)
def test_refusals(http, riders, body, code, type_):
    answer = http.post("/ksql", json=body)
    told = answer.json()
    assert (answer.status_code, told["error_code"]) == (400, code), told
    assert told["@type"] == (type_ or "generic_error")


def test_properties_that_may_be_set(http, riders):
    assert http.get("/is_valid_property/auto.offset.reset").json() is True
    refused = http.get("/is_valid_property/ksql.service.id")
    assert (refused.status_code, refused.json()["@type"]) == (400, "generic_error")
    assert refused.json()["error_code"] == 40000


def test_what_the_server_is(http, riders):
    told = http.get("/info").json()["KsqlServerInfo"]
    assert told["ksqlServiceId"] == "default_"
    assert told["kafkaClusterId"]
    health = http.get("/healthcheck").json()
    assert health["isHealthy"] is True
    assert health["details"]["kafka"] == {"isHealthy": True}
    ((_, host),) = http.get("/clusterStatus").json()["clusterStatus"].items()
    assert host["hostAlive"] is True
    assert http.get("/v1/metadata/id").json()["scope"]["clusters"]["kafka-cluster"]


def test_print_has_one_content_type(http, riders):
    body = {"sql": "PRINT riders FROM BEGINNING LIMIT 2;"}
    refused = http.post("/query-stream", json=body, headers={"accept": "application/json"})
    assert refused.status_code == 406
    lines = http.post("/query-stream", json=body).text.splitlines()
    assert lines[0].startswith("Key format: ")
    assert [line.startswith("rowtime: ") for line in lines[2:]] == [True, True]


def test_a_query_over_a_websocket(server, riders):
    asked = {
        "ksql": "SELECT PROFILEID FROM RIDERS EMIT CHANGES LIMIT 1;",
        "streamsProperties": EARLIEST,
    }
    socket = Socket(server.url, query_path(asked), timeout=60)
    schema, row = socket.message(), socket.message()
    socket.close()
    assert [field["name"] for field in schema] == ["PROFILEID"]
    assert row == {"row": {"columns": ["c2309eec"]}}


def test_a_table_is_asked_by_its_key(http, riders):
    body = {"ksql": "SELECT * FROM CURRENT WHERE PROFILEID = 'c2309eec';"}
    for _ in range(300):
        head, *rows = http.post("/query", json=body).json()
        if rows == [{"row": {"columns": ["c2309eec", 37.8, 2]}}]:
            break
    else:
        pytest.fail(f"the table holds {rows}")
    assert head["header"]["schema"] == "`PROFILEID` STRING KEY, `LA` DOUBLE, `N` BIGINT"


# ------------------------------------------------------------- the requests of the Java client


def test_header_columns_with_the_java_client(http, scene):
    java = JavaClient(http)
    scene.topic("javas")
    columns = "A INT, TRACE BYTES HEADER('trace'), B INT"
    for kind, name, key in (
        ("STREAM", "JAVA_STREAM", "KEY"),
        ("SOURCE TABLE", "JAVA_TABLE", "PRIMARY KEY"),
    ):
        java.execute_statement(
            f"CREATE {kind} {name} (K STRING {key}, {columns}) "
            "WITH (kafka_topic='javas', value_format='JSON');"
        )
        assert sorted(java.describe_source(name)["fields"]) == [
            ("A", "INTEGER", False),
            ("B", "INTEGER", False),
            ("K", "STRING", True),
            ("TRACE", "BYTES", False),
        ]

    assert java.stream_inserts("JAVA_STREAM", {"K": "k", "A": 1, "B": 2}) == [
        {"status": "ok", "seq": 0}
    ]
    first, second = java.stream_inserts(
        "JAVA_STREAM", {"K": "l", "A": 3}, {"K": "m", "TRACE": b"\0"}
    )
    assert first == {"status": "ok", "seq": 0} and second["status"] == "error"
    assert "Cannot insert into HEADER columns: TRACE" in second["message"]
    scene.write("javas", record({"A": 5}, key="n", headers=(("trace", b"t1"),)))

    columns = [("K", "STRING"), ("A", "INTEGER"), ("B", "INTEGER"), ("TRACE", "BYTES")]
    trace = base64.b64encode(b"t1").decode()
    expected = [["k", 1, 2, None], ["l", 3, None, None], ["n", 5, None, trace]]
    for sql in ("SELECT * FROM JAVA_STREAM;", "SELECT * FROM JAVA_STREAM EMIT CHANGES LIMIT 3;"):
        for ask in (java.execute_query, java.stream_query):
            found = ask(sql, EARLIEST)
            assert (found.columns, found.rows, found.logged) == (columns, expected, [])
    by_key = "SELECT * FROM JAVA_TABLE WHERE K = 'n';"
    found = scene.wait(lambda: java.execute_query(by_key), lambda answer: answer.rows)
    assert (found.columns, found.rows) == (columns, expected[2:])


def test_bytes_and_tokens_with_the_java_client(http, scene):
    java = JavaClient(http)
    java.execute_statement(
        "CREATE STREAM JAVA_BYTES (K STRING KEY, B BYTES, BS ARRAY<BYTES>) "
        "WITH (kafka_topic='java_bytes', value_format='JSON', partitions=1);"
    )
    java.insert_into("JAVA_BYTES", {"K": "url", "B": b"\xfb\xff", "BS": ["-_8", "+/8=", "-_8="]})
    java.insert_into("JAVA_BYTES", {"K": "none"})
    alike = base64.b64encode(b"\xfb\xff").decode()
    # The client asks for continuation tokens by itself, if it is to use the new push queries.
    properties = {**EARLIEST, "ksql.query.push.v2.enabled": True}
    for sql in ("SELECT * FROM JAVA_BYTES;", "SELECT * FROM JAVA_BYTES EMIT CHANGES LIMIT 2;"):
        found = java.stream_query(sql, properties if "EMIT" in sql else EARLIEST)
        assert found.rows == [["url", alike, [alike] * 3], ["none", None, None]]
