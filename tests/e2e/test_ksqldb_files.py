"""A server started with the properties files that ksqlDB ships, on a Kafka of one broker; what the
user of ksqlDB sees of them, and of settings of a function."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_fixtures import broker, jars
from headrace.kafka.ports import free_port
from server_process import ServerProcess

__all__ = ["broker", "jars"]
pytestmark = pytest.mark.heavy

FILES = Path(__file__).parents[1] / "ksqldb_config"
FORMULA = """
from headrace.functions.extensions import udf

@udf
def formula(x: int, *, config) -> int:
    return x + int(config["ksql.functions.formula.base.value"])
"""


@pytest.mark.parametrize("file", ["server.properties", "production-server.properties"])
def test_a_file_that_ksqldb_ships_starts_a_server(file, tmp_path, broker):
    (tmp_path / "ext").mkdir()
    (tmp_path / "ext" / "formula.py").write_text(FORMULA)
    own = "production_" if "production" in file else "plain_"
    server = ServerProcess(
        tmp_path / "data",
        (free_port(), free_port(), free_port()),
        broker.bootstrap_servers,
        {
            "listeners": "http://127.0.0.1:8088",
            "ksql.service.id": own,
            "ksql.streams.state.dir": f"{tmp_path}/state/",
            "ksql.extension.dir": str(tmp_path / "ext"),
            "ksql.functions.formula.base.value": "40",
            "zzz": "1",
        },
        (FILES / file).read_text(),
    )
    try:
        scene = server.scene()
        scene.sql(
            f"CREATE STREAM S (K INT KEY, V BIGINT) "
            f"WITH (KAFKA_TOPIC='{own}s', PARTITIONS=1, VALUE_FORMAT='JSON');"
            f"CREATE STREAM SUMS WITH (KAFKA_TOPIC='{own}sums') AS "
            f"SELECT K, formula(V) AS F FROM S WHERE formula(V) > 40;"
            f"INSERT INTO S VALUES (1, formula(-38));"
        )
        (written,) = scene.records(f"{own}sums", 1)
        assert written.value == b"42"
        assert any((tmp_path / "state").iterdir())
        told = server.told()
        assert "warning: ksql.resource.extension.class: without meaning." in told
        assert "warning: zzz: unknown. It is ignored." in told
        one_broker = "!! This Kafka has one broker: ksql.internal.topic.replicas"
        assert (one_broker in told) == ("production" in file)
        assert "Traceback" not in told
        assert server.stop() == 0
    finally:
        server.close()
