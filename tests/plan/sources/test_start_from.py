"""START_FROM: what it may say, and for which queries."""

from __future__ import annotations

import pytest

from headrace.model.errors import StatementError
from headrace.plan.sources.start_from import (
    Edge,
    StartFrom,
    parse_start_from,
    start_from_text,
)
from plan_catalog import Catalog


@pytest.fixture
def catalog() -> Catalog:
    catalog = Catalog(topics={"s": 1, "u": 1})
    catalog.run(
        "CREATE STREAM s (id INT KEY, name STRING) WITH (kafka_topic='s', value_format='JSON');"
        "CREATE TABLE u (id INT PRIMARY KEY, age INT) WITH (kafka_topic='u', value_format='JSON');"
    )
    return catalog


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("Earliest", StartFrom(Edge.EARLIEST)),
        ("latest", StartFrom(Edge.LATEST)),
        ("1970-01-01T00:00:01Z", StartFrom(1000)),
        ("1970-01-01T01:00:01.5+01:00", StartFrom(1500)),
        ("1970-01-01", StartFrom(0)),
        ('{"0": 10, "1": 0}', StartFrom({0: 10, 1: 0})),
        (
            '{"s": {"0": 10}, "7": "latest"}',
            StartFrom(topics={"s": {0: 10}, "7": Edge.LATEST}),
        ),
    ],
)
def test_what_it_says(text: str, meaning: StartFrom):
    assert parse_start_from(text) == meaning


def test_it_is_written_as_it_is_read():
    places = {"s": {0: 10, 1: 3}, "u": Edge.EARLIEST, "v": 1_700_000_000_123}
    assert parse_start_from(start_from_text(places)) == StartFrom(topics=places)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("yesterday", "neither 'earliest'"),
        ("{", "is not JSON"),
        ("{}", "names neither a partition nor a topic"),
        ('{"0": -1}', "'-1' is not an offset of partition 0"),
        ('{"0": true}', "'True' is not an offset"),
        ('{"s": {"a": 1}}', "'a' is not a partition"),
        ('{"s": 5}', "'5' is neither"),
    ],
)
def test_what_it_cannot_say(catalog: Catalog, text: str, reason: str):
    with pytest.raises(StatementError, match="Configuration START_FROM is invalid") as told:
        catalog.run(f"CREATE STREAM o WITH (START_FROM='{text}') AS SELECT * FROM s;")
    assert reason in str(told.value)


def test_a_query_has_it(catalog: Catalog):
    planned = catalog.plan("CREATE STREAM o WITH (START_FROM='{\"0\": 7}') AS SELECT * FROM s;")
    assert planned.start_from == StartFrom({0: 7})
    planned = catalog.plan("INSERT INTO o WITH (START_FROM='latest') SELECT * FROM s;")
    assert planned.start_from == StartFrom(Edge.LATEST)


def test_topics_that_the_query_reads(catalog: Catalog):
    join = "AS SELECT s.id, name, age FROM s JOIN u ON s.id = u.id;"
    planned = catalog.plan(
        'CREATE STREAM j WITH (START_FROM=\'{"s": {"0": 1}, "u": "earliest"}\') ' + join
    )
    assert planned.start_from.of("u") is Edge.EARLIEST
    with pytest.raises(StatementError, match="topic 'x', which the query does not read"):
        catalog.run('CREATE STREAM k WITH (START_FROM=\'{"x": {"0": 1}}\') ' + join)
    with pytest.raises(StatementError, match="the query reads 2 topics: 's', 'u'"):
        catalog.run("CREATE STREAM k WITH (START_FROM='{\"0\": 1}') " + join)


def test_a_declared_source_starts_nothing(catalog: Catalog):
    with pytest.raises(StatementError, match="Invalid config variable"):
        catalog.run(
            "CREATE STREAM d (a INT) WITH (kafka_topic='s', value_format='JSON', "
            "START_FROM='latest');"
        )
