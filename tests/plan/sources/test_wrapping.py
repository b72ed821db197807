"""KLIP-3: which statement gives which wrapping on source and sink. Examples bear the seed's names.

By default `ksql.persistence.wrap.single.values` and `.keys` are false.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from headrace.formats import FORMATS
from headrace.model.errors import StatementError
from headrace.model.sources import Serde, Source
from headrace.plan import nodes as n
from plan_catalog import Catalog

SOURCES = """
    CREATE STREAM EXPLICIT_SOURCE (ID INT)
      WITH (KAFKA_TOPIC='a', VALUE_FORMAT='JSON', WRAP_SINGLE_VALUES=true);
    CREATE STREAM IMPLICIT_SOURCE (ID INT) WITH (KAFKA_TOPIC='b', VALUE_FORMAT='JSON');
    CREATE STREAM MULTI_FIELD_SOURCE (ID INT, NAME STRING)
      WITH (KAFKA_TOPIC='c', VALUE_FORMAT='JSON', WRAP_SINGLE_VALUES=false);
"""


def is_wrapped(serde: Serde, columns: int) -> bool:
    """Whether that many columns lie in an envelope."""
    return FORMATS[serde.format].wrapped(columns, serde.wrap)


def written(source: Source, side: str = "value") -> bool:
    """Whether the source's records are envelopes."""
    serde = source.key if side == "key" else source.value
    columns = source.schema.key if side == "key" else source.schema.value
    return is_wrapped(serde, len(columns))


def downstream(source: Source, side: str = "value") -> bool:
    """Whether queries that read the source write single fields in an envelope."""
    serde = source.key if side == "key" else source.value
    assert serde.wrap_inherited
    return is_wrapped(serde, 1)


@pytest.fixture
def seed() -> Catalog:
    catalog = Catalog()
    catalog.run(SOURCES)
    return catalog


def test_the_sources(seed: Catalog):
    facts = {name: (written(s), downstream(s)) for name, s in seed.known.items()}
    assert facts == {
        "EXPLICIT_SOURCE": (True, True),
        "IMPLICIT_SOURCE": (False, False),
        "MULTI_FIELD_SOURCE": (True, False),
    }


@pytest.mark.parametrize(
    ("statement", "is_written_wrapped", "wraps_downstream"),
    [
        pytest.param("AS SELECT ID FROM EXPLICIT_SOURCE", True, True, id="A"),
        pytest.param(
            "WITH (WRAP_SINGLE_VALUES=false) AS SELECT ID FROM EXPLICIT_SOURCE",
            False,
            False,
            id="B",
        ),
        pytest.param("AS SELECT ID FROM IMPLICIT_SOURCE", False, False, id="C"),
        pytest.param(
            "WITH (WRAP_SINGLE_VALUES=true) AS SELECT ID FROM IMPLICIT_SOURCE", True, True, id="D"
        ),
        pytest.param("AS SELECT ID, NAME FROM MULTI_FIELD_SOURCE", True, False, id="E"),
        pytest.param(
            "WITH (WRAP_SINGLE_VALUES=true) AS SELECT ID, NAME FROM MULTI_FIELD_SOURCE",
            True,
            True,
            id="F",
        ),
        pytest.param("AS SELECT ID FROM MULTI_FIELD_SOURCE", False, False, id="G"),
        pytest.param(
            "WITH (WRAP_SINGLE_VALUES=true) AS SELECT ID FROM MULTI_FIELD_SOURCE",
            True,
            True,
            id="H",
        ),
        pytest.param(
            "AS SELECT I.ID, M.NAME FROM IMPLICIT_SOURCE I "
            "JOIN MULTI_FIELD_SOURCE M WITHIN 1 SECOND ON I.ID = M.ID",
            False,
            False,
            id="I",
        ),
    ],
)
def test_example(seed: Catalog, statement: str, is_written_wrapped: bool, wraps_downstream: bool):
    seed.run(f"CREATE STREAM RESULT {statement};")
    result = seed.known["RESULT"]
    assert written(result) is is_written_wrapped
    assert downstream(result) is wraps_downstream


