"""Threads of a server fail, one after the other: health tells, and they go on by themselves.
`pytest -s` prints how long each took."""

from __future__ import annotations

import time

import httpx
import pytest

from headrace.catalog.command_log import topic_name
from headrace.kafka.records import NewRecord
from scene import Scene, record
from server_process import eventually

pytestmark = pytest.mark.heavy

# The part that health calls unwell; which object's method fails, in words and of an engine.
THREADS = {
    "commandRunner": lambda engine: (engine._following, "_receive"),
    "lease": lambda engine: (engine._following, "_apply_lease"),
    "heartbeat": lambda engine: (engine.heartbeat, "_read_beats"),
    "query-keeper": lambda engine: (engine.queries, "_look_after_all"),
}


def unwell(scene: Scene) -> dict[str, str]:
    details = httpx.get(f"{scene.url}/healthcheck", timeout=5).json()["details"]
    return {name: part["reason"] for name, part in details.items() if not part["isHealthy"]}


def copies(scene: Scene, count: int) -> bool:
    return len(list(scene._reader.read("THREAD_COPIES"))) >= count


@pytest.fixture(scope="module")
def running(scene):
    scene.topic("threads")
    scene.sql(
        "CREATE STREAM threads (n INT, word STRING) "
        "WITH (kafka_topic='threads', value_format='JSON');"
    )
    return scene.create("CREATE STREAM thread_copies AS SELECT n, word FROM threads;")


@pytest.mark.parametrize("part", THREADS)
def test_a_thread_that_fails_goes_on(scene, server, running, monkeypatch, part):
    holder, method = THREADS[part](server.engine)
    failed: list[float] = []

    def fail(*arguments):
        failed.append(time.monotonic())
        raise ZeroDivisionError("a mistake of ours")

    eventually(lambda: part not in unwell(scene))
    before = len(list(scene._reader.read("threads")))
    with monkeypatch.context() as patch:
        patch.setattr(holder, method, fail)
        if part == "commandRunner":  # it waits for what other servers are told
            scene._writer.write(NewRecord(topic_name("default_"), b"what", b"no command"))
        eventually(lambda: unwell(scene).get(part) == "a mistake of ours", 20)
        told = time.monotonic() - failed[0]
    recovers = time.monotonic()
    scene.write("threads", record({"N": before, "WORD": "w"}))
    eventually(lambda: copies(scene, before + 1), 30)
    eventually(lambda: part not in unwell(scene), 60)
    took = time.monotonic() - recovers
    print(f"\n| the thread of {part}, failing | {told:.1f} s | {took:.1f} s |")
    scene.sql("CREATE TYPE after_death AS STRING; DROP TYPE after_death;")


def test_the_registry_serves_on(scene, server):
    registry, _ = server._kept["embeddedRegistry"]
    died = time.monotonic()
    registry._server.shutdown()  # as if its thread had failed
    eventually(lambda: httpx.get(f"{server.registry}/subjects", timeout=5).status_code == 200, 20)
    print(f"\n| the thread of the embedded registry | – | {time.monotonic() - died:.1f} s |")
    eventually(lambda: not {"embeddedRegistry", "schemaRegistry"} & set(unwell(scene)), 20)


def test_sparks_jvm_ends_when_its_memory_does(server):
    beans = server.engine.env.spark._jvm.java.lang.management.ManagementFactory
    assert "-XX:+ExitOnOutOfMemoryError" in list(beans.getRuntimeMXBean().getInputArguments())
