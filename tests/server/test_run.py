"""A server in the foreground that loses Spark's JVM begins anew, in the same process."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest

from headrace.cli import start
from headrace.server import run
from headrace.server.launch import LaunchOptions


class Became(Exception):
    """The process runs another program now."""


@pytest.fixture
def served(monkeypatch, tmp_path):
    """Serves with a server that loses Spark at once; tells how it ended."""

    class Server:
        stopped = 0

        def __init__(self, options, progress, lost):
            self.lost = lost
            self.url, self.notices = "http://127.0.0.1:18088", []
            self.addresses = {
                "server": "http://127.0.0.1:18088",
                "kafka": "127.0.0.1:19092",
                "registry": "http://127.0.0.1:18081",
            }

        def __enter__(self):
            self.lost("Spark's JVM was killed by signal 9")
            return self

        def __exit__(self, *failure):
            pass

        def stop(self):
            Server.stopped += 1

    def become(program, command, environment):
        raise Became(program, command, environment)

    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    monkeypatch.setattr(run, "RunningServer", Server)
    monkeypatch.setattr(os, "execve", become)
    # What it would set free is this test's own.
    monkeypatch.setattr(os, "set_inheritable", lambda number, inheritable: None)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def serve(again):
        try:
            return run.serve(LaunchOptions(), again=again)
        finally:
            assert Server.stopped == 1
            for number, handler in handlers.items():
                signal.signal(number, handler)

    return serve


def test_it_begins_anew_on_the_same_ports(served, monkeypatch):
    monkeypatch.setattr(sys, "orig_argv", ["python", "headrace", "start", "--port", "0"])
    monkeypatch.delenv(run.STARTS, raising=False)
    with pytest.raises(Became) as became:
        served(start.command_line)
    program, command, environment = became.value.args
    assert program == sys.executable
    ports = ("--port", "18088", "--kafka-port", "19092", "--registry-port", "18081")
    assert command == ["python", "headrace", "start", "--port", "0", *ports]
    assert len(run._starts(environment)) == 1


def test_it_ends_if_that_happens_too_often(served, monkeypatch, capsys):
    now = time.time()
    monkeypatch.setenv(run.STARTS, ",".join(str(now - n) for n in range(run.MOST_STARTS)))
    assert served(start.command_line) == run.UNAVAILABLE != 0
    assert capsys.readouterr().err.splitlines()[-1] == (
        "Spark's JVM was killed by signal 9 for the 6th time in a short while: the server ends."
    )


def test_starts_of_long_ago_do_not_count(served, monkeypatch):
    monkeypatch.setenv(run.STARTS, ",".join(["1000"] * 20))
    with pytest.raises(Became):
        served(start.command_line)


def test_what_cannot_begin_anew_ends(served, monkeypatch, capsys):
    monkeypatch.delenv(run.STARTS, raising=False)
    assert served(None) == run.UNAVAILABLE
    assert capsys.readouterr().err.splitlines()[-1] == (
        "Spark's JVM was killed by signal 9: the server ends."
    )


@pytest.fixture
def stopping():
    """An event that SIGUSR1 sets."""
    stop = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: stop.set())
    yield stop
    signal.signal(signal.SIGUSR1, before)


def test_a_signal_that_another_thread_took_stops_the_server(stopping, monkeypatch):
    """So it was with a server that was frozen, thawed and asked to stop."""
    monkeypatch.setattr(run, "LOOK_SECONDS", 0.1)
    main, over = threading.main_thread().ident, threading.Event()

    def take():
        deadline = time.monotonic() + 20
        while not waits_for_the_event(main) and time.monotonic() < deadline:
            time.sleep(0.01)
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        over.wait(60)

    other = threading.Thread(target=take)
    in_vain = threading.Timer(30, signal.pthread_kill, (main, signal.SIGUSR1))
    in_vain.start()
    other.start()
    run.await_event(stopping)
    assert not in_vain.finished.is_set()
    in_vain.cancel()
    over.set()
    other.join()


def waits_for_the_event(thread):
    frame = sys._current_frames()[thread]
    while frame and frame.f_code is not run.await_event.__code__:
        frame = frame.f_back
    return frame is not None