def test_example_i_by_its_number_of_value_fields(seed: Catalog):
    # A join's key is the joined column: the example's value has one field, and with one more it
    # is a record, as the seed says.
    join = "FROM IMPLICIT_SOURCE I JOIN MULTI_FIELD_SOURCE M WITHIN 1 SECOND ON I.ID = M.ID;"
    seed.run(f"CREATE STREAM MANY AS SELECT I.ID, M.NAME, M.NAME AS MORE {join}")
    assert written(seed.known["MANY"])
    assert not downstream(seed.known["MANY"])
    swapped = "FROM EXPLICIT_SOURCE I JOIN IMPLICIT_SOURCE M WITHIN 1 SECOND ON I.ID = M.ID;"
    seed.run(f"CREATE STREAM LEFT_ONE AS SELECT I.ID, M.ID + 1 AS ONE {swapped}")
    assert written(seed.known["LEFT_ONE"])


def test_inserts_use_the_sinks_settings(seed: Catalog):
    seed.run("CREATE STREAM SINK (ID INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');")
    planned = seed.plan("INSERT INTO SINK SELECT ID FROM EXPLICIT_SOURCE;")
    assert not is_wrapped(planned.node.value, 1)  # type: ignore[attr-defined]
    planned = seed.plan("INSERT INTO EXPLICIT_SOURCE SELECT ID FROM IMPLICIT_SOURCE;")
    assert is_wrapped(planned.node.value, 1)  # type: ignore[attr-defined]
    planned = seed.plan("INSERT INTO MULTI_FIELD_SOURCE SELECT ID, 'a' AS NAME FROM SINK;")
    assert is_wrapped(planned.node.value, 2)  # type: ignore[attr-defined]


def test_set_changes_what_the_next_create_captures(seed: Catalog):
    seed.settings["ksql.persistence.wrap.single.values"] = "true"
    seed.run("CREATE STREAM LATER (ID INT) WITH (KAFKA_TOPIC='l', VALUE_FORMAT='JSON');")
    assert written(seed.known["LATER"])
    seed.run("CREATE STREAM C AS SELECT ID FROM IMPLICIT_SOURCE;")
    assert not written(seed.known["C"])  # the setting does not reach queries of older sources


# ----------------------------------------------------------------------------------------- keys

KEYED = "CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', FORMAT='JSON'{});"


@pytest.mark.parametrize(
    ("source", "query", "key", "value"),
    [
        ("", "", False, False),
        (", WRAP_SINGLE_KEYS=true", "", True, False),
        (", WRAP_SINGLE_FIELDS=true", "", True, True),
        (", WRAP_SINGLE_KEYS=true, WRAP_SINGLE_VALUES=true", "", True, True),
        (", WRAP_SINGLE_FIELDS=true", "WITH (WRAP_SINGLE_KEYS=false)", False, True),
        ("", "WITH (WRAP_SINGLE_FIELDS=true)", True, True),
        (", WRAP_SINGLE_FIELDS=false", "WITH (WRAP_SINGLE_VALUES=true)", False, True),
    ],
)
def test_keys(source: str, query: str, key: bool, value: bool):
    catalog = Catalog()
    catalog.run(KEYED.format(source) + f"CREATE STREAM R {query} AS SELECT * FROM S;")
    result = catalog.known["R"]
    assert (written(result, "key"), written(result)) == (key, value)


def test_a_source_without_key_keeps_the_setting_for_those_downstream():
    catalog = Catalog()
    catalog.run(
        "CREATE STREAM S (A INT, B INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', "
        "WRAP_SINGLE_FIELDS=true);"
        "CREATE STREAM R WITH (KEY_FORMAT='JSON') AS SELECT * FROM S PARTITION BY A;"
    )
    assert written(catalog.known["R"], "key")


# ------------------------------------------------------------------------- the released property


def test_the_released_property_is_not_inherited():
    catalog = Catalog()
    catalog.run(
        "CREATE STREAM S (V INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', "
        "WRAP_SINGLE_VALUE=true); CREATE STREAM R AS SELECT V FROM S;"
    )
    assert written(catalog.known["S"])
    assert not written(catalog.known["R"])
    catalog.run(
        "CREATE STREAM R2 WITH (WRAP_SINGLE_VALUE=true) AS SELECT V FROM R;"
        "CREATE STREAM R3 AS SELECT V FROM R2;"
    )
    assert written(catalog.known["R2"])
    assert not written(catalog.known["R3"])


