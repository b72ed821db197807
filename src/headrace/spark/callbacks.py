"""The line on which Spark calls Python, for queries that come and go.

Py4J opens a connection, with a thread at its Python end, for each Java thread that calls Python;
each streaming query has such a thread. It keeps the connection when that thread is gone.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from headrace.spark.private import field


class CallbackLine:
    """One query's connection, from within a call; hung up once the query has ended."""

    def __init__(self, spark: SparkSession) -> None:
        gateway: Any = spark.sparkContext._gateway
        self._client = gateway.java_gateway_server.getCallbackClient()
        self._connection = self._client.getPerThreadConnection()

    def hang_up(self) -> None:
        # It reaches into Py4J: where that is built differently, lines stay open as they ever did.
        with suppress(Py4JError):
            self._connection.shutdown()
            kept = field(self._client, "CallbackClient", "connections")
            kept.get(self._client).remove(self._connection)
