"""Pull queries right after a restart hold what the topics hold; then an end for good."""

from __future__ import annotations

import httpx
import pytest
from server_process import ServerProcess, eventually

from headrace.client import Client, ClientError
from headrace.topics.admin import TopicAdmin
from headrace.topics.client import KafkaConnection
from headrace.topics.ports import free_port

pytestmark = pytest.mark.heavy

KEYS = [f"k{i}" for i in range(50)]
TOTALS = "SELECT ID, N FROM TOTALS;"
HELD = "SELECT V FROM HELD WHERE ID = 'k7';"


def test_tables_are_whole_at_once(tmp_path):
    ports = free_port(), free_port(), free_port()
    server = ServerProcess(tmp_path, ports)
    try:
        server.scene()
        with Client(server.url, properties={"auto.offset.reset": "earliest"}) as client:
            client.execute(
                """
                CREATE STREAM SALES (ID STRING KEY, V INT)
                    WITH (KAFKA_TOPIC='sales', PARTITIONS=2, VALUE_FORMAT='JSON');
                CREATE TABLE TOTALS AS SELECT ID, COUNT(*) AS N FROM SALES GROUP BY ID;
                CREATE SOURCE TABLE HELD (ID STRING PRIMARY KEY, V INT)
                    WITH (KAFKA_TOPIC='sales', VALUE_FORMAT='JSON');
                """
            )
            rows = [{"ID": key, "V": i} for i, key in enumerate(KEYS)]
            assert all(ack.error is None for ack in client.insert_stream("SALES", rows))
            assert client.pull(HELD)[0][0] == 7
            eventually(lambda: len(client.pull(TOTALS)) == len(KEYS))
        server.stop()
        server = ServerProcess(tmp_path, ports)
        server.scene()
        with Client(server.url) as client:
            assert sorted(row[0] for row in client.pull(TOTALS)) == sorted(KEYS)
            assert client.pull(HELD)[0][0] == 7
            client.insert("SALES", {"ID": "k7", "V": 70})
            assert client.pull(HELD)[0][0] == 70
            one = "SELECT N FROM TOTALS WHERE ID = 'k7';"
            eventually(lambda: client.pull(one)[0][0] == 2)
            (ended,) = httpx.post(
                f"{server.url}/ksql/terminate",
                json={"deleteTopicList": ["TOT.*", "sales"]},
                timeout=60,
            ).json()
            assert ended["commandStatus"]["status"] == "SUCCESS"
            with pytest.raises(ClientError, match="The server is already shut down"):
                client.execute("SHOW STREAMS;")
            # Only what queries wrote is deleted.
            topics = TopicAdmin(KafkaConnection({"bootstrap.servers": server.kafka}))
            assert (topics.exists("TOTALS"), topics.exists("sales")) == (False, True)
        assert server.stop() == 0
    finally:
        server.close()
