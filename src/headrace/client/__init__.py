"""A client for Headrace and ksqlDB servers, sync and async.

>>> from headrace.client import Client
>>> with Client("http://localhost:8088") as client:
...     client.execute("CREATE STREAM s (id INT KEY, name STRING) WITH (…);")
...     client.insert("s", {"id": 1, "name": "x"})
...     with client.stream("SELECT * FROM s EMIT CHANGES LIMIT 1;") as rows:
...         for row in rows:
...             print(row["NAME"])
"""

from headrace.client.aio import AsyncClient
from headrace.client.errors import (
    ClientError,
    ConnectionFailed,
    InsertFailed,
    QueryFailed,
    RequestFailed,
    StatementFailed,
    Unauthorized,
)
from headrace.client.rows import Ack, ResultColumn, Row
from headrace.client.sync import Client

__all__ = [
    "Ack",
    "AsyncClient",
    "Client",
    "ClientError",
    "ConnectionFailed",
    "InsertFailed",
    "QueryFailed",
    "RequestFailed",
    "ResultColumn",
    "Row",
    "StatementFailed",
    "Unauthorized",
]
