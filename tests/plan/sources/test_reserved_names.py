"""Names of pseudocolumns are reserved (KLIP-14), whichever way a column comes by its name."""

from __future__ import annotations

import pytest

from headrace.model.errors import StatementError
from headrace.model.schema import RESERVED_COLUMNS
from headrace.plan.sources.ddl import plan_alter_source
from headrace.sql import ast
from headrace.sql.parser import parse_statement
from plan_catalog import Catalog

JSON = "KAFKA_TOPIC='x', VALUE_FORMAT='JSON'"


@pytest.fixture
def named(catalog):
    """Sources whose structs have fields of reserved names, and one with such names quoted."""
    fields = ", ".join(f"{name} INT" for name in sorted(RESERVED_COLUMNS))
    catalog.run(
        f"""
        CREATE STREAM ALL_OF_THEM (K INT KEY, V STRUCT<A INT, {fields}>) WITH ({JSON});
        CREATE STREAM X (K INT KEY, V STRUCT<A INT, W STRUCT<ROWTIME INT>>) WITH ({JSON});
        CREATE STREAM QUOTED (K INT KEY, `rowtime` INT, `Windowstart` INT,
          V STRUCT<`rowtime` INT, `rowOffset` INT>) WITH ({JSON});
        """
    )
    return catalog


def refused(catalog: Catalog, sql: str) -> str:
    with pytest.raises(StatementError) as caught:
        catalog.run(sql)
    return caught.value.message


@pytest.mark.parametrize(
    "query",
    [
        "SELECT K, V->* FROM ALL_OF_THEM",
        "SELECT *, V->* FROM ALL_OF_THEM",
        "SELECT K, V->W->* FROM X",
        "SELECT X.K, X.V->W->* FROM X JOIN QUOTED Q WITHIN 1 SECOND ON X.K = Q.K",
    ],
)
@pytest.mark.parametrize("statement", ["CREATE STREAM Y AS {};", "{} EMIT CHANGES;"])
def test_fields_of_a_struct_do_not_bring_in_a_reserved_name(named, query, statement):
    told = refused(named, statement.format(query))
    assert "is a reserved column name, and" in told and "->* has a field of that name." in told
    assert "Y" not in named.known


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT K, V->ROWTIME FROM ALL_OF_THEM", "You cannot use it as an alias"),
        ("SELECT K, V->W->ROWTIME FROM X", "You cannot use it as an alias"),
        ("SELECT K, V AS ROWOFFSET FROM X", "You cannot use it as an alias"),
        ("SELECT K, `rowtime` AS ROWTIME FROM QUOTED", "You cannot use it as an alias"),
        ("SELECT K, X.ROWTIME AS ROWTIME FROM X", "Reserved column name in select: `ROWTIME`."),
        ("SELECT ROWTIME, * FROM X", "Reserved column name in select: `ROWTIME`."),
        ("SELECT * FROM X PARTITION BY ROWTIME", "Reserved column name in select: `ROWTIME`."),
        ("SELECT * FROM X PARTITION BY ROWOFFSET", "Reserved column name in select: `ROWOFFSET`."),
    ],
)
def test_persistent_queries_have_no_column_of_a_reserved_name(named, sql, words):
    assert words in refused(named, f"CREATE STREAM Y AS {sql};")


def test_the_new_key_of_a_partitioned_stream_gets_another_name_than_a_reserved_one(named):
    planned = named.plan("CREATE STREAM Y AS SELECT * FROM ALL_OF_THEM PARTITION BY V->ROWTIME;")
    assert not {c.name for c in planned.schema} & RESERVED_COLUMNS


@pytest.mark.parametrize("name", sorted(RESERVED_COLUMNS))
def test_sources_declare_no_column_of_a_reserved_name(named, name):
    words = f"'{name}' is a reserved column name. You cannot use it as a name for a column."
    for columns in (f"{name} INT", f"A INT, {name.lower()} BYTES HEADER('h')", f"`{name}` INT KEY"):
        assert words in refused(named, f"CREATE STREAM Y ({columns}, B INT) WITH ({JSON});")
    statement = parse_statement(f"ALTER STREAM X ADD COLUMN {name} INT;")
    assert isinstance(statement, ast.AlterSource)
    with pytest.raises(StatementError, match=words):
        plan_alter_source(statement, named)


def test_a_quoted_name_is_reserved_only_if_it_is_written_as_the_reserved_one(named):
    """One rule for sources, aliases, expansions, ALTER and clauses."""

    def columns(sql):
        return [c.name for c in named.plan(sql).schema]

    assert columns("CREATE STREAM A1 AS SELECT * FROM QUOTED;") == [
        "K",
        "rowtime",
        "Windowstart",
        "V",
    ]
    assert columns("CREATE STREAM A2 AS SELECT K, V->* FROM QUOTED;") == [
        "K",
        "rowtime",
        "rowOffset",
    ]
    assert columns("CREATE STREAM A3 AS SELECT K, ROWTIME AS `rowtime` FROM X;") == ["K", "rowtime"]
    assert columns("CREATE STREAM A4 AS SELECT K, K + 1 AS `rowTime` FROM X;") == ["K", "rowTime"]
    assert columns("SELECT `rowtime`, rowtime FROM QUOTED EMIT CHANGES;") == ["rowtime", "ROWTIME"]
    alter = parse_statement("ALTER STREAM X ADD COLUMN `rowtime` INT;")
    assert isinstance(alter, ast.AlterSource)
    assert plan_alter_source(alter, named).schema.find("rowtime") is not None
    assert "`ROWTIME` is a reserved" in refused(named, "SELECT K AS `ROWTIME` FROM X EMIT CHANGES;")
    assert "'rowtime' cannot be resolved" in refused(named, "SELECT `rowtime` FROM X EMIT CHANGES;")
