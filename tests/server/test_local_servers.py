"""Servers that run on this machine are known to its shells, and no longer than they run."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from headrace.server.local_servers import local_servers, registered

SCRIPT = """
import sys
from headrace.server.local_servers import registered
with registered("http://127.0.0.1:7"):
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    return tmp_path


def urls():
    return [server.url for server in local_servers()]


@pytest.fixture
def another():
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_a_server_is_known_while_it_runs(another):
    assert urls() == ["http://127.0.0.1:7"]
    another.stdin.close()
    another.wait()
    assert urls() == []


def test_one_that_was_killed_is_forgotten(another, home):
    another.send_signal(signal.SIGKILL)
    another.wait()
    assert len(list((home / "servers").iterdir())) == 1
    assert urls() == []
    assert list((home / "servers").iterdir()) == []


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://0.0.0.0:8088", "http://127.0.0.1:8088"),
        ("http://[::]:8088", "http://[::1]:8088"),
        ("https://box:1", "https://box:1"),
    ],
)
def test_one_that_listens_everywhere_is_found_here(url, told):
    with registered(url):
        assert urls() == [told]
        assert local_servers()[0].port in (8088, 1)


def test_the_last_to_begin_is_first(another):
    with registered("http://127.0.0.1:8"):
        assert urls() == ["http://127.0.0.1:8", "http://127.0.0.1:7"]


def test_where_nothing_can_be_written_none_are_told(home, monkeypatch):
    (home / "file").write_text("")
    monkeypatch.setenv("HEADRACE_HOME", str(home / "file"))
    with registered("http://127.0.0.1:8"):
        assert urls() == []


def test_a_file_that_says_nothing_is_nobodys(home):
    with registered("http://127.0.0.1:8"):
        (file,) = (home / "servers").iterdir()
        file.write_text("{")
        assert urls() == []
