"""Ordinary use for long: what a server holds is printed every minute, and is level in the end.

SOAK_MINUTES says how long (40 if it does not); SEED, who asks what.
"""

from __future__ import annotations

import os
import random
import time

import pytest

from headrace.kafka.ports import free_port
from ordinary_use import OrdinaryUse
from process_resources import Held
from server_process import ServerProcess
from stalled_clients import growth_by_stalled_clients

pytestmark = pytest.mark.heavy


def test_an_ordinary_evening(tmp_path):
    """After ten minutes (a quarter of a shorter run) threads, files, memory and disk are level."""
    minutes = int(os.environ.get("SOAK_MINUTES", "40"))
    seed = int(os.environ.get("SEED", random.randrange(10**6)))
    print(f"\nSEED={seed} SOAK_MINUTES={minutes}", flush=True)
    server = ServerProcess(tmp_path / "server", (free_port(), free_port(), free_port()))
    seen: list[Held] = []
    try:
        scene = server.scene()
        use = OrdinaryUse(scene, seed)
        use.prepare()
        print(f"minute {Held.head()}  pulls pushes failures", flush=True)
        with use.going_on():
            began = time.monotonic()
            for minute in range(1, minutes + 1):
                while time.monotonic() < began + 60 * minute:
                    time.sleep(1)
                seen.append(Held.of(server.process.pid, tmp_path / "server" / "state"))
                counts = f"{use.pulls:>6} {use.pushes:>6} {len(use.failures):>8}"
                print(f"{minute:>6} {seen[-1]} {counts}", flush=True)
        assert not use.failures, use.failures[:10]
    finally:
        server.close()
    warm = seen[min(10, minutes // 4) :]
    first, last = Held.mean(warm[:3]), Held.mean(warm[-3:])
    assert last.server_threads <= first.server_threads + 10
    assert last.server_files <= first.server_files + 30
    assert last.server_mib <= first.server_mib + 100
    assert last.jvm_threads <= first.jvm_threads + 60  # Spark's pools fill when it cleans up
    assert last.jvm_files <= first.jvm_files + 60
    assert last.jvm_live_mib <= first.jvm_live_mib + 40
    assert last.jvm_mib <= first.jvm_mib + 300
    assert last.disk_mib <= first.disk_mib + 200


def test_clients_that_do_not_read(tmp_path):
    """STALLED_CLIENTS (100) of them, and a pull query of PULLED_ROWS (5 million) rows."""
    clients = int(os.environ.get("STALLED_CLIENTS", "100"))
    rows = int(os.environ.get("PULLED_ROWS", "5000000"))
    settings = {"ksql.max.push.queries": str(clients + 10)}
    ports = (free_port(), free_port(), free_port())
    server = ServerProcess(tmp_path / "server", ports, settings=settings)
    try:
        growth = growth_by_stalled_clients(server.scene(), server.process.pid, rows, clients, 600)
    finally:
        server.close()
    print(f"\n{clients} stalled clients and a pull of {rows} rows: {growth} MiB", flush=True)
    assert growth <= 512
