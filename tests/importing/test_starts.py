"""Where imported queries begin: on from ksqlDB's offsets, or from where their state comes from."""

from __future__ import annotations

from typing import cast

import pytest

from headrace.importing.starts import Beginning, Offsets, rebuilt_topics
from headrace.kafka.admin import TopicAdmin
from headrace.plan import nodes as n
from headrace.plan.sources.start_from import Edge
from plan_catalog import Catalog

GROUP = "_confluent-ksql-default_query_CSAS_O_7"


class _Topics:
    def begin_offsets(self, name: str) -> dict[int, int]:
        return {0: 5, 1: 0}

    def end_offsets(self, name: str) -> dict[int, int]:
        return {0: 100, 1: 50}


@pytest.fixture
def catalog() -> Catalog:
    catalog = Catalog(topics={"s": 2, "r": 2, "t": 2, "u": 2})
    for kind, key, names in (("STREAM", "KEY", "sr"), ("TABLE", "PRIMARY KEY", "tu")):
        for name in names:
            catalog.run(
                f"CREATE {kind} {name} (k STRING {key}, a INT, b INT) "
                f"WITH (kafka_topic='{name}', value_format='JSON');"
            )
    return catalog


@pytest.mark.parametrize(
    ("query", "rebuilt"),
    [
        ("STREAM o AS SELECT * FROM s WHERE a > 1", {"s": False}),
        ("STREAM o AS SELECT * FROM s PARTITION BY a", {"s": False}),
        ("TABLE o AS SELECT * FROM t", {"t": False}),
        ("TABLE o AS SELECT * FROM t WHERE a > 1", {"t": True}),
        ("TABLE o AS SELECT k, COUNT(*) FROM s GROUP BY k", {"s": True}),
        ("STREAM o AS SELECT s.k, s.a FROM s JOIN t ON s.k = t.k", {"s": False, "t": True}),
        (
            "STREAM o AS SELECT s.k, s.a FROM s JOIN r WITHIN 1 HOUR ON s.k = r.k",
            {"s": True, "r": True},
        ),
        ("TABLE o AS SELECT t.k, t.a FROM t JOIN u ON t.k = u.k", {"t": True, "u": True}),
        (
            "TABLE o AS SELECT s.k, COUNT(*) FROM s JOIN t ON s.k = t.k GROUP BY s.k",
            {"s": True, "t": True},
        ),
    ],
)
def test_what_a_state_is_built_from(catalog: Catalog, query: str, rebuilt: dict[str, bool]) -> None:
    assert rebuilt_topics(catalog.plan(f"CREATE {query} EMIT CHANGES;").node) == rebuilt


def begin(
    catalog: Catalog,
    query: str,
    committed: dict[str, dict[int, int]],
    reset: str = "earliest",
    at: int | None = None,
    fresh: tuple[str, ...] = (),
) -> Beginning:
    node = catalog.plan(f"CREATE {query} EMIT CHANGES;").node
    assert isinstance(node, n.Write)
    del catalog.known["O"]
    asked: list[str] = []
    offsets = Offsets(
        cast("TopicAdmin", _Topics()), lambda group: asked.append(group) or committed, fresh
    )
    beginning = offsets.beginning(node, GROUP, reset, at)
    assert asked == [GROUP]
    return beginning


def test_without_state_it_goes_on(catalog: Catalog) -> None:
    begins = begin(catalog, "STREAM o AS SELECT * FROM s", {"s": {0: 42, 1: 7}, "x": {0: 1}})
    assert begins == Beginning({"s": {0: 42, 1: 7}})


def test_the_table_of_a_join_is_read_anew(catalog: Catalog) -> None:
    query = "STREAM o AS SELECT s.k, s.a FROM s JOIN t ON s.k = t.k"
    begins = begin(catalog, query, {"s": {0: 42}, "t": {0: 9}})
    assert begins.places == {"s": {0: 42}, "t": Edge.EARLIEST}


def test_state_is_built_anew(catalog: Catalog) -> None:
    query = "TABLE o AS SELECT k, COUNT(*) FROM s GROUP BY k"
    begins = begin(catalog, query, {"s": {0: 42, 1: 7}})
    assert begins.places == {"s": Edge.EARLIEST}
    assert [note[:22] for note in begins.notes] == [
        "Its state is built ane",
        "While its state is bui",
    ]


def test_state_that_ksqldb_began_with_later_records(catalog: Catalog) -> None:
    query = "TABLE o AS SELECT k, COUNT(*) FROM s GROUP BY k"
    assert begin(catalog, query, {}, "latest", at=1_700_000_000_000).places == {
        "s": 1_700_000_000_000
    }
    unknown = begin(catalog, query, {}, "latest")
    assert unknown.places == {"s": Edge.EARLIEST}
    assert "import from there (--command-topic)" in unknown.notes[1]


def test_a_join_of_streams_writes_again(catalog: Catalog) -> None:
    query = "STREAM o AS SELECT s.k, s.a FROM s JOIN r WITHIN 1 HOUR ON s.k = r.k"
    assert "whoever reads it sees it twice" in begin(catalog, query, {}).notes[-1]


def test_offsets_whose_records_are_gone(catalog: Catalog) -> None:
    begins = begin(catalog, "STREAM o AS SELECT * FROM s", {"s": {0: 2, 1: 60}})
    assert begins.places == {"s": {0: 5, 1: 50}}
    assert "it has 5 to 100 now: the query goes on at 5" in begins.notes[0]
    assert "it has 0 to 50 now: the query goes on at 50" in begins.notes[1]


def test_offsets_that_kafka_has_forgotten(catalog: Catalog) -> None:
    begins = begin(catalog, "STREAM o AS SELECT * FROM s", {}, "latest")
    assert begins.places == {}
    assert "has no offsets for topic 's' (any more): the query begins at its end" in begins.notes[0]


def test_topics_of_a_parallel_run_are_new(catalog: Catalog) -> None:
    begins = begin(catalog, "STREAM o AS SELECT * FROM s", {"s": {0: 42}}, fresh=("s",))
    assert begins == Beginning({"s": Edge.EARLIEST})
