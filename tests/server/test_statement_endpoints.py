"""`/ksql` and the small endpoints, over real sockets in both protocols."""

import pytest

from headrace.model.requests import Request

KSQL = "application/vnd.ksql.v1+json"


def test_statements_are_answered_by_entities(http, engine):
    answer = http.post("/ksql", json={"ksql": "SHOW STREAMS; CREATE STREAM S …;"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == KSQL
    assert [entity["@type"] for entity in answer.json()] == ["streams", "currentStatus"]


def test_request_carries_properties_variables_and_sequence(http, engine):
    body = {
        "ksql": "SHOW STREAMS;",
        "streamsProperties": {"auto.offset.reset": "earliest", "n": 1},
        "sessionVariables": {"a": "x", "b": 2},
        "commandSequenceNumber": 5,
    }
    assert http.post("/ksql", json=body).status_code == 200
    assert engine.requests == [
        Request("SHOW STREAMS;", body["streamsProperties"], {"a": "x", "b": "2"}, 5)
    ]


def test_curl_without_a_content_type_works(http, engine):
    headers = {"content-type": "application/x-www-form-urlencoded"}
    answer = http.post("/ksql", content=b'{"ksql": "SHOW STREAMS;"}', headers=headers)
    assert answer.status_code == 200


def error_of(answer):
    body = answer.json()
    assert answer.status_code == body["error_code"] // 100
    return body


def test_failed_statement(http, engine):
    body = error_of(http.post("/ksql", json={"ksql": "DROP STREAM NO_SUCH;"}))
    assert body == {
        "@type": "statement_error",
        "error_code": 40001,
        "message": "NO_SUCH does not exist.",
        "statementText": "DROP STREAM NO_SUCH;",
        "entities": [
            {"@type": "warning_entity", "statementText": "X;", "message": "fine", "warnings": []}
        ],
    }


def test_error_without_a_statement_gets_the_request_text(http, engine):
    body = error_of(http.post("/ksql", json={"ksql": "SYNTAX"}))
    assert body["statementText"] == "SYNTAX"


def test_a_bug_is_told_without_its_detail(http, engine, caplog):
    body = error_of(http.post("/ksql", json={"ksql": "BUG;"}))
    assert body["@type"] == "generic_error"
    assert body["error_code"] == 50000
    assert "secret" not in str(body)


BROKEN = [
    (b"{", 40000),
    (b"[]", 40000),
    (b'"x"', 40000),
    (b"\xff\xfe\x00", 40000),
    (b'{"ksql": 1}', 40000),
    (b'{"ksql": "x", "streamsProperties": []}', 40000),
    (b'{"ksql": "x", "commandSequenceNumber": true}', 40000),
    (b'{"ksql": NaN}', 40000),
    (b'{"ksql": "NO_SUCH \\ud800", "sql": "NO_SUCH \\ud800"}', 40000),
    (b'{"ksql": ' + b"[" * 100_000 + b"}", 40000),
    (b'{"ksql": ' + b"9" * 5000 + b"}", 40000),
    (b'{"ksql": "' + b"x" * 10_000_000 + b'"}', 41300),
]


@pytest.mark.parametrize(("content", "code"), BROKEN, ids=range(len(BROKEN)))
@pytest.mark.parametrize("path", ["/ksql", "/query", "/query-stream"])
def test_broken_bodies(http, engine, content, code, path):
    answer = http.post(path, content=content, headers={"content-type": KSQL})
    assert error_of(answer)["error_code"] == code


def test_body_without_a_length_is_bounded_too(http, engine):
    def endless():
        for _ in range(100):
            yield b"x" * 100_000

    answer = http.post("/ksql", content=endless(), headers={"content-type": KSQL})
    assert error_of(answer)["error_code"] == 41300


@pytest.mark.parametrize("path", ["/ksql", "/query", "/query-stream", "/inserts-stream"])
def test_wrong_content_type(http, path):
    answer = http.post(path, content=b"<a/>", headers={"content-type": "application/xml"})
    assert error_of(answer)["error_code"] == 41500


@pytest.mark.parametrize("path", ["/ksql", "/query", "/query-stream"])
def test_unacceptable(http, path, engine):
    answer = http.post(
        path, json={"ksql": "SELECT 1;", "sql": "SELECT 1;"}, headers={"accept": "image/png"}
    )
    assert error_of(answer)["error_code"] == 40600


def test_unknown_endpoint_and_wrong_method(http):
    assert error_of(http.get("/nothing"))["error_code"] == 40400
    assert error_of(http.get("/ksql"))["error_code"] == 40500
    assert error_of(http.post("/info"))["error_code"] == 40500


def test_info_and_health(http, engine):
    assert http.get("/info").json()["KsqlServerInfo"]["ksqlServiceId"] == "default_"
    assert http.get("/healthcheck").json()["isHealthy"] is True
    engine.healthy = False
    sick = http.get("/healthcheck")
    engine.healthy = True
    told = {"isHealthy": False, "reason": "nobody answers"}
    assert (sick.status_code, sick.json()["details"]["kafka"]) == (503, told)
    assert http.get("/clusterStatus").json()["clusterStatus"]["127.0.0.1:8088"]["hostAlive"]
    assert http.get("/v1/metadata/id").json()["scope"]["clusters"]["kafka-cluster"] == "cluster"
    assert http.get("/").headers["location"] == "/info"


def test_what_other_servers_tell(http, engine):
    """The messages that ksqlDB's servers send each other."""
    beat = {"hostInfo": "other:8088", "timestamp": 1700000000000}
    assert http.post("/heartbeat", json=beat).json() == {"isOk": True}
    assert engine.requests[-1] == ("heartbeat", "other:8088")
    store = {"lagByPartition": {"0": {"currentOffsetPosition": 1}}, "size": 1}
    lags = {"stateStoreLags": {"q#s": store}, "updateTimeMs": 5}
    told = http.post("/lag", json={"ksqlHost": "other:8088", "hostStoreLags": lags})
    assert told.json() == {"isOk": True}
    assert engine.requests[-1] == ("lag", "other:8088", {"q#s": store}, 5)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/heartbeat", {}),
        ("/heartbeat", {"hostInfo": "other:8088"}),
        ("/heartbeat", {"hostInfo": "other", "timestamp": 1}),
        ("/heartbeat", {"hostInfo": f"{'x' * 400}:1", "timestamp": 1}),
        ("/lag", {"ksqlHost": "other:8088"}),
        ("/lag", {"ksqlHost": "other:8088", "hostStoreLags": {"updateTimeMs": 5}}),
    ],
)
def test_what_other_servers_do_not_tell(http, path, body):
    assert error_of(http.post(path, json=body))["error_code"] == 40000


