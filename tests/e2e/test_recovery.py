"""A server that dies in the middle of its work, and the one that takes its place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scene import Scene

from headrace.catalog.commands import topic_name
from headrace.topics.ports import free_port
from headrace.topics.records import NewRecord, RecordWriter

pytestmark = pytest.mark.heavy

RECORDS = 100_000


class ServerProcess:
    """`headrace start` as a user starts it."""

    def __init__(self, data_dir: Path, ports: tuple[int, int, int]) -> None:
        self.url = f"http://127.0.0.1:{ports[0]}"
        self.kafka = f"127.0.0.1:{ports[1]}"
        names = ("--port", "--kafka-port", "--registry-port")
        told = [text for name, port in zip(names, ports, strict=True) for text in (name, str(port))]
        command = [sys.executable, "-m", "headrace.cli.main", "start", "--data-dir", str(data_dir)]
        self._output = (data_dir / "output.txt").open("ab")
        self.process = subprocess.Popen(
            [*command, *told], stdout=self._output, stderr=self._output, start_new_session=True
        )

    def scene(self) -> Scene:
        """Waits until the server answers."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            assert self.process.poll() is None, Path(self._output.name).read_text()
            try:
                scene = Scene(self.url, self.kafka)
                scene.client.info()
                return scene
            except Exception:
                time.sleep(0.2)
        raise AssertionError(Path(self._output.name).read_text())

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


def alive(data_dir: Path) -> list[str]:
    """Processes whose command line names the directory: the broker's and Spark's do."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(data_dir) in command:
            found.append(command)
    return found


def eventually(check, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.2)


def test_nothing_is_lost_when_the_server_is_killed_in_the_middle(tmp_path):
    ports = (free_port(), free_port(), free_port())
    server = ServerProcess(tmp_path, ports)
    scene = server.scene()
    scene.sql(
        "CREATE STREAM numbers (id INT KEY, n INT, word STRING) "
        "WITH (kafka_topic='numbers', value_format='JSON', partitions=2);"
        "CREATE STREAM doubled AS SELECT id, n * 2 AS twice, word FROM numbers EMIT CHANGES;"
    )
    with RecordWriter(scene.kafka, linger_ms=50) as writer:
        for start in range(0, RECORDS, 10_000):
            writer.write_all(
                NewRecord("numbers", i.to_bytes(4, "big"), b'{"n":%d,"word":"w"}' % i)
                for i in range(start, start + 10_000)
            )
            if start == RECORDS // 2:
                written = scene.admin.end_offsets
                eventually(lambda: sum(written("DOUBLED").values()) > 0)  # noqa: B023
                server.kill()
                eventually(lambda: not alive(tmp_path), 30)
                server = ServerProcess(tmp_path, ports)
                scene = server.scene()
    # What is in the sink in the end, whatever came twice.
    seen: set[int] = set()
    offsets: dict[int, int] = {}

    def all_there() -> bool:
        for record in scene._reader.read("DOUBLED", offsets):
            seen.add(json.loads(record.value)["TWICE"])
            offsets[record.partition] = record.offset + 1
        return len(seen) == RECORDS

    eventually(all_there, 180)
    assert seen == {2 * i for i in range(RECORDS)}
    assert [q["state"] for q in scene.client.queries()] == ["RUNNING"]

    # What is no command is reported and passed over; what was before and after it still counts.
    with RecordWriter(scene.kafka) as writer:
        command_log = topic_name("default_")
        writer.write(NewRecord(command_log, b"stream/X/create", b"{not json"))
        writer.write(NewRecord(command_log, b"what", b'{"version": 99}'))
    scene.sql("CREATE STREAM tripled AS SELECT id, n * 3 AS thrice, word FROM numbers;")
    assert server.stop() == 0
    eventually(lambda: not alive(tmp_path), 30)
    server = ServerProcess(tmp_path, ports)
    scene = server.scene()
    try:
        names = {s["name"] for s in scene.client.streams()}
        assert {"NUMBERS", "DOUBLED", "TRIPLED"} <= names
        assert {q["state"] for q in scene.client.queries()} == {"RUNNING"}
        told = (tmp_path / "output.txt").read_text()
        assert "is passed over: it is not a command" in told
        assert "it has version 99" in told
    finally:
        server.stop()
    eventually(lambda: not alive(tmp_path), 30)
