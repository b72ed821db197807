"""ksqlDB's client for Java, call by call: queries and inserts of a pretended engine, and the
statements of a real one whose topics are pretended."""

from __future__ import annotations

import threading

import h2.events
import httpx
import pytest
from inserts_stream import inserts_stream

from connect_worker import FILE, connect_worker
from fake_engine import FakeQuery
from fake_server import running
from headrace.engine.statements import connect_client as connect
from headrace.model.errors import HeadraceError
from headrace.model.requests import QueryKind, ResultRow
from headrace.server import query_endpoints
from in_memory_service import ORDERS, Service
from java_client import ClientError, JavaClient

PULL = "SELECT * FROM T WHERE ID = 'a';"
PUSH = "SELECT * FROM S EMIT CHANGES;"
LIMITED = "SELECT * FROM S EMIT CHANGES LIMIT 2;"
COLUMNS = [("ID", "STRING"), ("N", "BIGINT"), ("PRICE", "DECIMAL(6, 2)"), ("X", "DOUBLE")]
ROWS = [["a", 1, 1.5, 0.5], ["b", 2, None, "NaN"]]


def client_of(url):
    return httpx.Client(base_url=url, http1=False, http2=True, timeout=20)


@pytest.fixture
def java(url):
    with client_of(url) as http:
        yield JavaClient(http)


# ------------------------------------------------------------------------------- queries


@pytest.mark.parametrize("sql", [PULL, LIMITED])
def test_a_query_that_ends(java, engine, sql):
    for ask in (java.execute_query, java.stream_query):
        result = ask(sql)
        assert (result.columns, result.rows) == (COLUMNS, ROWS)
        assert result.logged == [] and result.error is None


def test_a_query_is_sent_with_properties_and_variables(java, engine):
    java.variables = {"name": "x", "n": 1}
    java.execute_query("SELECT ${name} FROM T;", {"auto.offset.reset": "earliest"})
    (asked,) = engine.requests
    assert asked.properties == {"auto.offset.reset": "earliest"}
    assert asked.variables == {"name": "x", "n": "1"}


def test_a_stream_goes_on_from_the_last_token(java, engine, monkeypatch):
    """`continueFromLastContinuationToken` asks the same again; the client adds what it saw."""
    asked = []

    def query(request):
        asked.append(request)
        rows = [ResultRow(("a", 1, None, 0.5)), ResultRow((), token=f"token {len(asked)}")]
        return FakeQuery("SCALABLE_PUSH_QUERY_1", QueryKind.PUSH, rows)

    monkeypatch.setattr(engine, "query", query)
    for _ in range(2):
        result = java.stream_query(PUSH, {"ksql.query.push.v2.enabled": True})
        assert result.rows == [["a", 1, None, 0.5]]
        assert result.logged == [] and result.error is None
    assert [request.continuation for request in asked] == [None, "token 1"]
    assert java.continuation == "token 2"


def test_a_query_without_rows_for_a_while_sends_nothing(java, engine):
    """Blank lines are an exception to the client, each of them."""
    found = []
    reading = threading.Thread(target=lambda: found.append(java.stream_query(PUSH)))
    reading.start()
    reading.join(2.5)
    query = engine.queries[list(engine.queries)[-1]]
    java.terminate_push_query(query.id)
    reading.join(10)
    (result,) = found
    assert (result.rows, result.logged) == (ROWS, [])
    with pytest.raises(ClientError, match="No query with id nope"):
        java.terminate_push_query("nope")


def test_the_old_endpoint_keeps_its_blank_lines(url, engine):
    with (
        httpx.Client(base_url=url, timeout=20) as http,
        http.stream("POST", "/query", json={"ksql": PUSH}) as answer,
    ):
        lines = answer.iter_lines()
        assert [next(lines)[:10] for _ in range(3)] == ['[{"header"', '{"row":{"c', '{"row":{"c']
        assert next(lines) == ""


@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("kind", ["PULL", "PUSH"])
def test_an_error_in_the_middle_of_an_answer_ends_it(java, engine, monkeypatch, kind, rows):
    """`streamQuery` tells the error. `executeQuery` has no place for one: it gives the rows."""

    def fails(request):
        query = FakeQuery("q", QueryKind[kind], endless=True)
        for n in range(rows):
            query.push(str(n), n, None, None)
        query.fail(HeadraceError("out of luck"))
        return query

    monkeypatch.setattr(engine, "query", fails)
    # The answer begins before the query fails.
    monkeypatch.setattr(query_endpoints, "WHOLE_SECONDS", 0.0)
    sql = PUSH if kind == "PUSH" else PULL
    streamed = java.stream_query(sql)
    assert (len(streamed.rows), streamed.error, streamed.logged) == (rows, "out of luck", [])
    whole = java.execute_query(sql)
    assert len(whole.rows) == rows
    assert "Could not decode JSON" in str(whole.logged)


