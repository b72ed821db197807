"""Plans as text, and what may replace them."""

from __future__ import annotations

import pytest

from headrace.model.errors import StatementError
from headrace.plan.explain import explain
from headrace.plan.replace import check_query_upgrade

QUERIES = [
    "CREATE STREAM O AS SELECT ID, CASE WHEN AMOUNT IN (1, 2) THEN PRICE * 1.5 END AS P FROM S;",
    "CREATE STREAM O AS SELECT ID, EXPLODE(TAGS) AS TAG FROM S WHERE ROWTIME > '2020-01-01';",
    "CREATE STREAM O AS SELECT * FROM S PARTITION BY NAME;",
    "CREATE TABLE O AS SELECT NAME, TOPK(AMOUNT, 2) AS P, WINDOWEND AS W FROM S "
    "WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 1 MINUTE) GROUP BY NAME;",
    "CREATE STREAM O AS SELECT * FROM S LEFT JOIN T ON S.ID = T.ID;",
    "SELECT MAP('a' := 1), STRUCT(X := NAME), ARRAY[0.1] FROM S EMIT CHANGES LIMIT 2;",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_explain_has_a_line_for_each_step(catalog, sql):
    lines = explain(catalog.plan(sql).node).splitlines()
    assert lines[0].startswith((" > [ SINK ]", " > [ ANSWER ]"))
    assert lines[-1].lstrip().startswith("> [ SOURCE ] | Schema: ")


def test_explain_shows_the_casts_that_were_put_in(catalog):
    planned = catalog.plan("CREATE STREAM O AS SELECT ID, ARRAY[AMOUNT, ID] AS A FROM S;")
    assert "ARRAY[CAST(AMOUNT AS BIGINT), ID] AS `A`" in explain(planned.node)


def upgraded(catalog, old, new):
    before = catalog.plan(f"CREATE STREAM O AS {old};")
    check_query_upgrade(before.node, catalog.plan(f"CREATE OR REPLACE STREAM O AS {new};").node)


def test_filters_and_more_columns_may_be_added(catalog):
    upgraded(catalog, "SELECT ID, NAME FROM S", "SELECT ID, NAME, AMOUNT FROM S WHERE AMOUNT > 1")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("SELECT ID, NAME, AMOUNT FROM S", "SELECT ID, AMOUNT FROM S", "[`NAME` STRING, `AMOUNT`"),
        ("SELECT * FROM S", "SELECT * FROM S PARTITION BY NAME", "Key columns must be identical."),
        (
            "SELECT S.ID, NAME FROM S JOIN T ON S.ID = T.ID",
            "SELECT S.ID, NAME, TITLE FROM S JOIN T ON S.ID = T.ID",
            "Upgrades not yet supported for StreamTableJoin",
        ),
    ],
)
def test_what_may_not_change(catalog, old, new, message):
    with pytest.raises(StatementError) as refused:
        upgraded(catalog, old, new)
    assert message in str(refused.value)
