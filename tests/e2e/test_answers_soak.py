"""Connections that are opened and dropped at random leave nothing behind, in short."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from headrace.client import Client

pytestmark = pytest.mark.heavy

sys.path.append(str(Path(__file__).parents[2] / "bench"))


def test_careless_clients_leave_nothing(server):
    from soak import prepare, soak

    with Client(server.url) as client:
        prepare(client)
    count, before, after = soak(server, seconds=20, connections=200)
    assert count > 500
    assert (after.pushes, after.streaming) == (0, before.streaming)
    # Pools grow to their size, each thread with a way into the JVM (75 at most): what leaked would
    # be as many as there were connections.
    assert after.threads <= before.threads + 60
    assert after.jvm_threads <= before.jvm_threads + 75
    assert after.files <= before.files + 150
    assert after.megabytes <= before.megabytes + 150


def test_push_queries_that_had_rows_hang_up(scene):
    """Spark calls Python on a connection of its own for each query."""
    scene.topic("hung_up")
    scene.sql("CREATE STREAM HUNG_UP (N INT) WITH (KAFKA_TOPIC='hung_up', VALUE_FORMAT='JSON');")
    scene.sql("INSERT INTO HUNG_UP VALUES (1);")

    def visits(count):
        for _ in range(count):
            assert scene.push("SELECT N FROM HUNG_UP EMIT CHANGES;", 1) == [(1,)]

    def called():
        return [t.name for t in threading.enumerate() if t.name.endswith("(run)")]

    visits(2)
    scene.wait(lambda: len(called()), lambda count: count <= 1)
    visits(6)
    scene.wait(lambda: len(called()), lambda count: count <= 1)
