"""A shell that is not told where its server is finds the one that runs on this machine."""

from __future__ import annotations

import pytest

from headrace.cli import shell
from headrace.cli.main import main
from headrace.server.local_servers import LocalServer, registered

USUAL = LocalServer("http://127.0.0.1:8088", 1.0)
OLD, NEW = LocalServer("http://127.0.0.1:7", 2.0), LocalServer("http://127.0.0.1:8", 3.0)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    monkeypatch.delenv("HEADRACE_SERVER", raising=False)


def test_a_server_on_another_port_is_found_and_told(url, capsys):
    """What took port 8088 may be somebody else's ksqlDB."""
    with registered(url):
        assert main(["-e", "SHOW STREAMS;"]) == 0
    told = capsys.readouterr()
    assert "Stream Name" in told.out
    assert told.err == f"Using the server at {url}\n"


def test_an_address_counts_more(url, capsys, monkeypatch):
    with registered("http://127.0.0.1:1"):
        assert main([url, "-e", "SHOW STREAMS;"]) == 0
        monkeypatch.setenv("HEADRACE_SERVER", url)
        assert main(["-e", "SHOW STREAMS;"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("running", "chosen", "told"),
    [
        ([], "http://localhost:8088", ""),
        ([USUAL], USUAL.url, ""),
        ([NEW], NEW.url, f"Using the server at {NEW.url}\n"),
        (
            [NEW, OLD],
            NEW.url,
            f"Using the server at {NEW.url}; others that run here: {OLD.url}\n",
        ),
        (
            [NEW, USUAL],
            USUAL.url,
            f"Using the server at {USUAL.url}; others that run here: {NEW.url}\n",
        ),
    ],
)
def test_which_one_it_is(running, chosen, told, monkeypatch, capsys):
    monkeypatch.setattr(shell, "local_servers", lambda: running)
    assert shell._found() == chosen
    assert capsys.readouterr().err == told
