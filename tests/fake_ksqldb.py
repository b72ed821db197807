"""A ksqlDB that answers what the import asks of its REST API, and may break off."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from headrace.client import Client

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


def ends_at(last: str) -> Callable[[str], dict[str, Any]]:
    """Answers until this statement, whose connection breaks."""

    def asked(statement: str) -> dict[str, Any]:
        if statement == last:
            raise ConnectionAbortedError
        return ANSWERS[statement]

    return asked
