"""`/ws/query`, frame by frame."""

import pytest

from websocket_client import Socket, query_path


@pytest.fixture
def connect(url):
    opened = []

    def connect(body, headers=""):
        opened.append(Socket(url, query_path(body), headers))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


def test_schema_rows_and_end(connect, engine):
    ws = connect({"ksql": "SELECT * FROM S EMIT CHANGES LIMIT 2;", "streamsProperties": {"a": "b"}})
    assert ws.status == 101
    assert [field["name"] for field in ws.message()] == ["ID", "N", "PRICE", "X"]
    assert ws.message() == {"row": {"columns": ["a", 1, 1.5, 0.5]}}
    assert ws.message() == {"row": {"columns": ["b", 2, None, "NaN"]}}
    assert ws.message() == {"error": "done"}
    assert ws.closing() == (1000, "done")
    assert engine.requests[-1].properties == {"a": "b"}


def test_print(connect, engine):
    ws = connect({"ksql": "PRINT topic;"})
    assert ws.message() == "Key format: KAFKA_STRING"
    assert ws.message().startswith("rowtime: ")
    assert ws.message() == {"error": "done"}
    assert engine.printed[-1].closed.wait(3)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (None, "Error parsing request: missing request parameter"),
        ({}, 'Error parsing request: "ksql" field of "request" must be populated'),
        ([], "Error parsing request: Invalid JSON in request: expected an object"),
        ({"ksql": "SELECT * FROM NO_SUCH;"}, "NO_SUCH does not exist."),
    ],
)
def test_refusals(connect, engine, body, message):
    ws = connect(body)
    assert ws.message() == {"error": message}
    assert ws.closing() == (1003, message)


def test_client_that_leaves_ends_its_query(connect, engine):
    before = set(engine.queries)
    ws = connect({"ksql": "SELECT * FROM S EMIT CHANGES;"})
    ws.message()
    ws.close()
    (new,) = set(engine.queries) - before
    assert engine.queries[new].closed.wait(3)


def test_pages_of_other_sites_are_refused(connect, engine):
    assert connect({"ksql": "x"}, "origin: http://evil.example\r\n").status == 403
