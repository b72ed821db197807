"""Connections that are opened and dropped at random leave nothing behind, in short."""

from __future__ import annotations

import sys
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
    # Pools grow to their size, each thread with a way into the JVM: what leaked would be as many
    # as there were connections.
    assert after.threads <= before.threads + 60
    assert after.jvm_threads <= before.jvm_threads + 150
    assert after.files <= before.files + 150
    assert after.megabytes <= before.megabytes + 150
