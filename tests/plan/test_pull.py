from __future__ import annotations

import pytest

from headrace.model.errors import StatementError
from headrace.plan.pull import Bound, KeyConstraint, Range, plan_pull
from headrace.sql.parser import parse_statement


@pytest.fixture
def pull(catalog):
    catalog.run(
        """
        CREATE TABLE BY_NAME AS SELECT NAME, COUNT(*) AS N FROM S GROUP BY NAME;
        CREATE TABLE HOURLY AS SELECT NAME, COUNT(*) AS N FROM S
          WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY NAME;
        CREATE TABLE PAIRS WITH (KEY_FORMAT='JSON') AS
          SELECT NAME, AMOUNT, COUNT(*) AS N FROM S GROUP BY NAME, AMOUNT;
        CREATE STREAM BY_PLACE (ID INT KEY, PLACE STRUCT<ROWTIME INT, A INT>)
          WITH (KAFKA_TOPIC='p', VALUE_FORMAT='JSON');
        CREATE SOURCE TABLE WITH_HEADERS (ID INT PRIMARY KEY, H BYTES HEADER('h'), A INT)
          WITH (KAFKA_TOPIC='h', VALUE_FORMAT='JSON');
        """
    )
    return lambda sql, **settings: plan_pull(
        parse_statement(sql), catalog, {k.replace("_", "."): v for k, v in settings.items()}
    )


def test_a_key_is_looked_up(pull):
    assert pull("SELECT * FROM BY_NAME WHERE NAME = 'a';").constraints == (
        KeyConstraint(key=("a",)),
    )


def test_alternatives_are_looked_up_each(pull):
    plan = pull("SELECT * FROM BY_NAME WHERE (NAME IN ('a', 'b') OR NAME = 'c') AND N > 1;")
    assert [constraint.key for constraint in plan.constraints] == [("a",), ("b",), ("c",)]


def test_every_column_of_a_key_is_needed(pull):
    assert pull("SELECT * FROM PAIRS WHERE NAME = 'a' AND AMOUNT = 2 - 1;").constraints == (
        KeyConstraint(key=("a", 1)),
    )
    assert pull("SELECT * FROM PAIRS WHERE NAME = 'a';").constraints is None


def test_a_range_of_keys(pull):
    assert pull("SELECT * FROM BY_NAME WHERE NAME >= 'a';").constraints == (
        KeyConstraint(range=Range(lower=Bound("a", True))),
    )


def test_windows_may_be_given_as_times(pull):
    plan = pull(
        "SELECT * FROM HOURLY WHERE NAME='a' AND WINDOWSTART >= '1970-01-02' AND WINDOWEND < 9;"
    )
    (constraint,) = plan.constraints
    assert constraint.window_start == Range(lower=Bound(86_400_000, True))
    assert constraint.window_end == Range(upper=Bound(9, False))


def test_the_answer_marks_key_and_window(pull):
    plan = pull("SELECT * FROM HOURLY;")
    assert str(plan.schema) == (
        "`NAME` STRING KEY, `WINDOWSTART` BIGINT KEY, `WINDOWEND` BIGINT KEY, `N` BIGINT"
    )
    assert plan.constraints is None


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT ROWTIME, * FROM BY_NAME", ["ROWTIME", "NAME", "N"]),
        (
            "SELECT ROWOFFSET, B.*, B.ROWPARTITION, ROWTIME AS T FROM BY_NAME B",
            ["ROWOFFSET", "NAME", "N", "ROWPARTITION", "T"],
        ),
        ("SELECT *, N + 1 AS MORE FROM BY_NAME", ["NAME", "N", "MORE"]),
        ("SELECT *, ROWTIME FROM HOURLY", ["NAME", "WINDOWSTART", "WINDOWEND", "N", "ROWTIME"]),
        (
            "SELECT ROWTIME, * FROM S WHERE ROWPARTITION = 0 AND ROWOFFSET > 1",
            ["ROWTIME", "ID", "NAME", "AMOUNT", "PRICE", "TAGS", "PLACE"],
        ),
    ],
)
def test_pseudocolumns_stand_beside_a_star(pull, sql, columns):
    """Only those that are named: the star has none of them (KLIP-14)."""
    plan = pull(sql + ";")
    assert [c.name for c in plan.schema] == columns
    assert [s.column.name for s in plan.project.selected] == columns


def test_header_columns_of_an_answer_are_columns_like_others(pull):
    """ksqlDB's Java client knows no other, and takes the schema's order for that of the rows."""
    alone = pull("SELECT * FROM WITH_HEADERS;")
    assert str(alone.schema) == "`ID` INTEGER KEY, `A` INTEGER, `H` BYTES"
    beside = pull("SELECT ROWTIME, * FROM WITH_HEADERS;")
    assert str(beside.schema) == "`ROWTIME` BIGINT, `ID` INTEGER KEY, `A` INTEGER, `H` BYTES"
    for plan in (alone, beside):
        assert plan.schema == plan.project.schema


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM S JOIN T ON S.ID = T.ID", "Pull queries don't support JOIN clauses."),
        ("SELECT COUNT(*) FROM S", "Pull queries don't support GROUP BY clauses."),
        ("SELECT *, N FROM BY_NAME", "Duplicate value columns found in schema: `N` BIGINT"),
        ("SELECT N AS ROWTIME FROM BY_NAME", "`ROWTIME` is a reserved column name."),
        ("SELECT PLACE AS P, PLACE->* FROM BY_PLACE", "PLACE->* has a field of that name."),
        ("SELECT * FROM PAIRS WHERE AMOUNT IN ('1') AND NAME = 'a'", "'1' can not be converted"),
        ("SELECT * FROM BY_NAME WHERE WINDOWSTART = 1", "WHERE column 'WINDOWSTART' cannot be"),
        (
            "SELECT * FROM HOURLY WHERE NAME='a' AND WINDOWSTART > 1 AND WINDOWSTART > 2",
            "Duplicate `WINDOWSTART` bounds on: GREATER_THAN",
        ),
    ],
)
def test_what_is_refused(pull, sql, message):
    with pytest.raises(StatementError) as refused:
        pull(sql + ";")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("", "Missing WHERE clause"),
        ("WHERE N = 1", "WHERE clause missing key column for disjunct: (N = 1)"),
        ("WHERE NAME <> 'a'", "must currently be '='"),
        ("WHERE NAME = 'a' AND NAME = 'b'", "cannot be combined with other comparisons"),
        ("WHERE NAME > 'a' OR NAME = 'b'", "Query requires table scan to be enabled"),
    ],
)
def test_what_needs_a_scan_is_refused_where_scans_are_off(pull, where, message):
    with pytest.raises(StatementError) as refused:
        pull(f"SELECT * FROM BY_NAME {where};", ksql_query_pull_table_scan_enabled="false")
    assert message in str(refused.value)