def test_a_query_that_is_refused(java, engine):
    refused = r"Received 400 response from server: NO_SUCH does not exist\.\. Error code: 40001"
    for ask in (java.execute_query, java.stream_query):
        with pytest.raises(ClientError, match=refused):
            ask("SELECT * FROM NO_SUCH;")


# ------------------------------------------------------------------------------- inserts


def test_inserts(java, engine):
    java.insert_into("S", {"ID": "a", "DATA": b"\xfb\xff"})
    assert engine.inserters[-1].rows == [{"ID": "a", "DATA": "-_8"}]
    acks = java.stream_inserts("S", {"ID": "a"}, {"BAD": 1}, {"ID": "b"})
    assert [(ack["status"], ack["seq"]) for ack in acks] == [("ok", 0), ("error", 1), ("ok", 2)]
    with pytest.raises(ClientError, match=r"Error code: 40000\. Message: Can't coerce"):
        java.insert_into("S", {"BAD": 1})
    with pytest.raises(ClientError, match=r"Received 400 response .* unknown stream/table"):
        java.insert_into("NO_SUCH", {"ID": "a"})


def test_the_head_of_an_answer_to_inserts_comes_before_the_first_row(engine, url):
    """The client subscribes to its rows when it has it."""
    with inserts_stream(url) as stream:
        stream.send(b'{"target":"S"}\n')
        heads = []
        while not heads:
            heads = [e for e in stream.receive() if isinstance(e, h2.events.ResponseReceived)]
    assert (b":status", b"200") in heads[0].headers


def test_what_the_server_is(java, engine):
    assert java.server_info() == ("0.1.0", "cluster", "default_")
    status, body = java.request("GET", "/info")
    assert status == 200 and b"KsqlServerInfo" in body


# ---------------------------------------------------------------------------- statements


@pytest.fixture
def service(tmp_path):
    made = Service(tmp_path, names="a")
    yield made
    made.close()


@pytest.fixture
def statements(service):
    with running(service.engines[0]) as (_, url), client_of(url) as http:
        yield JavaClient(http)


def test_statements_that_create(statements):
    assert statements.execute_statement(ORDERS) is None
    copy = "CREATE STREAM copy AS SELECT * FROM orders;"
    assert statements.execute_statement(copy) == "CSAS_COPY_1"
    count = "CREATE TABLE counts AS SELECT id, COUNT(*) FROM orders GROUP BY id;"
    assert statements.execute_statement(count) == "CTAS_COUNTS_2"
    insert = "INSERT INTO copy SELECT * FROM orders;"
    assert statements.execute_statement(insert) == "INSERTQUERY_3"
    for sql in (ORDERS, copy, count):
        again = sql.replace("STREAM", "STREAM IF NOT EXISTS").replace(
            "TABLE", "TABLE IF NOT EXISTS"
        )
        assert statements.execute_statement(again) is None
    with pytest.raises(ClientError, match="A stream with the same name already exists"):
        statements.execute_statement(ORDERS)
    assert statements.execute_statement("CREATE TYPE place AS STRUCT<x INT>;") is None


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DROP STREAM IF EXISTS nothing;", "Source `NOTHING` does not exist."),
        ("DROP TABLE IF EXISTS nothing DELETE TOPIC;", "Source `NOTHING` does not exist."),
        ("DROP TYPE IF EXISTS nothing;", "Type 'NOTHING' does not exist"),
        (
            "CREATE TYPE IF NOT EXISTS place AS STRUCT<y STRING>;",
            "PLACE is already registered with type STRUCT<`X` INTEGER>",
        ),
    ],
)
def test_statements_that_have_nothing_to_do_are_a_success(statements, service, sql, message):
    statements.execute_statement("CREATE TYPE place AS STRUCT<x INT>;")
    commands = len(service.log.commands)
    assert statements.execute_statement(sql) is None
    (told,) = statements.http.post("/ksql", json={"ksql": sql}).json()
    assert told["@type"] == "currentStatus"
    assert told["commandStatus"] == {"status": "SUCCESS", "message": message, "queryId": None}
    status = statements.http.get(f"/status/{told['commandId']}").json()
    assert (status["status"], status["message"]) == ("SUCCESS", message)
    assert len(service.log.commands) == commands  # there is nothing to be done again
    after = {"ksql": "LIST TYPES;", "commandSequenceNumber": told["commandSequenceNumber"]}
    (types,) = statements.http.post("/ksql", json=after).json()
    assert list(types["types"]) == ["PLACE"]


