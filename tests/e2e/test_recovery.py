"""A server that dies in the middle of its work, and the one that takes its place."""

from __future__ import annotations

import json

import pytest

from headrace.catalog.command_log import topic_name
from headrace.kafka.ports import free_port
from headrace.kafka.records import NewRecord, RecordWriter
from server_process import ServerProcess, alive, eventually

pytestmark = pytest.mark.heavy

RECORDS = 100_000


def test_nothing_is_lost_when_the_server_is_killed_in_the_middle(tmp_path):
    ports = (free_port(), free_port(), free_port())
    server = ServerProcess(tmp_path, ports)
    try:
        scene = server.scene()
        scene.sql(
            "CREATE STREAM numbers (id INT KEY, n INT, word STRING) "
            "WITH (kafka_topic='numbers', value_format='JSON', partitions=2);"
            "CREATE STREAM doubled AS SELECT id, n * 2 AS twice, word FROM numbers EMIT CHANGES;"
        )
        # What is no command is passed over; what was before and after it still counts.
        with RecordWriter(scene.kafka) as writer:
            command_log = topic_name("default_")
            writer.write(NewRecord(command_log, b"stream/X/create", b"{not json"))
            writer.write(NewRecord(command_log, b"what", b'{"version": 99}'))
        scene.sql("CREATE STREAM tripled AS SELECT id, n * 3 AS thrice, word FROM numbers;")
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
                    before = len((tmp_path / "output.txt").read_text())
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
        names = {s["name"] for s in scene.client.streams()}
        assert {"NUMBERS", "DOUBLED", "TRIPLED"} <= names
        assert [q["state"] for q in scene.client.queries()] == ["RUNNING", "RUNNING"]
        told = server.told()[before:]
        assert "is passed over: it is not a command" in told
        assert "it has version 99" in told
        assert server.stop() == 0
        eventually(lambda: not alive(tmp_path), 30)
    finally:
        server.close()
