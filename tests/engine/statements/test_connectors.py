"""Connector statements, against a worker that is a small HTTP server."""

from __future__ import annotations

import pytest

from connect_worker import FILE, connect_worker
from headrace.engine.statements import connect_client as connect
from headrace.model.errors import HeadraceError, StatementError, UnavailableError
from partial_engine import ask

CREATE = f"CREATE SOURCE CONNECTOR lines WITH ('connector.class'='{FILE}', 'file'='a.txt');"


@pytest.fixture
def worker(monkeypatch):
    monkeypatch.setattr(connect, "BACKOFF_SECONDS", 0.001)
    with connect_worker() as worker:
        yield worker


def test_create_list_describe_drop(worker):
    made = ask(CREATE, settings=worker.settings)
    assert made["@type"] == "connector_info"
    assert made["info"]["name"] == "LINES"
    assert made["info"]["config"] == {"connector.class": FILE, "file": "a.txt", "name": "LINES"}

    listed = ask("SHOW SOURCE CONNECTORS;", settings=worker.settings)
    assert listed["connectors"] == [
        {
            "name": "LINES",
            "type": "source",
            "className": FILE,
            "state": "RUNNING (1/2 tasks RUNNING)",
        }
    ]
    assert ask("SHOW SINK CONNECTORS;", settings=worker.settings)["connectors"] == []

    told = ask("DESCRIBE CONNECTOR lines;", settings=worker.settings)
    assert told["connectorClass"] == FILE
    assert told["topics"] == ["lines"]
    assert [t["state"] for t in told["status"]["tasks"]] == ["RUNNING", "FAILED"]

    dropped = ask("DROP CONNECTOR lines;", settings=worker.settings)
    assert dropped["connectorName"] == "LINES"
    assert worker.connectors == {}


def test_plugins(worker):
    answer = ask("SHOW CONNECTOR PLUGINS;", settings=worker.settings)
    assert answer["connectorsPlugins"] == [{"className": FILE, "type": "source", "version": "4.3"}]


def test_one_that_exists(worker):
    ask(CREATE, settings=worker.settings)
    with pytest.raises(HeadraceError, match="Connector LINES already exists") as refused:
        ask(CREATE, settings=worker.settings)
    assert refused.value.error_code == 40900
    again = CREATE.replace("CONNECTOR", "CONNECTOR IF NOT EXISTS")
    assert ask(again, settings=worker.settings)["message"] == "Connector LINES already exists"


def test_one_that_does_not_exist(worker):
    with pytest.raises(HeadraceError, match=r"Failed to drop connector: .*not found") as refused:
        ask("DROP CONNECTOR nope;", settings=worker.settings)
    assert refused.value.error_code == 40400
    gone = ask("DROP CONNECTOR IF EXISTS nope;", settings=worker.settings)
    assert gone["message"] == "Connector 'NOPE' does not exist."
    with pytest.raises(HeadraceError, match="Failed to query connector status"):
        ask("DESCRIBE CONNECTOR nope;", settings=worker.settings)


def test_settings_are_validated_first(worker):
    bad = f"CREATE SINK CONNECTOR x WITH ('connector.class'='{FILE}');"
    with pytest.raises(StatementError, match="Validation error: file - Missing required"):
        ask(bad, settings=worker.settings)
    with pytest.raises(StatementError, match="contains no connector type"):
        ask("CREATE SINK CONNECTOR x WITH ('a'='b');", settings=worker.settings)
    assert worker.connectors == {}


def test_a_connector_that_cannot_be_described_is_a_warning(worker):
    ask(CREATE, settings=worker.settings)
    worker.answers["GET", "/connectors/LINES"] = (500, "down")
    listed = ask("SHOW CONNECTORS;", settings=worker.settings)
    assert listed["connectors"] == [{"name": "LINES", "type": "unknown"}]
    assert listed["warnings"] == [{"message": 'Could not describe connector LINES: "down"'}]


def test_without_a_worker(monkeypatch):
    with pytest.raises(HeadraceError, match=r"Set 'ksql.connect.url'"):
        ask("SHOW CONNECTORS;")
    monkeypatch.setattr(connect, "BACKOFF_SECONDS", 0.001)
    with pytest.raises(UnavailableError, match=r"Kafka Connect at .* does not answer"):
        ask("SHOW CONNECTORS;", settings={"ksql.connect.url": "http://127.0.0.1:1"})


def test_secrets_of_connectors_are_not_told(worker):
    create = CREATE.replace("'file'", "'connection.password'='hunter2', 'file'")
    told = ask(create, settings=worker.settings)
    assert told["info"]["config"]["connection.password"] == "[hidden]"
    assert told["info"]["config"]["file"] == "a.txt"
    assert worker.connectors["LINES"]["config"]["connection.password"] == "hunter2"
    without_class = "CREATE SOURCE CONNECTOR other WITH ('connection.password'='hunter2');"
    with pytest.raises(StatementError, match="contains no connector type") as refused:
        ask(without_class, settings=worker.settings)
    assert "hunter2" not in refused.value.message
