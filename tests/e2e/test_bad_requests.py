"""Bad input at every endpoint: an error entity with the right status, and the server stays up."""

from __future__ import annotations

import httpx
import pytest

pytestmark = pytest.mark.heavy

JSON = {"content-type": "application/vnd.ksql.v1+json"}


@pytest.fixture(scope="module")
def http(server):
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("SELEC 1;", "Syntax Error"),
        ("CREATE STREAM x AS SELECT * FROM no_such_source;", "NO_SUCH_SOURCE does not exist"),
        ("DROP STREAM no_such_source;", "does not exist"),
        ("CREATE STREAM x (id INT) WITH (kafka_topic='none', value_format='JSON');", "none"),
        ("CREATE STREAM x (id INT) WITH (kafka_topic='x', value_format='XML');", "XML"),
        ("TERMINATE no_such_query;", "Unknown queryId"),
        ("SET 'no.such.setting' = '1';", "no.such.setting"),
        ("DESCRIBE no_such_source;", "NO_SUCH_SOURCE"),
    ],
)
def test_a_statement_that_cannot_run_is_a_statement_error(http, text, part):
    response = http.post("/ksql", json={"ksql": text}, headers=JSON)
    body = response.json()
    assert response.status_code == 400
    assert body["@type"] == "statement_error"
    assert body["error_code"] == 40001
    assert part in body["message"]
    assert body["statementText"]
    assert "Traceback" not in body["message"]


def test_a_request_that_fails_in_its_second_statement_leaves_nothing_behind(http, server):
    text = (
        "CREATE STREAM left_behind (id INT) "
        "WITH (kafka_topic='left_behind', value_format='JSON', partitions=1);"
        "CREATE STREAM y AS SELECT nothing FROM left_behind;"
    )
    assert http.post("/ksql", json={"ksql": text}).status_code == 400
    listed = http.post("/ksql", json={"ksql": "SHOW STREAMS; SHOW TOPICS;"}).text
    assert "left_behind" not in listed.lower()


@pytest.mark.parametrize(
    ("method", "path", "content", "headers", "status"),
    [
        ("POST", "/ksql", b"{broken", JSON, 400),
        ("POST", "/ksql", b"[]", JSON, 400),
        ("POST", "/query-stream", b"{broken", JSON, 400),
        ("POST", "/ksql", b"x" * 10_000_000, JSON, 413),
        ("POST", "/ksql", b"ksql=SHOW STREAMS;", {"content-type": "text/csv"}, 415),
        ("GET", "/nowhere", None, {}, 404),
        ("GET", "/ksql", None, {}, 405),
    ],
)
def test_a_request_that_makes_no_sense_is_an_error_entity(
    http, method, path, content, headers, status
):
    response = http.request(method, path, content=content, headers=headers)
    assert response.status_code == status
    assert response.json()["error_code"] // 100 == status
    assert http.get("/info").status_code == 200


def test_a_statement_of_10_mb_is_refused_and_the_server_stays_up(http):
    text = "SELECT '" + "x" * 10_000_000 + "' FROM a EMIT CHANGES;"
    response = http.post("/query-stream", json={"sql": text})
    assert response.status_code in (400, 413)
    assert http.get("/healthcheck").json()["isHealthy"] is True


def test_a_query_over_what_does_not_exist_is_refused(http):
    response = http.post("/query-stream", json={"sql": "SELECT * FROM nowhere EMIT CHANGES;"})
    assert response.status_code == 400
    assert "NOWHERE does not exist" in response.json()["message"]


def test_the_server_tells_where_its_parts_listen(http, server):
    info = http.get("/info").json()["KsqlServerInfo"]
    assert info["ksqlServiceId"] == "default_"
    assert info["addresses"]["kafka"] == server.kafka
    assert info["addresses"]["registry"] == server.registry