def test_lists_and_descriptions(statements):
    statements.execute_statement(ORDERS)
    statements.execute_statement("CREATE STREAM copy AS SELECT * FROM orders;")
    statements.execute_statement(
        "CREATE TABLE counts AS SELECT id, COUNT(*) AS n FROM orders "
        "WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY id;"
    )
    assert statements.list_streams() == [
        ("COPY", "COPY", "KAFKA", "JSON", False),
        ("ORDERS", "orders", "KAFKA", "JSON", False),
    ]
    assert statements.list_tables() == [("COUNTS", "COUNTS", "KAFKA", "JSON", True)]
    assert set(statements.list_topics()) == {"orders", "COPY", "COUNTS"}
    queries = statements.list_queries()
    assert [(id_, kind, sink) for id_, kind, _, sink in queries] == [
        ("CSAS_COPY_1", "PERSISTENT", "COPY"),
        ("CTAS_COUNTS_2", "PERSISTENT", "COUNTS"),
    ]
    statements.variables = {"which": "orders"}
    orders = statements.describe_source("${which}")
    assert (orders["name"], orders["type"], orders["topic"]) == ("ORDERS", "STREAM", "orders")
    assert orders["fields"] == [("ID", "INTEGER", True), ("N", "INTEGER", False)]
    assert [id_ for id_, *_ in orders["reads"]] == ["CSAS_COPY_1", "CTAS_COUNTS_2"]
    assert (orders["writes"], orders["timestamp"], orders["window"]) == ([], None, None)
    counts = statements.describe_source("counts")
    assert (counts["window"], counts["constraints"]) == ("TUMBLING", [])
    assert orders["constraints"] == ["COPY", "COUNTS"]
    with pytest.raises(ClientError, match="Error code: 40001"):
        statements.describe_source("nothing")


def test_assertions(statements):
    statements.assert_topic("orders")
    statements.assert_topic("orders", configs={"partitions": 1}, seconds=3)
    statements.assert_topic("nothing", exists=False)
    with pytest.raises(ClientError, match=r"Received 417 response .* Error code: 41700"):
        statements.assert_topic("nothing", seconds=1)


def test_properties_that_the_client_adds_itself(statements):
    given = {"ksql.query.push.v2.enabled": True, "ksql.query.push.v2.alos.enabled": True}
    tokens = {"ksql.query.push.v2.continuation.tokens.enabled": True}
    assert statements.execute_statement(ORDERS, {**given, **tokens}) is None
    for name in (*given, *tokens):
        assert statements.request("GET", f"/is_valid_property/{name}") == (200, b"true")


def test_connectors(tmp_path, monkeypatch):
    monkeypatch.setattr(connect, "BACKOFF_SECONDS", 0.001)
    with connect_worker() as worker:
        service = Service(tmp_path, names="a", **worker.settings)
        try:
            with running(service.engines[0]) as (_, url), client_of(url) as http:
                _use_connectors(JavaClient(http))
        finally:
            service.close()


def _use_connectors(java):
    config = {"connector.class": FILE, "file": "a.txt"}
    java.create_connector("lines", True, config)
    java.create_connector("lines", True, config, if_not_exists=True)
    java.create_connector("others", True, config, if_not_exists=False)
    with pytest.raises(ClientError, match=r"Received 409 response .* already exists"):
        java.create_connector("lines", True, config)
    listed = {name: (kind, cls) for name, kind, cls, _ in java.list_connectors()}
    assert listed == {"LINES": ("source", FILE), "OTHERS": ("source", FILE)}
    described = java.describe_connector("lines")
    assert described == ("LINES", FILE, [], ["lines"], "source", "RUNNING")
    java.drop_connector("lines")
    java.drop_connector("lines", if_exists=True)
    with pytest.raises(ClientError, match="Received 404 response"):
        java.drop_connector("lines")


def test_what_statements_say(statements):
    statements.execute_statement(ORDERS)
    for sql, message in (
        ("DROP TABLE orders;", "Incompatible data source type is stream, but statement was DROP"),
        ('DROP TABLE "Orders";', "Table Orders does not exist.. Error code"),
        ('DROP STREAM "Orders";', "Did you mean ORDERS\\?"),
    ):
        with pytest.raises(ClientError, match=message):
            statements.execute_statement(sql)
    told = statements.request("POST", "/ksql", {"ksql": "ALTER STREAM orders ADD COLUMN m INT;"})
    assert b"Stream ORDERS altered." in told[1]
