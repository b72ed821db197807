"""The connections on which Spark calls Python, for queries that come and go.

Py4J opens one, with a thread at its Python end, for each Java thread that calls Python; each
streaming query has such a thread. It keeps the connection when that thread is gone.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from headrace.spark.internals.java_objects import field


class UnfinishedBatch(Exception):
    """Raised in a call to end a query within a micro-batch, which runs again with the query."""


def _is_news(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], UnfinishedBatch)


# Py4J logs what a call raises, with its trace.
logging.getLogger("py4j.clientserver").addFilter(_is_news)


class CallbackConnection:
    """One query's connection, found from within a call; to be closed once the query has ended."""

    def __init__(self, spark: SparkSession) -> None:
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        self._client = gateway.java_gateway_server.getCallbackClient()
        self._connection = self._client.getPerThreadConnection()

    def close(self) -> None:
        # It reaches into Py4J: where that is built differently, connections stay open.
        with suppress(Py4JError):
            self._connection.shutdown()
            kept = field(self._client, "CallbackClient", "connections")
            kept.get(self._client).remove(self._connection)
