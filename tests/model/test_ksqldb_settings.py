"""ksqlDB's settings, all that its reference documents: each is honoured, mapped, without meaning or
refused, and never handed to somebody who does not know it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.cli.reference import PAGES
from headrace.model.errors import StatementError
from headrace.model.ksqldb_settings import KSQLDB_SETTINGS
from headrace.model.setting import Fate
from headrace.model.settings import (
    _SETTINGS,
    SETTINGS,
    Settings,
    canonical,
    check_editable,
    declared,
    is_secret,
)

# The headings of ksqlDB's server configuration reference.
DOCUMENTED = (
    (Path(__file__).parents[1] / "ksqldb_config" / "documented.txt").read_text().splitlines()
)
FORMULA = "ksql.functions.formula.base.value"


def test_the_reference_documents_78():
    assert len(set(DOCUMENTED)) == 78


@pytest.mark.parametrize("name", DOCUMENTED)
def test_each_documented_setting_is_in_the_table_and_on_the_page(name):
    page = PAGES["settings"]()
    if "<" in name:
        setting, name = declared(FORMULA), "ksql.functions.*"
    else:
        setting = declared(name)
    assert setting is not None and setting.doc
    shown = {setting.name, name} if setting.name.endswith(".*") else {name}
    assert any(f"| `{each}` |" in page for each in shown)


def test_no_setting_is_declared_twice():
    names = [setting.name for setting in (*_SETTINGS, *KSQLDB_SETTINGS)]
    assert len(names) == len(set(names))


def test_what_is_mapped_is_mapped_to_something_that_is_honoured():
    for setting in KSQLDB_SETTINGS:
        if setting.fate is Fate.MAPPED:
            assert SETTINGS[setting.target].fate is Fate.HONOURED


@pytest.mark.parametrize(
    ("name", "value", "target", "expected"),
    [
        ("ksql.streams.state.dir", "/state", "state.dir", "/state"),
        ("ksql.streams.bootstrap.servers", "a:1", "bootstrap.servers", "a:1"),
        ("ksql.streams.processing.guarantee", "EXACTLY_ONCE_V2", "processing.guarantee", None),
        ("ksql.headers.columns.enabled", "false", "ksql.headers.enabled", False),
        ("ksql.pull.queries.enable", "false", "ksql.query.pull.enable", False),
        ("ksql.streams.consumer.auto.offset.reset", "earliest", "auto.offset.reset", "earliest"),
    ],
)
def test_a_mapped_setting_counts_by_either_name(name, value, target, expected):
    settings = Settings({name: value})
    assert settings[target] == settings[name] == (value.lower() if expected is None else expected)
    assert canonical(name) == canonical(target)
    assert settings.client() == {}
    assert Settings({name: value}, {target: None})[name] is None  # a later layer, by its other name


@pytest.mark.parametrize(
    "name",
    [
        *("ksql.streams.replication.factor", "replication.factor", "num.standby.replicas"),
        *(
            "ksql.streams.topic.min.insync.replicas",
            "topic.min.insync.replicas",
            "rocksdb.config.setter",
        ),
        *("ksql.resource.extension.class", "ksql.heartbeat.window.ms", "confluent.license"),
    ],
)
def test_what_has_no_meaning_is_taken_and_no_client_of_kafka_gets_it(name):
    assert declared(name).fate is Fate.WITHOUT_MEANING
    settings = Settings({name: "3"})
    assert settings.client() == {} and settings[name] == "3"


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("ksql.fail.on.deserialization.error", "true", "ksql.error.dead.letter.topic"),
        ("ksql.security.extension.class", "a.B", "authentication.method=BASIC"),
        ("ksql.authentication.plugin.class", "a.B", "authentication.credentials.file"),
        ("ksql.readonly.topics", "a.*", "Kafka's ACLs"),
        ("ssl.client.auth", "true", "ssl.client.authentication=REQUIRED"),
        ("config.providers", "file", "Write them out"),
    ],
)
def test_what_it_would_be_dangerous_to_ignore_is_refused(name, value, instead):
    with pytest.raises(StatementError, match=instead):
        Settings({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("ksql.fail.on.deserialization.error", "false"), ("ksql.security.extension.class", "")],
)
def test_unless_it_says_what_is_so_anyway(name, value):
    Settings({name: value})


def test_settings_of_functions():
    settings = Settings({FORMULA: "7", "ksql.functions._global_.api.key": "x"})
    assert settings[FORMULA] == "7"
    assert {n for n in settings if n.startswith("ksql.functions._global_")}
    assert is_secret("ksql.functions._global_.api.key") and not is_secret(FORMULA)
    with pytest.raises(StatementError, match="It is the server's"):
        check_editable(FORMULA)


def test_kafkas_clients_get_theirs_by_their_own_names():
    given = {
        "compression.type": "snappy",
        "acks": "1",
        "ksql.streams.producer.acks": "all",
        "ksql.streams.consumer.fetch.min.bytes": "2",
        "ksql.streams.admin.request.timeout.ms": "3",
        "ssl.truststore.location": "/t",
    }
    assert Settings(given).client() == {
        "compression.type": "snappy",
        "acks": "all",
        "fetch.min.bytes": "2",
        "request.timeout.ms": "3",
        "ssl.truststore.location": "/t",
    }
