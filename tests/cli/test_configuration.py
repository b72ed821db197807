"""Moving in with ksqlDB's configuration: files, variables of its image, warnings, `--strict`, and
`headrace check-config`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.cli.configuration import Outcome, examine, merged
from headrace.cli.environment import read_environment
from headrace.cli.main import main
from headrace.cli.properties import read_properties
from headrace.cli.start import configure, launch_options
from headrace.kafka.client import KafkaConnection
from headrace.kafka.settings import client_settings
from headrace.model.errors import HeadraceError
from headrace.model.kafka_client_names import CLIENT_NAMES
from headrace.model.settings import Settings

FILES = Path(__file__).parents[1] / "ksqldb_config"
SHIPPED = ["server.properties", "production-server.properties"]


def settings(*arguments):
    parser = argparse.ArgumentParser()
    configure(parser)
    return launch_options(parser.parse_args(arguments))["settings"]


@pytest.mark.parametrize("file", SHIPPED)
def test_files_that_ksqldb_ships_are_taken_with_warnings(file, capsys):
    chosen = settings("--config", str(FILES / file))
    told = Settings(chosen)
    assert told.text("bootstrap.servers") == "localhost:9092"
    warnings = capsys.readouterr().err.splitlines()
    assert (
        "warning: ksql.resource.extension.class: without meaning. Java classes cannot be loaded "
        "into this server." in warnings
    )
    assert len(warnings) == {"server.properties": 1, "production-server.properties": 5}[file]


def test_the_production_file_says_where_state_goes_and_how_producers_write():
    told = Settings(settings("--config", str(FILES / "production-server.properties")))
    assert told.text("state.dir") == "/some/non-temporary-storage-path/"
    assert told.client() == {
        "compression.type": "snappy",
        "delivery.timeout.ms": "2147483647",
        "max.block.ms": "9223372036854775807",
        "acks": "all",
    }
    connection = KafkaConnection({"bootstrap.servers": "127.0.0.1:1", **told.client()})
    connection.producer().flush(0)  # librdkafka takes them all
    connection.consumer().close()
    connection.admin()


@pytest.mark.parametrize("name", sorted(CLIENT_NAMES - {"interceptor.classes"}))
def test_no_name_of_a_client_of_kafka_is_unknown_to_ours(name):
    """A name that librdkafka does not know would end the start."""
    given = {"bootstrap.servers": "127.0.0.1:1", name: VALUES.get(name, "1")}
    values = client_settings(given).values
    try:
        KafkaConnection(given).producer().flush(0)
    except HeadraceError as error:
        assert "No such configuration property" not in str(error), (error, values)


VALUES = {"partitioner.class": "a.B", "sasl.mechanisms": "PLAIN"}


def test_unknown_names_are_warned_of_with_the_nearest_one(tmp_path, capsys):
    file = tmp_path / "a.properties"
    file.write_text("ksql.servce.id=x\nzzz=1\nksql.streams.producer.lingr.ms=5\n")
    assert settings("--config", str(file)) == {}
    assert capsys.readouterr().err.splitlines() == [
        "warning: ksql.servce.id: unknown. It is ignored. Did you mean ksql.service.id?",
        "warning: zzz: unknown. It is ignored. See docs/settings.md for all that there are.",
        "warning: ksql.streams.producer.lingr.ms: unknown. It is ignored. Did you mean "
        "ksql.streams.producer.linger.ms?",
    ]
    with pytest.raises(HeadraceError, match=r"ksql\.servce\.id: unknown.*\nzzz: unknown"):
        settings("--strict", "--config", str(file))


def test_strict_is_about_unknown_names_alone():
    assert settings("--strict", "--config", str(FILES / "production-server.properties"))


def test_dangerous_ones_are_refused_all_at_once():
    with pytest.raises(HeadraceError) as refused:
        settings(
            *("--set", "ksql.fail.on.deserialization.error=true"),
            *("--set", "ksql.security.extension.class=a.B", "--set", "ksql.max.push.queries=x"),
        )
    first, second, third = str(refused.value).splitlines()
    assert first.startswith("ksql.fail.on.deserialization.error: refused. A query does not stop")
    assert second.startswith("ksql.security.extension.class: refused. It says who may do what")
    assert third == (
        "ksql.max.push.queries: refused. Invalid value x for property ksql.max.push.queries: "
        "Not a number of type INT"
    )


def test_a_value_that_says_what_is_so_anyway_is_no_news(capsys):
    settings(
        *("--set", "ksql.heartbeat.enable=true", "--set", "ksql.fail.on.production.error=true")
    )
    assert capsys.readouterr().err == ""
    settings("--set", "ksql.heartbeat.enable=false")
    assert "through Kafka that they are alive" in capsys.readouterr().err


def test_later_places_win_by_whichever_name():
    layers = [{"ksql.streams.state.dir": "a", "x": "1"}, {"state.dir": "b"}]
    assert merged(layers) == {"state.dir": "b", "x": "1"}


def test_two_names_of_one_file_that_disagree_are_refused():
    given = {"ksql.streams.bootstrap.servers": "a:1", "bootstrap.servers": "b:1"}
    assert {f.outcome for f in examine(given)} == {Outcome.REFUSED}
    given["bootstrap.servers"] = "a:1"
    assert {f.outcome for f in examine(given)} == {Outcome.MAPPED, Outcome.HONOURED}


VARIABLES = {
    "KSQL_BOOTSTRAP_SERVERS": "kafka:9092",
    "KSQL_KSQL_SERVICE_ID": "shop_",
    "KSQL_LISTENERS": "http://0.0.0.0:8088",
    "KSQL_KSQL_FUNCTIONS_COLLECT___LIST_LIMIT": "5",
    "KSQL_A__B_C": "x",
    "KSQL_HEAP_OPTS": "-Xmx4g",
    "KSQL_OPTS": "-Dksql.queries.file='/a b.sql' -Djava.awt.headless=true -Dsecurity.protocol=SSL",
    "PATH": "/bin",
}


def test_variables_of_ksqldbs_image():
    assert read_environment(VARIABLES) == {
        "bootstrap.servers": "kafka:9092",
        "ksql.service.id": "shop_",
        "listeners": "http://0.0.0.0:8088",
        "ksql.functions.collect_list.limit": "5",
        "a-b.c": "x",
        "ksql.queries.file": "/a b.sql",
        "security.protocol": "SSL",
    }


def test_variables_win_over_files_and_the_command_line_over_them(monkeypatch, capsys):
    for name, value in VARIABLES.items():
        if name.startswith("KSQL_"):
            monkeypatch.setenv(name, value)
    file = str(FILES / "server.properties")
    without = settings("--config", file)
    assert without["bootstrap.servers"] == "localhost:9092" and "ksql.service.id" not in without
    chosen = settings("--config", file, "--environment", "--set", "ksql.service.id=mine_")
    assert chosen["bootstrap.servers"] == "kafka:9092"
    assert chosen["ksql.service.id"] == "mine_"
    assert "warning: a-b.c: unknown." in capsys.readouterr().err


TABLE = """\
ksql.service.id                honoured
ksql.streams.state.dir         mapped           Headrace calls it state.dir.
sasl.jaas.config               passed on        Kafka's clients get it.
spark.master                   passed on        Spark gets it.
max.block.ms                   without meaning  Kafka's client has no use for it: this client's own
ksql.servce.id                 unknown          It is ignored. Did you mean ksql.service.id?
ksql.security.extension.class  refused          It says who may do what, by a Java class
"""


def test_check_config_prints_what_becomes_of_each(tmp_path, capsys):
    file = tmp_path / "a.properties"
    file.write_text(
        "ksql.servce.id=x\nksql.service.id=x\nspark.master=local[2]\nmax.block.ms=1\n"
        "ksql.security.extension.class=a.B\nksql.streams.state.dir=/s\n"
        'sasl.jaas.config=a.PlainLoginModule required password="hunter2";\n'
    )
    assert main(["check-config", str(file)]) == 1
    told = capsys.readouterr().out
    assert "hunter2" not in told
    for line, expected in zip(told.splitlines(), TABLE.splitlines(), strict=False):
        words, wanted = line.split(), expected.split()
        assert words[0] == wanted[0] and " ".join(wanted[1:]) in " ".join(words)
    assert told.splitlines()[-1] == (
        "7 settings: 1 honoured, 1 mapped, 2 passed on, 1 without meaning, 1 unknown, 1 refused"
    )


@pytest.mark.parametrize("file", SHIPPED)
def test_check_config_of_files_that_ksqldb_ships(file, capsys):
    assert main(["check-config", "--strict", str(FILES / file)]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in read_properties(FILES / file))


def test_check_config_needs_neither_spark_nor_java():
    """It runs where nothing but the package is."""
    script = (
        "import sys; from headrace.cli.main import main\n"
        f"assert main(['check-config', {str(FILES / SHIPPED[1])!r}]) == 0\n"
        "print({'pyspark', 'confluent_kafka', 'granian'} & set(sys.modules))"
    )
    environment = {**os.environ, "PATH": "/nowhere", "JAVA_HOME": "/nowhere"}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1] == "set()"


def test_check_config_of_the_environment(monkeypatch, capsys):
    monkeypatch.setenv("KSQL_KSQL_SERVICE_ID", "shop_")
    assert main(["check-config", "--environment"]) == 0
    assert "ksql.service.id" in capsys.readouterr().out
