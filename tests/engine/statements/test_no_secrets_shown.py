"""No answer, no topic and no child process gets a secret of the server."""

from __future__ import annotations

import pytest
from pyspark import SparkContext
from pyspark.core import context

from headrace.engine.statements.change_writer import recorded
from headrace.engine.statements.connect_client import ConnectWorker
from headrace.engine.statements.request_session import Session
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
    "ksql.schema.registry.bearer.auth.token": "hunter2",
    "ksql.schema.registry.bearer.auth.client.secret": "hunter2",
    "ksql.schema.registry.ssl.keystore.password": "hunter2",
    "ksql.schema.registry.sasl.jaas.config": "x.PlainLoginModule required password='hunter2';",
    "ksql.connect.basic.auth.user.info": "me:hunter2",
    "ksql.connect.ssl.key.password": "hunter2",
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


@pytest.mark.parametrize("name", ["ksql.schema.registry.ssl.key.password", "ksql.connect.x"])
def test_what_services_are_reached_with_is_the_servers(name):
    with pytest.raises(StatementError, match="It is the server's"):
        Session().takes(parse_statement(f"SET '{name}'='hunter2';"))


@pytest.mark.parametrize("name", ["sasl.jaas.config", "ksql.streams.ssl.keystore.key"])
def test_a_secret_is_refused_where_statements_are_kept(name):
    session = Session()
    with pytest.raises(StatementError, match="it is a secret"):
        session.takes(parse_statement(f"SET '{name}'='hunter2';"))
    with pytest.raises(HeadraceError, match="it is a secret"):
        Session({name: "hunter2"}).check(Settings())


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
