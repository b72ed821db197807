"""What a server says as it starts: ports that are taken, replicas, and where its data is."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from headrace.model.errors import HeadraceError, UnavailableError
from headrace.model.settings import Settings
from headrace.server import launch, run
from headrace.server.launch import LaunchOptions, RunningServer
from headrace.server.local_servers import local_servers


@pytest.fixture
def taken():
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


@pytest.fixture
def told():
    return []


@pytest.fixture
def server(told):
    return RunningServer(LaunchOptions(Path("unused")), told.append)


def test_a_default_port_that_is_taken_is_told_loudly(server, told, taken):
    port = server._port(None, taken, "the server")
    notice = (
        f"Port {taken} is taken by another program: the server listens on {port} instead, and "
        f"whoever calls {taken} talks to that program."
    )
    assert port != taken
    assert server.notices == [notice] and told == [f"!! {notice}"]


def test_a_port_that_was_asked_for_is_taken_or_refused(server, told, taken):
    with pytest.raises(UnavailableError, match=f"Port {taken} for the server is taken"):
        server._port(taken, 1, "the server")
    assert server._port(0, 1, "the server") == 0
    assert told == []


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, 1, 1), (2, 3, 2)])
def test_a_kafka_of_one_broker_keeps_one_replica(server, brokers, replicas, in_sync):
    asked = {"ksql.internal.topic.replicas": "3", "ksql.internal.topic.min.insync.replicas": "2"}
    settings = server._replicated(Settings(asked), SimpleNamespace(brokers=lambda: brokers))
    assert settings.number("ksql.internal.topic.replicas") == replicas
    assert settings.number("ksql.internal.topic.min.insync.replicas") == in_sync
    names = "ksql.internal.topic.replicas, ksql.internal.topic.min.insync.replicas"
    notice = f"This Kafka has one broker: {names} count as 1."
    assert server.notices == ([notice] if brokers == 1 else [])


def test_a_kafka_is_asked_for_its_brokers_only_if_replicas_are_asked_for(server):
    assert server._replicated(Settings(), None) == Settings()


def test_data_is_kept_in_a_known_place(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert LaunchOptions().data_dir == tmp_path / "share" / "headrace"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert LaunchOptions().data_dir == tmp_path / ".local" / "share" / "headrace"


def test_a_place_for_state_is_made_or_refused(tmp_path):
    told = f"{tmp_path}/a/b/"
    settings = Settings({"ksql.streams.state.dir": told})
    assert launch._state_dir(settings, tmp_path) == f"{tmp_path}/a/b"
    assert (tmp_path / "a" / "b").is_dir()
    launch._state_dir(Settings({"state.dir": f"file://{tmp_path}/c%20d"}), tmp_path)
    assert (tmp_path / "c d").is_dir()
    (tmp_path / "file").write_text("")
    refused = Settings({"state.dir": f"{tmp_path}/file/a"})
    with pytest.raises(HeadraceError, match=r"which state\.dir names, cannot be made \(Not a dir"):
        launch._state_dir(refused, tmp_path)


class Ended(Exception):
    """The server would serve now."""


@pytest.mark.parametrize("temporary", [True, False])
def test_a_server_says_where_its_data_is_and_repeats_what_nobody_should_miss(
    monkeypatch, capsys, tmp_path, temporary
):
    class Server:
        def __init__(self, options, progress, lost):
            self.url, self.notices = "http://127.0.0.1:1", ["Port 8088 is taken"]
            self.addresses = {"server": self.url}

        def __enter__(self):
            return self

        def __exit__(self, *failure):
            pass

    def known(event):
        assert [server.url for server in local_servers()] == ["http://127.0.0.1:1"]
        raise Ended

    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    monkeypatch.setattr(run, "RunningServer", Server)
    monkeypatch.setattr(run, "await_event", known)
    monkeypatch.setattr(run.signal, "signal", lambda number, handler: None)
    with pytest.raises(Ended):
        run.serve(LaunchOptions(tmp_path / "d", temporary))
    lines = capsys.readouterr().err.splitlines()
    where = "kept for this run only" if temporary else str(tmp_path / "d")
    assert f"  data      {where}" in lines
    assert lines[-2:] == ["!! Port 8088 is taken", "Ctrl-C stops it."]


def test_defaults_are_those_of_ksqldb():
    assert (launch.SERVER_PORT, launch.REGISTRY_PORT) == (8088, 8081)
