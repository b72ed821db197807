"""Which push queries count as scalable."""

import pytest

from headrace.catalog.catalog import Catalog, QueryRecord
from headrace.model.settings import Settings
from headrace.plan.scalable import is_scalable
from headrace.sql import ast
from headrace.sql.parser import parse_statement

ENABLED = {"ksql.query.push.v2.enabled": "true"}
WRITTEN = {
    id_: QueryRecord(id_, f"{id_};", ("I",), sink)
    for id_, sink in (("CSAS_S_1", "S"), ("CSAS_TWICE_2", "TWICE"), ("INSERTQUERY_3", "TWICE"))
}


def scalable(sql, **settings):
    query = parse_statement(sql)
    assert isinstance(query, ast.Query)
    named = {k.replace("__", "."): v for k, v in settings.items()}
    return is_scalable(query, Catalog(queries=WRITTEN), Settings({**ENABLED, **named}))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM S EMIT CHANGES;",
        "SELECT K, ROWTIME FROM S X WHERE V > 1 EMIT CHANGES LIMIT 1;",
    ],
)
def test_rows_of_one_query(sql):
    assert scalable(sql)
    assert not scalable(sql, ksql__query__push__v2__enabled="false")
    assert not scalable(sql, auto__offset__reset="earliest")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM S;",
        "SELECT * FROM I EMIT CHANGES;",
        "SELECT * FROM TWICE EMIT CHANGES;",
        "SELECT * FROM S JOIN T WITHIN 1 DAY ON S.K = T.K EMIT CHANGES;",
        "SELECT K, COUNT(*) FROM S GROUP BY K EMIT CHANGES;",
        "SELECT K, COUNT(*) FROM S WINDOW TUMBLING (SIZE 1 DAY) GROUP BY K EMIT FINAL;",
        "SELECT * FROM S PARTITION BY V EMIT CHANGES;",
        "SELECT ROWOFFSET FROM S EMIT CHANGES;",
        "SELECT * FROM S WHERE ABS(ROWPARTITION) = 1 EMIT CHANGES;",
    ],
)
def test_everything_else(sql):
    assert not scalable(sql)
