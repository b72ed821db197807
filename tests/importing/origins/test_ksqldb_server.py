"""A running ksqlDB, read by its REST API; what breaks off in the middle gives nothing at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from headrace.client import Client
from headrace.importing.assessment import Verdict, assess
from headrace.importing.origins.ksqldb_server import read_server
from headrace.importing.recorded import History, Recorded, Unreadable
from headrace.model.errors import HeadraceError

ORDERS = (
    "CREATE STREAM ORDERS (ID STRING KEY, AMOUNT DOUBLE, PLACE PLACE) WITH "
    "(CLEANUP_POLICY='delete', KAFKA_TOPIC='orders', VALUE_FORMAT='JSON');"
)
BIG = (
    "CREATE STREAM BIG WITH (CLEANUP_POLICY='delete', KAFKA_TOPIC='BIG', PARTITIONS=1, REPLICAS=1,"
    " RETENTION_MS=604800000) AS SELECT O.ID ID, O.AMOUNT AMOUNT, NEAREST(O.AMOUNT) NEAR\n"
    "FROM ORDERS O\nEMIT CHANGES;"
)
SUMS = (
    "CREATE TABLE SUMS WITH (CLEANUP_POLICY='compact', KAFKA_TOPIC='SUMS', PARTITIONS=1, "
    "REPLICAS=1, RETENTION_MS=604800000) AS SELECT O.ID ID, SUM(O.AMOUNT) S, COUNT(*) N\n"
    "FROM ORDERS O\nGROUP BY O.ID\nEMIT CHANGES;"
)
OLD = (
    "CREATE STREAM OLD WITH (CLEANUP_POLICY='delete', KAFKA_TOPIC='OLD', PARTITIONS=1, REPLICAS=1)"
    " AS SELECT O.ID ID, O.AMOUNT AMOUNT, O.PLACE PLACE\nFROM ORDERS O\nEMIT CHANGES;"
)
INSERT = (
    "INSERT INTO OLD SELECT O.ID ID, O.AMOUNT AMOUNT, O.PLACE PLACE\nFROM ORDERS O\nEMIT CHANGES;"
)


def source(type_: str, name: str, statement: str) -> dict[str, Any]:
    return {"type": type_, "name": name, "statement": statement}


def query(id_: str, sink: str, text: str, state: str = "RUNNING") -> dict[str, Any]:
    return {
        "id": id_,
        "statementText": text,
        "sinks": [sink],
        "overriddenProperties": {"auto.offset.reset": "earliest"},
        "queryType": "PERSISTENT",
        "consumerGroupId": f"_confluent-ksql-shop_query_{id_}",
        "state": state,
    }


STRING: dict[str, Any] = {"type": "STRING", "fields": None, "memberSchema": None}
ANSWERS: dict[str, dict[str, Any]] = {
    "SHOW PROPERTIES;": {
        "properties": [
            {"name": "ksql.streams.auto.offset.reset", "scope": "KSQL", "value": "latest"}
        ]
    },
    "SHOW TYPES;": {
        "types": {
            "PLACE": {
                "type": "STRUCT",
                "fields": [
                    {"name": "CITY", "schema": STRING},
                    {
                        "name": "AT",
                        "schema": {"type": "ARRAY", "fields": None, "memberSchema": STRING},
                    },
                    {
                        "name": "FEE",
                        "schema": {
                            "type": "DECIMAL",
                            "parameters": {"precision": 4, "scale": 2},
                            "fields": None,
                            "memberSchema": None,
                        },
                    },
                ],
                "memberSchema": None,
            }
        }
    },
    "SHOW STREAMS EXTENDED;": {
        "sourceDescriptions": [
            source("STREAM", "BIG", BIG),
            source("STREAM", "ORDERS", ORDERS),
            source("STREAM", "OLD", OLD),
            source("STREAM", "GREW", "ALTER STREAM GREW ADD COLUMN C INT;"),
        ]
    },
    "SHOW TABLES EXTENDED;": {"sourceDescriptions": [source("TABLE", "SUMS", SUMS)]},
    "SHOW QUERIES EXTENDED;": {
        "queryDescriptions": [
            query("INSERTQUERY_9", "OLD", INSERT),
            query("CTAS_SUMS_7", "SUMS", SUMS, "PAUSED"),
            query("CSAS_BIG_5", "BIG", BIG),
            {**query("CST_T_3", "", "CREATE SOURCE TABLE T;"), "sinks": []},
            {**query("transient_1", "", "SELECT 1;"), "queryType": "PUSH"},
        ]
    },
    "SHOW FUNCTIONS;": {"functions": [{"name": "ABS"}, {"name": "nearest"}]},
    "DESCRIBE FUNCTION `nearest`;": {
        "type": "SCALAR",
        "functions": [{"arguments": [{"name": "x", "type": "DOUBLE"}], "returnType": "STRING"}],
    },
}


class Answering(BaseHTTPRequestHandler):
    asked: Callable[[str], dict[str, Any]]

    def do_GET(self) -> None:
        self._send({"KsqlServerInfo": {"version": "0.29.0", "ksqlServiceId": "shop_"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self._send([type(self).asked(body["ksql"])])

    def _send(self, answer: object) -> None:
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def ksqldb(asked: Callable[[str], dict[str, Any]]) -> Iterator[Client]:
    handler = type("Handler", (Answering,), {"asked": staticmethod(asked)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with Client(f"http://127.0.0.1:{server.server_port}", timeout=10) as client:
            yield client
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def history() -> Iterator[History]:
    with ksqldb(ANSWERS.__getitem__) as client:
        yield read_server(client)


def test_what_it_has_in_order(history: History) -> None:
    places = [entry.place for entry in history.entries]
    assert places == [
        "type PLACE",
        "stream ORDERS",
        "stream OLD",
        "stream GREW",
        "stream BIG",
        "table SUMS",
        "query INSERTQUERY_9",
    ]
    (grew,) = (e for e in history.entries if isinstance(e, Unreadable))
    assert "import from there (--command-topic)" in grew.reason
    by_place = {e.place: e for e in history.entries if isinstance(e, Recorded)}
    assert by_place["type PLACE"].text == (
        "CREATE TYPE `PLACE` AS STRUCT<`CITY` STRING, `AT` ARRAY<STRING>, `FEE` DECIMAL(4, 2)>;"
    )
    assert by_place["stream BIG"].group == "_confluent-ksql-shop_query_CSAS_BIG_5"
    assert by_place["stream BIG"].session == {"auto.offset.reset": "earliest"}
    assert by_place["table SUMS"].paused
    assert by_place["stream OLD"].ended  # its query was terminated


def test_what_becomes_of_it(history: History) -> None:
    found = assess(history)
    verdicts = {item.title: item.verdict for item in found.items}
    assert verdicts == {
        "stream GREW": Verdict.CANNOT,
        "type PLACE": Verdict.AS_IS,
        "stream ORDERS": Verdict.AS_IS,
        "stream OLD": Verdict.DIFFERS,
        "stream BIG (query CSAS_BIG_5)": Verdict.CANNOT,
        "table SUMS (query CTAS_SUMS_7)": Verdict.DIFFERS,
        "insert into OLD (query INSERTQUERY_9)": Verdict.AS_IS,
    }
    (function,) = found.functions
    assert function.name == "NEAREST" and '@udf("(x DOUBLE) -> STRING")' in function.stub()


@pytest.mark.parametrize("last", ["SHOW TABLES EXTENDED;", "SHOW QUERIES EXTENDED;"])
def test_a_ksqldb_that_ends_in_the_middle(last: str) -> None:
    def asked(statement: str) -> dict[str, Any]:
        if statement == last:
            raise ConnectionAbortedError
        return ANSWERS[statement]

    with (
        ksqldb(asked) as client,
        pytest.raises(HeadraceError, match="could not be read to the end, so that nothing was"),
    ):
        read_server(client)


def test_what_is_no_ksqldb() -> None:
    with (
        ksqldb(lambda statement: {"hello": 1}) as client,
        pytest.raises(HeadraceError, match="is not ksqlDB, or one of another kind"),
    ):
        read_server(client)


def test_nobody_there() -> None:
    with (
        Client("http://127.0.0.1:1") as client,
        pytest.raises(HeadraceError, match="nothing was imported: Cannot reach the server"),
    ):
        read_server(client)
