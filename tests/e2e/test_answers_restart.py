"""Pull queries right after a restart hold what the topics hold, and single fields are written as
they were, whatever the server's properties file says by then; then an end for good."""

from __future__ import annotations

import httpx
import pytest

from headrace.client import Client, ClientError
from headrace.kafka.admin import TopicAdmin
from headrace.kafka.client import KafkaConnection
from headrace.kafka.ports import free_port
from scene import Scene
from server_process import ServerProcess, eventually

pytestmark = pytest.mark.heavy

KEYS = [f"k{i}" for i in range(50)]
TOTALS = "SELECT ID, N FROM TOTALS;"
HELD = "SELECT V FROM HELD WHERE ID = 'k7';"
WRAPPING = """# KLIP-3
ksql.persistence.wrap.single.values=true
ksql.persistence.wrap.single.keys = true
"""
BARE, BOXED = (b"1", b"2"), (b'{"K":1}', b'{"V":2}')


def single(name: str) -> str:
    return (
        f"CREATE STREAM {name} (K INT KEY, V INT) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, FORMAT='JSON');"
        f"INSERT INTO {name} VALUES (1, 2);"
    )


def written(scene: Scene, topic: str, count: int = 1) -> list[tuple[bytes | None, bytes | None]]:
    return [(r.key, r.value) for r in scene.records(topic, count)]


def single_fields_are_written_as_the_file_says(scene: Scene) -> None:
    names = ("values", "keys")
    bare = {f"ksql__persistence__wrap__single__{name}": "false" for name in names}
    scene.sql(single("BY_FILE") + "CREATE STREAM COPIED AS SELECT K, V FROM BY_FILE;")
    scene.sql(single("BY_CLIENT"), **bare)
    assert written(scene, "BY_FILE") == [BOXED]
    assert written(scene, "COPIED") == [BOXED]
    assert written(scene, "BY_CLIENT") == [BARE]


def single_fields_are_written_as_before(scene: Scene) -> None:
    scene.sql("INSERT INTO BY_FILE VALUES (1, 2);" + single("LATER"))
    assert written(scene, "BY_FILE", 2) == [BOXED] * 2
    assert written(scene, "COPIED", 2) == [BOXED] * 2
    assert written(scene, "LATER") == [BARE]


def test_a_server_goes_on_as_it_was(tmp_path):
    ports = free_port(), free_port(), free_port()
    server = ServerProcess(tmp_path, ports, config=WRAPPING)
    try:
        single_fields_are_written_as_the_file_says(server.scene())
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
        scene = server.scene()
        with Client(server.url) as client:
            assert sorted(row[0] for row in client.pull(TOTALS)) == sorted(KEYS)
            assert client.pull(HELD)[0][0] == 7
            client.insert("SALES", {"ID": "k7", "V": 70})
            assert client.pull(HELD)[0][0] == 70
            one = "SELECT N FROM TOTALS WHERE ID = 'k7';"
            eventually(lambda: client.pull(one)[0][0] == 2)
            single_fields_are_written_as_before(scene)
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
