from __future__ import annotations

import pytest

from headrace.model.errors import StatementError
from headrace.plan import nodes
from headrace.plan.language.expressions import ColumnValue


@pytest.fixture
def joined(catalog):
    catalog.run(
        """
        CREATE STREAM R (ID BIGINT KEY, NOTE STRING) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='JSON');
        CREATE TABLE U (ID BIGINT PRIMARY KEY, WORD STRING)
          WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON');
        """
    )
    return catalog


def test_star_prefixes_columns_and_the_left_column_is_the_key(joined):
    planned = joined.plan("CREATE STREAM O AS SELECT * FROM R JOIN T ON R.ID = T.ID;")
    assert str(planned.schema) == (
        "`R_ID` BIGINT KEY, `R_NOTE` STRING, `T_ID` BIGINT, `T_TITLE` STRING, `T_FK` BIGINT"
    )


def test_only_clashing_names_get_a_prefix(joined):
    planned = joined.plan("CREATE STREAM O AS SELECT R.ID, NOTE, TITLE FROM R JOIN T ON R.ID=T.ID;")
    assert str(planned.schema) == "`R_ID` BIGINT KEY, `NOTE` STRING, `TITLE` STRING"


def test_the_right_column_can_be_the_key(joined):
    planned = joined.plan("CREATE STREAM O AS SELECT T.ID, NOTE FROM R JOIN T ON R.ID = T.ID;")
    (key, _) = planned.node.input.selected
    join = planned.node.input.input
    assert key.column.name == "T_ID"
    assert key.expression == ColumnValue(join.key.type, join.key.name)


def test_a_full_join_has_a_synthetic_key(joined):
    planned = joined.plan("CREATE TABLE O AS SELECT * FROM T FULL OUTER JOIN U ON T.ID = U.ID;")
    assert planned.schema.columns[0].name == "ROWKEY"


def test_a_joined_row_carries_only_what_is_read(joined):
    planned = joined.plan(
        "CREATE STREAM O AS SELECT R.ID, R.ROWTIME AS RT FROM R LEFT JOIN T ON R.ID = T.ID;"
    )
    left, right = nodes.sources(planned.node)
    assert [c.name for c in left.schema] == ["R_ID", "R_ROWTIME"]
    assert [c.name for c in right.schema] == ["T_ID"]


def test_a_table_joined_on_another_column_is_a_foreign_key_join(joined):
    planned = joined.plan("CREATE TABLE O AS SELECT T.ID, TITLE, WORD FROM T JOIN U ON FK = U.ID;")
    assert isinstance(planned.node.input.input, nodes.ForeignKeyJoin)
    assert str(planned.schema) == "`T_ID` BIGINT KEY, `TITLE` STRING, `WORD` STRING"


def test_n_way_joins_on_the_same_value_use_the_key_of_what_was_joined_before(joined):
    planned = joined.plan(
        "CREATE STREAM O AS SELECT R.ID, TITLE, WORD FROM R "
        "JOIN T ON R.ID = T.ID JOIN U ON R.ID = U.ID;"
    )
    outer = planned.node.input.input
    assert isinstance(outer.left, nodes.StreamTableJoin)
    assert outer.left_key == ColumnValue(outer.left.key.type, outer.left.key.name)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM S JOIN R ON S.ID = R.ID", "must have a WITHIN clause"),
        ("SELECT * FROM S JOIN T WITHIN 1 HOUR ON S.ID = T.ID", "Please drop the window"),
        ("SELECT * FROM T JOIN S ON S.ID = T.ID", "table-stream joins are not supported"),
        ("SELECT * FROM S JOIN T ON S.ID = T.FK", "require to join on the table's primary key"),
        ("SELECT * FROM S JOIN T ON S.ID = 1", "Each side of the join comparision must contain"),
        ("SELECT * FROM S JOIN T ON S.ID > T.ID", "Only equality join criteria is supported."),
        ("SELECT * FROM S JOIN S ON S.ID = S.ID", "self joins are not yet supported."),
        ("SELECT ID FROM S JOIN T ON S.ID = T.ID", "Column 'ID' is ambiguous. Could be S.ID or T."),
        (
            "SELECT NAME FROM S JOIN T ON S.ID = T.ID",
            "must include the join expressions S.ID or T.",
        ),
        ("SELECT * FROM T JOIN U ON T.TITLE = U.ID", "types don't match. Got T.TITLE{STRING}"),
    ],
)
def test_what_is_refused(joined, sql, message):
    with pytest.raises(StatementError) as refused:
        joined.run(f"CREATE STREAM O AS {sql};")
    assert message in str(refused.value)


def test_sources_with_different_partitions_do_not_join(joined):
    joined.topics.update(s=2, t=3)
    with pytest.raises(StatementError, match="`S` partitions = 2; `T` partitions = 3"):
        joined.run("CREATE STREAM O AS SELECT * FROM S JOIN T ON S.ID = T.ID;")
