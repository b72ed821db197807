"""No answer, no topic and no child process gets a secret of the server."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext
from pyspark.core import context

from headrace.engine.statements.change_writer import recorded
from headrace.engine.statements.connect_client import ConnectWorker
from headrace.engine.statements.request_session import Session
from headrace.kafka import settings
from headrace.kafka.settings import client_settings
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.settings import Settings
from headrace.registry.client import HttpRegistry
from headrace.spark.runtime.session import start_session
from headrace.sql.parser import parse_statement
from partial_engine import ask

SECRETS = {
    "spark.hadoop.fs.s3a.session.token": "hunter2",
    "spark.hadoop.fs.azure.account.key.me.blob.core.windows.net": "hunter2",
    "ssl.keystore.key": "hunter2",
    "ssl.key.pem": "hunter2",
    "ksql.streams.sasl.jaas.config": "x.PlainLoginModule required password='hunter2';",
    "ksql.schema.registry.basic.auth.user.info": "me:hunter2",
    "ksql.schema.registry.url": "http://me:hunter2@registry:8081",
}


def test_show_properties():
    told = ask("SHOW PROPERTIES;", settings=SECRETS)
    assert "hunter2" not in str(told)
    by_name = {p["name"]: p["value"] for p in told["properties"]}
    assert by_name["ksql.schema.registry.url"] == "http://[hidden]@registry:8081"
    assert by_name["ssl.key.pem"] == "[hidden]"


def test_the_command_log():
    kept = recorded({**SECRETS, "ksql.streams.auto.offset.reset": "earliest"})
    assert kept == {"ksql.streams.auto.offset.reset": "earliest"}


@pytest.mark.parametrize("name", ["sasl.jaas.config", "ksql.streams.ssl.keystore.key"])
def test_a_secret_is_refused_where_statements_are_kept(name):
    session = Session()
    with pytest.raises(StatementError, match="it is a secret"):
        session.takes(parse_statement(f"SET '{name}'='hunter2';"))
    with pytest.raises(HeadraceError, match="it is a secret"):
        Session({name: "hunter2"}).check(Settings())


def test_a_trust_stores_password_is_on_no_command_line(monkeypatch):
    """Everybody can read that."""
    seen = []

    def run(command, env, **_):
        seen.append((command, env))
        said = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"
        return subprocess.CompletedProcess(command, 0, said, "")

    java = SimpleNamespace(executable=Path("/usr/bin/java"))
    monkeypatch.setattr(settings, "find_java", lambda: java)
    monkeypatch.setattr(subprocess, "run", run)
    client_settings({"ssl.truststore.location": "trust.jks", "ssl.truststore.password": "hunter2"})
    command, env = seen[-1]
    assert command[0].endswith("keytool")
    assert "hunter2" not in " ".join(command)
    assert "hunter2" in env.values()


def test_a_login_that_is_not_understood_is_not_repeated():
    with pytest.raises(HeadraceError, match="names the login module, which") as caught:
        client_settings({"sasl.jaas.config": "password='hunter2' required;"})
    assert "hunter2" not in caught.value.message


class _Started(Exception):
    pass


def test_sparks_jvm_is_started_without_secrets(monkeypatch, tmp_path):
    """PySpark makes a command line of what the JVM is started with."""
    seen = {}

    def launch(conf):
        seen.update(conf.getAll())
        raise _Started

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.setattr(context, "launch_gateway", launch)
    spark = {name: value for name, value in SECRETS.items() if name.startswith("spark.")}
    with pytest.raises(_Started):
        start_session([], {**spark, "spark.driver.memory": "3g"}, tmp_path)
    assert seen["spark.driver.memory"] == "3g"
    assert not set(seen) & set(SECRETS) and "hunter2" not in str(seen)


def test_addresses_in_errors_have_no_passwords(monkeypatch):
    for module in ("registry.client", "engine.statements.connect_client"):
        monkeypatch.setattr(f"headrace.{module}.BACKOFF_SECONDS", 0.001)
    registry = HttpRegistry("http://me:hunter2@127.0.0.1:1")
    with pytest.raises(HeadraceError, match="does not answer") as caught:
        registry.subjects()
    assert "hunter2" not in caught.value.message
    worker = ConnectWorker("http://me:hunter2@127.0.0.1:1")
    with pytest.raises(HeadraceError, match="does not answer") as caught:
        worker.connectors()
    assert "hunter2" not in caught.value.message
