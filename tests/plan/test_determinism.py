"""Calls that answer differently each time are made from the record, below steps with state."""

from __future__ import annotations

import pytest

from headrace.functions.declare.declaration import Function
from headrace.functions.registry import REGISTRY
from headrace.model.errors import StatementError
from headrace.plan import nodes as n
from headrace.plan.determinism import check_repeatable, repeatable
from headrace.plan.explain import explain
from headrace.plan.language import expressions as e

# Of the time of day: Spark keeps the batch's, and takes it again.
OF_THE_BATCH = {"UNIX_DATE", "UNIX_TIMESTAMP"}


def calls(value: object) -> list[e.Expression]:
    """All calls in a node, and those made from the record."""
    if isinstance(value, e.Call | e.OfRecord):
        return [value, *(c for child in e.children(value) for c in calls(child))]
    if isinstance(value, tuple):
        return [c for item in value for c in calls(item)]
    fields = getattr(value, "__dataclass_fields__", ())
    return [c for field in fields for c in calls(getattr(value, field))]


def of_record(catalog, sql: str) -> list[e.OfRecord]:
    node = catalog.plan(sql).node
    assert isinstance(node, n.Write)
    made = repeatable(node, "q")
    assert explain(made) == explain(node)
    check_repeatable(node)
    return [c for c in calls(made) if isinstance(c, e.OfRecord)]


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("CREATE TABLE O AS SELECT NAME, COLLECT_LIST(UUID()) U FROM S GROUP BY NAME;", 1),
        ("CREATE TABLE O AS SELECT NAME, SUM(RANDOM()) R, MAX(RANDOM()) M FROM S "
         "WHERE RANDOM() < 0.5 GROUP BY NAME;", 3),
        ("CREATE TABLE O AS SELECT UUID() U, COUNT(*) C FROM S GROUP BY UUID();", 1),
        ("CREATE TABLE O AS SELECT NAME, COUNT(*) C FROM S WINDOW TUMBLING (SIZE 1 HOUR) "
         "WHERE UUID() <> 'a' GROUP BY NAME EMIT FINAL;", 1),
        ("CREATE TABLE O AS SELECT * FROM T WHERE RANDOM() < 0.5;", 1),
        # Above the step, or without one, nothing has to be the same.
        ("CREATE STREAM O AS SELECT ID, UUID() U FROM S WHERE RANDOM() < 0.5;", 0),
        ("CREATE STREAM O AS SELECT S.ID, UUID() U FROM S LEFT JOIN T ON S.ID = T.ID;", 0),
        ("CREATE TABLE O AS SELECT NAME, UUID(TO_BYTES(NAME, 'utf8')) U, COUNT(*) C FROM S "
         "GROUP BY NAME;", 0),
    ],
)  # fmt: skip
def test_what_is_made_from_the_record(catalog, sql, count):
    found = of_record(catalog, sql)
    assert len(found) == count
    assert len({call.place for call in found}) == count
    assert all(call.place.startswith("q/") for call in found)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE O AS SELECT S.ID, COLLECT_LIST(UUID()) U FROM S LEFT JOIN T ON S.ID = T.ID "
        "GROUP BY S.ID;",
        "CREATE TABLE O AS SELECT NAME, COLLECT_LIST(TRANSFORM(ARRAY[1], X => X + RANDOM())[1]) R "
        "FROM S GROUP BY NAME;",
    ],
)
def test_of_one_record_there_cannot_be_several_values(catalog, sql):
    node = catalog.plan(sql).node
    assert repeatable(node, "q") is node
    with pytest.raises(StatementError, match=r"(UUID|RANDOM)\(\) cannot be used here"):
        check_repeatable(node)


def varying() -> list[Function]:
    return [f for f in REGISTRY.all() if any(example.varies for example in f.examples)]


@pytest.mark.parametrize("function", varying(), ids=lambda f: f.name)
def test_every_function_that_varies_can_be_made_from_the_record(function):
    made = [o for o in function.overloads if o.of_record is not None]
    assert len(made) == (0 if function.name in OF_THE_BATCH else 1)