@pytest.mark.parametrize("flag", ["true", "false"])
def test_the_released_property_is_for_single_fields(flag: str):
    with pytest.raises(StatementError) as caught:
        Catalog().run(
            "CREATE STREAM S (V INT, W INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', "
            f"WRAP_SINGLE_VALUE={flag});"
        )
    message = "'WRAP_SINGLE_VALUE' is only valid for single-field value schemas"
    assert caught.value.message == message


# -------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("WRAP_SINGLE_KEYS", "WRAP_SINGLE_FIELDS"),
        ("WRAP_SINGLE_VALUES", "WRAP_SINGLE_FIELDS"),
        ("WRAP_SINGLE_VALUE", "WRAP_SINGLE_VALUES"),
        ("WRAP_SINGLE_VALUE", "WRAP_SINGLE_FIELDS"),
    ],
)
@pytest.mark.parametrize("flags", [("true", "true"), ("false", "true")])
def test_duplicate_settings(seed: Catalog, first: str, second: str, flags: tuple[str, str]):
    both = f"{first}={flags[0]}, {second}={flags[1]}"
    for statement in (
        KEYED.format(f", {both}"),
        f"CREATE STREAM R WITH ({both}) AS SELECT ID FROM IMPLICIT_SOURCE;",
    ):
        with pytest.raises(StatementError) as caught:
            seed.run(statement)
        assert f"Duplicate setting: '{first}' and '{second}' cannot both" in caught.value.message


@pytest.mark.parametrize(
    ("format_", "flag"),
    [("DELIMITED", "true"), ("KAFKA", "true"), ("PROTOBUF", "false")],
)
def test_the_released_property_is_refused_by_formats_without_the_notion(format_: str, flag: str):
    setting = f"VALUE_FORMAT='{format_}', WRAP_SINGLE_VALUE={flag}"
    for statement in (
        f"CREATE STREAM S (V INT) WITH (KAFKA_TOPIC='s', {setting});",
        "CREATE STREAM P (V INT) WITH (KAFKA_TOPIC='p', VALUE_FORMAT='JSON');"
        f"CREATE STREAM R WITH ({setting}) AS SELECT * FROM P;",
    ):
        with pytest.raises(StatementError) as caught:
            Catalog().run(statement)
        expected = f"Format '{format_}' does not support 'WRAP_SINGLE_VALUE' set to '{flag}'."
        assert caught.value.message == expected


def test_an_inherited_setting_is_no_order():
    catalog = Catalog()
    catalog.run(
        KEYED.format(", WRAP_SINGLE_FIELDS=true")
        + "CREATE STREAM R WITH (FORMAT='DELIMITED') AS SELECT * FROM S;"
        + "CREATE STREAM R2 WITH (FORMAT='JSON') AS SELECT * FROM R;"
    )
    assert not written(catalog.known["R"])
    assert written(catalog.known["R2"])
    assert written(catalog.known["R2"], "key")


# --------------------------------------------------------------------- what lies between the topics


def differing(one: Any, other: Any, node: type | None = None) -> Iterator[type | None]:
    """The kinds of plan nodes in which two plans differ."""
    assert type(one) is type(other)
    if is_dataclass(one):
        node = type(one) if isinstance(one, n.Node) else node
        for field in fields(one):
            yield from differing(getattr(one, field.name), getattr(other, field.name), node)
    elif isinstance(one, tuple):
        for a, b in zip(one, other, strict=True):
            yield from differing(a, b, node)
    elif one != other:
        yield node


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE R AS SELECT V, COUNT(*) AS N FROM S GROUP BY V;",
        "CREATE TABLE R AS SELECT K, COUNT(*) AS N FROM S WINDOW SESSION (1 HOUR) GROUP BY K;",
        "CREATE STREAM R AS SELECT V, K FROM S PARTITION BY V;",
        "CREATE STREAM R AS SELECT S.K, S.V, T.V FROM S JOIN T ON S.K = T.K;",
    ],
)
def test_nothing_but_what_reads_and_writes_topics_knows_the_choice(query: str):
    """So that neither state nor what is shuffled depends on it."""

    def plan(flag: str) -> n.Node:
        catalog = Catalog()
        for side in ("keys", "values"):
            catalog.settings[f"ksql.persistence.wrap.single.{side}"] = flag
        table = "CREATE TABLE T (K INT PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='t', FORMAT='JSON');"
        return catalog.plan(KEYED.format("") + table + query).node

    assert set(differing(plan("true"), plan("false"))) == {n.ReadSource, n.Write}
