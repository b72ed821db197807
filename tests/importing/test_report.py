"""The report for people."""

from __future__ import annotations

import pytest

from headrace.importing.assessment import assess
from headrace.importing.recorded import History, Recorded
from headrace.importing.report import report
from headrace.model.errors import StatementError
from headrace.model.settings import check_editable

STATEMENTS = (
    "CREATE STREAM s (k INT KEY, a INT) WITH (kafka_topic='s', value_format='JSON');",
    "CREATE TABLE t AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;",
    "CREATE STREAM j AS SELECT k, JAVA_ONLY(a) AS a FROM s;",
    "CREATE SINK CONNECTOR c WITH ('connection.password'='hunter2');",
    "SELECT * FROM s EMIT CHANGES;",
)


def told(**session: object) -> str:
    named = {k.replace("__", "."): v for k, v in session.items()}
    entries = (Recorded(t, f"a.sql:{i}", session=named) for i, t in enumerate(STATEMENTS, 1))
    return "\n".join(report(assess(History("a.sql", tuple(entries))), texts=True))


def test_all_of_it() -> None:
    with pytest.raises(StatementError) as unknown:
        check_editable("ksql.no.such")
    assert (
        told(ksql__no__such=1).replace(str(unknown.value), "no such setting")
        == """\
Moves as it is (1)
  stream S   [a.sql:1]
    | CREATE STREAM s (k INT KEY, a INT) WITH (kafka_topic='s', value_format='JSON');

Moves, with differences (1)
  table T   [a.sql:2]
    - Its state is built anew from 's'.
    | CREATE TABLE t AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;

Cannot move (1)
  stream J   [a.sql:3]
    - It calls JAVA_ONLY, which Headrace does not have: a Java function of your ksqlDB. \
Write it in Python (see below), put it into the server's ksql.extension.dir, and give that \
directory here as --extensions.

Left out (2)
  a.sql:4: CREATE SINK CONNECTOR c …: connectors run in Kafka Connect, whoever asked for them, \
and stay there
  a.sql:5: SELECT * FROM s EMIT CHANGES: it only asks

Settings left out (1)
  ksql.no.such: no such setting

To be written in Python (1)
  JAVA_ONLY
    from headrace.functions import udf

    # The types are guessed from a call. If it gives many rows it is a udtf, if it is an
    # aggregate a udaf.
    @udf("(a INTEGER) -> STRING")
    def java_only(a):
        raise NotImplementedError  # what the Java function did

a.sql: 1 as it is, 1 with differences, 1 cannot move"""
    )


def test_no_secrets() -> None:
    assert "hunter2" not in told()


def test_nothing() -> None:
    assert list(report(assess(History("empty.sql", ())))) == ["empty.sql: nothing to import"]