def test_command_status(http):
    status = http.get("/status/stream/S/create").json()
    assert status == {"status": "SUCCESS", "message": "Stream created", "queryId": None}
    assert http.get("/status").json() == {"commandStatuses": {"stream/S/create": "SUCCESS"}}
    assert error_of(http.get("/status/stream/X/create"))["message"] == "Command not found"


def test_valid_property(http):
    assert http.get("/is_valid_property/auto.offset.reset").json() is True
    assert error_of(http.get("/is_valid_property/ksql.service.id"))["error_code"] == 40000


def test_terminate(http, engine):
    assert http.post("/ksql/terminate", json={"deleteTopicList": ["A", "b.*"]}).json() == []
    assert engine.requests == [("A", "b.*")]
    broken = http.post("/ksql/terminate", json={"deleteTopicList": [1]})
    assert "must be an array of strings" in error_of(broken)["message"]


def test_pages_of_other_sites_are_refused(http):
    answer = http.post(
        "/ksql", json={"ksql": "SHOW STREAMS;"}, headers={"origin": "http://evil.example"}
    )
    assert error_of(answer)["error_code"] == 40300
    own = str(http.base_url).rstrip("/")
    answer = http.post("/ksql", json={"ksql": "SHOW STREAMS;"}, headers={"origin": own})
    assert answer.status_code == 200
