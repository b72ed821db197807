"""`headrace run FILE`: a file says what runs, and nobody changes that from outside."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import httpx
import pytest

from headrace.kafka.ports import free_port
from scene import Scene, record

pytestmark = pytest.mark.heavy

CREATE = """SET 'auto.offset.reset' = 'earliest';
CREATE STREAM orders (id INT KEY, item STRING, n INT, trace BYTES HEADER('trace-id'))
  WITH (kafka_topic='orders', value_format='JSON', partitions=1);
"""
FIRST = "CREATE STREAM items AS SELECT id, item, n FROM orders EMIT CHANGES;\n"
SECOND = "CREATE STREAM loud AS SELECT id, UCASE(item) AS item, n FROM orders EMIT CHANGES;\n"


class Service:
    """The command as a service unit runs it."""

    def __init__(self, directory, file):
        self.ports = [free_port() for _ in range(3)]
        self.command = [sys.executable, "-m", "headrace.cli.main", "run", str(file)]
        self.command += ["--data-dir", str(directory / "data")]
        names = ("--port", "--kafka-port", "--registry-port")
        for name, port in zip(names, self.ports, strict=True):
            self.command += [name, str(port)]
        self.output = directory / "output.txt"

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stderr=self.output.open("wb"))
        deadline = time.monotonic() + 120
        while "Ctrl-C stops it." not in self.output.read_text():
            assert self.process.poll() is None, self.output.read_text()
            assert time.monotonic() < deadline, self.output.read_text()
            time.sleep(0.2)
        self.scene = Scene(f"http://127.0.0.1:{self.ports[0]}", f"127.0.0.1:{self.ports[1]}")
        return self.scene

    def __exit__(self, *_):
        self.scene.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            assert self.process.wait(60) == 0
        finally:
            self.process.kill()


def test_a_service_runs_its_file_again_and_again(tmp_path):
    file = tmp_path / "pipeline.sql"
    file.write_text(CREATE + FIRST)
    service = Service(tmp_path, file)
    with service as scene:
        assert "Created query with ID CSAS_ITEMS_" in service.output.read_text()
        scene.write("orders", record({"item": "cable", "n": 1}))
        assert scene.values("ITEMS", 1) == [{"ITEM": "cable", "N": 1}]
        refused = httpx.post(scene.url + "/ksql", json={"ksql": "DROP STREAM items;"})
        assert refused.status_code == 403
        insert = httpx.post(scene.url + "/inserts-stream", content=b'{"target":"orders"}\n')
        assert insert.status_code == 403
        assert httpx.get(scene.url + "/healthcheck").json()["isHealthy"] is True
        assert [q["id"][:10] for q in scene.client.queries()] == ["CSAS_ITEMS"]

    file.write_text(CREATE + FIRST + SECOND)
    with service as scene:
        told = service.output.read_text()
        assert "CSAS_LOUD" in told and "CSAS_ITEMS" not in told  # the first one just goes on
        scene.write("orders", record({"item": "mouse", "n": 2}))
        assert [v["ITEM"] for v in scene.values("ITEMS", 2)] == ["cable", "mouse"]
        assert [v["ITEM"] for v in scene.values("LOUD", 2)] == ["CABLE", "MOUSE"]
