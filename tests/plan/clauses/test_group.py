from __future__ import annotations

import pytest

from headrace.model.errors import StatementError
from headrace.model.sources import WindowType
from headrace.plan import nodes
from headrace.plan.language.expressions import ColumnValue


def steps(planned):
    node, found = planned.node, []
    while True:
        found.append(type(node).__name__)
        below = list(nodes.inputs(node))
        if not below:
            return found
        node = below[0]


def test_the_steps_of_a_windowed_final_aggregation_with_having(catalog):
    planned = catalog.plan(
        "CREATE TABLE O AS SELECT NAME, SUM(AMOUNT) AS N, WINDOWSTART AS W FROM S "
        "WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY NAME HAVING COUNT(*) > 1 EMIT FINAL;"
    )
    assert steps(planned) == ["Write", "Project", "Filter", "Suppress", "Aggregate", "ReadSource"]
    assert planned.sink.window.type is WindowType.TUMBLING
    assert planned.sink.window.size_ms == 3_600_000


def test_grouping_expressions_are_key_columns_named_by_the_projection(catalog):
    planned = catalog.plan(
        "CREATE TABLE O WITH (KEY_FORMAT='JSON') AS "
        "SELECT PLACE->CITY AS C, AMOUNT % 2 AS ODD, COUNT(*) AS N FROM S "
        "GROUP BY PLACE->CITY, AMOUNT % 2;"
    )
    assert str(planned.schema) == "`C` STRING KEY, `ODD` INTEGER KEY, `N` BIGINT"


def test_the_same_aggregate_is_computed_once(catalog):
    planned = catalog.plan(
        "CREATE TABLE O AS SELECT NAME, COUNT(*) AS A, COUNT(*) * 2 AS B FROM S GROUP BY NAME;"
    )
    (aggregate,) = (planned.node.input.input,)
    assert len(aggregate.calls) == 1


def test_constant_arguments_are_kept_apart(catalog):
    planned = catalog.plan(
        "CREATE TABLE O AS SELECT NAME, TOPK(AMOUNT, 3) AS BEST FROM S GROUP BY NAME;"
    )
    (call,) = planned.node.input.input.calls
    assert [type(a) for a in call.args] == [ColumnValue]
    assert call.literals == (3,)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT NAME, AMOUNT, COUNT(*) FROM S GROUP BY NAME", "not part of GROUP BY: AMOUNT"),
        ("SELECT NAME, PLACE FROM S GROUP BY NAME", "GROUP BY requires aggregate functions"),
        ("SELECT NAME, SUM(COUNT(*)) FROM S GROUP BY NAME", "can not be nested: SUM(COUNT())"),
        ("SELECT COUNT(*) AS N FROM S GROUP BY NAME", "must include the grouping expression NAME"),
        ("SELECT COUNT(*) AS N FROM S", "does not support aggregate function [COUNT(ROWTIME)]"),
        ("SELECT NAME, COUNT(*) FROM S GROUP BY NAME, S.NAME", "Duplicate GROUP BY expression: S."),
        (
            "SELECT NAME, COUNT(*) FROM S GROUP BY NAME HAVING AMOUNT > 1",
            "Non-aggregate HAVING expression not part of GROUP BY: AMOUNT",
        ),
        ("SELECT NAME, COUNT(*) FROM S GROUP BY NAME EMIT FINAL", "EMIT FINAL is only supported"),
        ("SELECT * FROM S WINDOW TUMBLING (SIZE 1 HOUR)", "WINDOW clause requires a GROUP BY"),
        (
            "SELECT TITLE, MAX(FK) FROM T GROUP BY TITLE",
            "The aggregation function MAX cannot be applied to a table source",
        ),
        (
            "SELECT NAME, TOPK(AMOUNT, AMOUNT) FROM S GROUP BY NAME",
            "Parameter 2 passed to function TOPK must be a literal constant",
        ),
        (
            "SELECT NAME, COUNT(WINDOWSTART) FROM S WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY NAME",
            "Window bounds column WINDOWSTART can only be used in the SELECT clause",
        ),
        # What a query puts in the place of an expression has no name that a user knows.
        (
            "SELECT NAME, UCASE(SUM(AMOUNT) + 'a') FROM S GROUP BY NAME",
            "Error processing expression: (SUM(AMOUNT) + 'a'). Unsupported arithmetic types.",
        ),
        (
            "SELECT NAME, COUNT(*) FROM S GROUP BY NAME HAVING COUNT(*)",
            "Should evaluate to boolean but is COUNT(*) (BIGINT) instead.",
        ),
        (
            "SELECT UCASE(NAME) AS U, LCASE(UCASE(NAME))[1], COUNT(*) FROM S GROUP BY UCASE(NAME)",
            "Subscript expression (LCASE(UCASE(NAME))[1]) do not apply to STRING.",
        ),
    ],
)
def test_what_is_refused(catalog, sql, message):
    with pytest.raises(StatementError) as refused:
        catalog.run(f"CREATE TABLE O AS {sql};")
    assert message in str(refused.value)


@pytest.mark.parametrize("by", ["SUM(amount)", "SUM(amount) + 1", "ABS(SUM(amount))"])
def test_groups_are_not_made_of_aggregates(catalog, by: str):
    with pytest.raises(StatementError) as caught:
        catalog.run(f"CREATE TABLE c AS SELECT COUNT(*) FROM s GROUP BY {by};")
    assert caught.value.message == (
        "GROUP BY does not support aggregate functions: SUM is an aggregate function."
    )
