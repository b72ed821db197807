from __future__ import annotations

import pytest

from headrace.model.errors import StatementError
from headrace.model.sources import SourceKind
from headrace.plan import nodes


def test_a_projection_keeps_the_key_and_names_what_has_no_name(catalog):
    planned = catalog.plan("CREATE STREAM O AS SELECT ID, AMOUNT + 1, PLACE->CITY FROM S;")
    assert str(planned.schema) == "`ID` BIGINT KEY, `KSQL_COL_0` INTEGER, `CITY` STRING"
    assert isinstance(planned.node, nodes.Write)
    assert planned.node.topic == "O"


def test_a_plan_reads_only_the_columns_it_needs(catalog):
    planned = catalog.plan("CREATE STREAM O AS SELECT ID, NAME FROM S WHERE AMOUNT > 1;")
    (read,) = nodes.sources(planned.node)
    assert [c.name for c in read.schema] == ["ID", "NAME", "AMOUNT"]


def test_a_pseudocolumn_is_carried_only_when_used(catalog):
    planned = catalog.plan("CREATE STREAM O AS SELECT ID, NAME FROM S WHERE ROWTIME > 1;")
    (read,) = nodes.sources(planned.node)
    assert [c.name for c in read.schema] == ["ID", "NAME", "ROWTIME"]
    assert [c.name for c in planned.schema] == ["ID", "NAME"]


def test_a_push_query_keeps_the_order_of_its_projection(catalog):
    planned = catalog.plan("SELECT NAME, ROWTIME, ID FROM S EMIT CHANGES LIMIT 3;")
    assert [c.name for c in planned.schema] == ["NAME", "ROWTIME", "ID"]
    assert isinstance(planned.node, nodes.Answer)
    assert planned.node.limit == 3


def test_an_aggregation_makes_a_table(catalog):
    planned = catalog.plan(
        "CREATE TABLE O AS SELECT NAME, COUNT(*) AS N FROM S GROUP BY NAME HAVING COUNT(*) > 1;"
    )
    assert planned.node.kind is SourceKind.TABLE
    assert str(planned.schema) == "`NAME` STRING KEY, `N` BIGINT"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("CREATE STREAM O AS SELECT NAME FROM S;", "must include the key column ID"),
        ("CREATE STREAM O AS SELECT ID FROM S;", "The projection contains no value columns."),
        ("CREATE STREAM O AS SELECT * FROM X;", "X does not exist."),
        ("CREATE STREAM O AS SELECT ID, BOB FROM S;", "SELECT column 'BOB' cannot be resolved."),
        ("CREATE STREAM O AS SELECT ROWTIME, * FROM S;", "Reserved column name in select"),
        (
            "CREATE STREAM O AS SELECT * FROM S WHERE NAME;",
            "Type error in WHERE expression: Should evaluate to boolean but is NAME (STRING)",
        ),
        ("CREATE TABLE O AS SELECT * FROM S;", "Your SELECT query produces a STREAM."),
    ],
)
def test_what_is_refused(catalog, sql, message):
    with pytest.raises(StatementError) as refused:
        catalog.run(sql)
    assert message in str(refused.value)


# -------------------------------------------------- INSERT INTO … SELECT with header columns


@pytest.fixture
def traced(catalog):
    catalog.run(
        """
        CREATE STREAM TRACED (ID BIGINT KEY, TRACE BYTES HEADER('t'), NAME STRING, AMOUNT BIGINT,
                              VERSION BYTES HEADER('v'))
          WITH (KAFKA_TOPIC='traced', VALUE_FORMAT='JSON');
        """
    )
    return catalog


@pytest.mark.parametrize(
    "select",
    [
        "SELECT ID, NAME, AMOUNT FROM S",
        "SELECT ID, NAME, AMOUNT FROM TRACED",
        "SELECT NAME, ID, AMOUNT FROM S WHERE PRICE > 1",
    ],
)
def test_rows_are_inserted_into_the_columns_that_are_no_headers(traced, select):
    planned = traced.plan(f"INSERT INTO TRACED {select};")
    assert str(planned.node.schema) == "`ID` BIGINT KEY, `NAME` STRING, `AMOUNT` BIGINT"
    assert isinstance(planned.node, nodes.Write)
    assert planned.node.topic == "traced"


@pytest.mark.parametrize(
    ("select", "headers"),
    [
        ("SELECT * FROM TRACED", "TRACE, VERSION"),
        ("SELECT ID, TRACE, NAME, AMOUNT FROM TRACED", "TRACE"),
        ("SELECT ID, NAME, AMOUNT, CAST(NULL AS BYTES) AS VERSION FROM S", "VERSION"),
    ],
)
def test_nothing_is_inserted_into_header_columns(traced, select, headers):
    with pytest.raises(StatementError) as refused:
        traced.plan(f"INSERT INTO TRACED {select};")
    assert (
        "Cannot insert into TRACED because it has header columns which the query selects: "
        f"{headers}. Select only the others: ID, NAME, AMOUNT" in refused.value.message
    )


def test_what_does_not_fit_the_other_columns_is_told_without_the_headers(traced):
    with pytest.raises(StatementError) as refused:
        traced.plan("INSERT INTO TRACED SELECT ID, NAME FROM S;")
    assert "Incompatible schema between results and sink." in refused.value.message
    assert "Sink schema is `ID` BIGINT KEY, `NAME` STRING, `AMOUNT` BIGINT" in refused.value.message
