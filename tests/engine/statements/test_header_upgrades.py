"""CREATE OR REPLACE and ALTER around header columns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.engine.statements.request_session import Session
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.settings import Settings
from headrace.testing.rehearsal import PretendedTopics, Rehearsal

TRACED = "K STRING KEY, A INT, T BYTES HEADER('t')"
JSON = "WITH (kafka_topic='t', value_format='JSON')"


@pytest.fixture
def server():
    made = Rehearsal(PretendedTopics(), Settings())
    made.run(f"CREATE STREAM S ({TRACED}) {JSON};")
    return made


def columns(server, source="S"):
    return str(server.catalog.source(source).schema)


def test_a_source_with_header_columns_may_gain_columns(server):
    server.run(
        f"CREATE OR REPLACE STREAM S (K STRING KEY, A INT, B INT, T BYTES HEADER('t')) {JSON};"
    )
    assert columns(server) == "`K` STRING KEY, `A` INTEGER, `B` INTEGER, `T` BYTES HEADER('t')"
    server.run("ALTER STREAM S ADD COLUMN C INT;")
    assert "`C` INTEGER" in columns(server)


def test_a_source_may_gain_header_columns(server):
    server.run(f"CREATE OR REPLACE STREAM S ({TRACED}, U BYTES HEADER('u')) {JSON};")
    assert "`U` BYTES HEADER('u')" in columns(server)


@pytest.mark.parametrize(
    "changed",
    [
        "K STRING KEY, A INT",
        "K STRING KEY, A INT, T BYTES",
        "K STRING KEY, A INT, T BYTES HEADER('other')",
        "K STRING KEY, A INT, T ARRAY<STRUCT<key STRING, value BYTES>> HEADERS",
    ],
)
def test_a_header_column_stays_what_it_is(server, changed):
    with pytest.raises(StatementError) as refused:
        server.run(f"CREATE OR REPLACE STREAM S ({changed}) {JSON};")
    assert "columns are changed, missing or reordered: [`T` BYTES HEADER('t')]" in str(
        refused.value
    )


def test_a_query_may_be_replaced_by_one_that_selects_a_header(server):
    server.run("CREATE STREAM C AS SELECT K, A FROM S;")
    server.run("CREATE OR REPLACE STREAM C AS SELECT K, A, T FROM S;")
    assert columns(server, "C") == "`K` STRING KEY, `A` INTEGER, `T` BYTES"


def test_a_header_column_is_an_ordinary_column_of_what_is_made_from_it(server):
    server.run("CREATE STREAM C AS SELECT * FROM S; INSERT INTO C SELECT * FROM S;")
    assert columns(server, "C") == "`K` STRING KEY, `A` INTEGER, `T` BYTES"


# ------------------------------------------------------------------------ the server's flag


@pytest.fixture
def without(server):
    """The same server, started again with the flag off."""
    return replace(server, settings=Settings({"ksql.headers.enabled": False}))


def test_with_the_flag_off_a_source_may_be_replaced_with_the_header_columns_it_has(without):
    without.run(f"CREATE OR REPLACE STREAM S ({TRACED}, B INT) {JSON};")
    assert "`T` BYTES HEADER('t'), `B` INTEGER" in columns(without)
    without.run(f"CREATE STREAM IF NOT EXISTS S ({TRACED}) {JSON};")
    without.run("ALTER STREAM S ADD COLUMN C INT; CREATE STREAM C AS SELECT * FROM S;")
    without.run("INSERT INTO S SELECT K, A, B, C FROM C;")


@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE OR REPLACE STREAM S ({TRACED}, U BYTES HEADER('u')) {JSON};",
        f"CREATE OR REPLACE STREAM OTHER ({TRACED}) {JSON};",
        f"CREATE STREAM OTHER ({TRACED}) {JSON};",
        f"CREATE STREAM IF NOT EXISTS OTHER ({TRACED}) {JSON};",
        f"DROP STREAM S; CREATE STREAM S ({TRACED}) {JSON};",
    ],
)
def test_with_the_flag_off_there_are_no_new_header_columns(without, statement):
    with pytest.raises(StatementError, match="schema with headers columns is disabled"):
        without.run(statement)


@pytest.mark.parametrize(
    "statement",
    ["SET 'ksql.headers.enabled'='true';", "ALTER SYSTEM 'ksql.headers.enabled'='true';"],
)
def test_clients_cannot_switch_the_flag(without, statement):
    with pytest.raises(StatementError) as refused:
        without.run(statement)
    assert "Cannot override property 'ksql.headers.enabled'. It is the server's" in str(
        refused.value
    )
    with pytest.raises(HeadraceError, match="Cannot override property"):
        Session({"ksql.headers.enabled": "true"}).check(Settings())
