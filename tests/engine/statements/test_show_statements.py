"""Statements that tell: functions, properties, variables, assertions."""

from __future__ import annotations

import pytest

from headrace.engine.statements import assertions
from headrace.kafka.admin import Topic
from headrace.kafka.client import UnknownTopicError
from headrace.model.errors import HeadraceError, StatementError
from headrace.registry.client import InMemoryRegistry
from partial_engine import ask


class Admin:
    """Topics that appear when they were asked for a few times."""

    def __init__(self, appears_after: int = 0) -> None:
        self.left = appears_after

    def describe(self, name: str) -> Topic:
        self.left -= 1
        if self.left >= 0 or name != "there":
            raise UnknownTopicError(f"Topic '{name}' does not exist in Kafka.")
        return Topic(name, (1, 1))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(assertions, "FIRST_PAUSE", 0.001)


def test_describe_function():
    told = ask("DESCRIBE FUNCTION substring;")
    assert told["@type"] == "describe_function"
    assert (told["name"], told["type"]) == ("SUBSTRING", "SCALAR")
    arguments = [f["argumentTypes"] for f in told["functions"]]
    assert ["VARCHAR", "INT", "INT"] in arguments
    assert {f["returnType"] for f in told["functions"]} >= {"VARCHAR"}
    assert told["description"]


def test_describe_an_unknown_function():
    with pytest.raises(StatementError, match="Can't find any functions with the name 'NOPE'"):
        ask("DESCRIBE FUNCTION NOPE;")


def test_show_functions_has_all_kinds():
    types = {f["type"] for f in ask("SHOW FUNCTIONS;")["functions"]}
    assert types == {"SCALAR", "AGGREGATE", "TABLE"}


def test_properties():
    told = ask(
        "SHOW PROPERTIES;",
        settings={"ksql.schema.registry.basic.auth.user.info": "a:b", "ksql.service.id": "x_"},
        properties={"auto.offset.reset": "earliest"},
    )
    by_name = {p["name"]: p for p in told["properties"]}
    assert by_name["ksql.streams.auto.offset.reset"] == {
        "name": "ksql.streams.auto.offset.reset",
        "scope": "KSQL",
        "value": "earliest",
        "editable": True,
        "level": "QUERY",
    }
    assert by_name["ksql.schema.registry.basic.auth.user.info"]["value"] == "[hidden]"
    assert by_name["ksql.headers.enabled"]["value"] == "true"
    assert told["overwrittenProperties"] == ["ksql.streams.auto.offset.reset"]
    assert "ksql.headers.enabled" in told["defaultProperties"]
    assert "ksql.service.id" not in told["defaultProperties"]


def test_variables():
    told = ask("SHOW VARIABLES;", variables={"a": "1"})
    assert told["variables"] == [{"name": "a", "value": "1"}]


def test_assert_topic_waits_until_it_is_there():
    told = ask("ASSERT TOPIC there WITH (PARTITIONS=2) TIMEOUT 5 SECONDS;", admin=Admin(3))
    assert (told["@type"], told["topicName"], told["exists"]) == ("assert_topic", "there", True)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ASSERT TOPIC nope TIMEOUT 1 MILLISECONDS;", "Topic nope does not exist"),
        ("ASSERT NOT EXISTS TOPIC there TIMEOUT 1 MILLISECONDS;", "Topic there exists"),
        (
            "ASSERT TOPIC there WITH (PARTITIONS=3, REPLICAS=1, X=1) TIMEOUT 1 MILLISECONDS;",
            "Mismatched configuration for topic there: For config partitions, expected 3 got 2\n"
            "Cannot assert unknown topic property: X",
        ),
    ],
)
def test_assert_topic_fails(statement, message):
    with pytest.raises(HeadraceError) as failed:
        ask(statement, admin=Admin())
    assert (failed.value.message, failed.value.error_code) == (message, 41700)


def test_assert_schema():
    registry = InMemoryRegistry()
    id_ = registry.register("s-value", '"string"', "AVRO")
    for statement in (
        "ASSERT SCHEMA SUBJECT 's-value';",
        f"ASSERT SCHEMA ID {id_};",
        f"ASSERT SCHEMA SUBJECT 's-value' ID {id_};",
        "ASSERT NOT EXISTS SCHEMA SUBJECT 'other' TIMEOUT 1 MILLISECONDS;",
    ):
        assert ask(statement, registry=registry)["@type"] == "assert_schema"
    with pytest.raises(HeadraceError, match="Schema with subject name other id 7 does not exist"):
        ask("ASSERT SCHEMA SUBJECT 'other' ID 7 TIMEOUT 1 MILLISECONDS;", registry=registry)
