"""What processes take, as Linux tells."""

import os
import subprocess
import sys

import pytest

from headrace.bench import processes

pytestmark = pytest.mark.skipif(not processes.available(), reason="needs /proc")


def test_a_family_is_a_process_and_what_it_started():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        both = processes.family(os.getpid())
        assert {os.getpid(), child.pid} <= both
        assert child.pid not in processes.family(os.getpid(), frozenset({child.pid}))
        assert processes.megabytes(both) > processes.megabytes({child.pid}) > 0
        child.communicate(b"\n")


def test_cpu_is_counted():
    before = processes.cpu_seconds(os.getpid())
    sum(i * i for i in range(2_000_000))
    assert processes.cpu_seconds(os.getpid()) > before


def test_a_peak_is_what_was_held_and_let_go():
    with processes.Peak(os.getpid(), frozenset(), seconds=0.01) as peak:
        before = processes.megabytes({os.getpid()})
        held = bytearray(os.urandom(1 << 16)) * 800  # 50 MiB
        while peak.megabytes < before + 30:
            assert held
        del held
    assert peak.megabytes > before + 30


def test_processes_that_are_gone_hold_nothing():
    assert processes.megabytes({2**22 + 1}) == 0
