"""A function has one place: its declaration."""

from __future__ import annotations

import pytest

from headrace.cli.reference import PAGES
from headrace.functions.declare.declaration import (
    Category,
    FunctionKind,
    call,
    overload,
    scalar,
)
from headrace.functions.registry import REGISTRY
from headrace.model.errors import StatementError
from headrace.model.types import DOUBLE
from headrace.plan.explain import explain
from headrace.sql.keywords import KEYWORDS
from naming import modules_that_write
from partial_engine import ask
from plan_catalog import Catalog

# How ksqlDB's messages spell old functions: a new one is not there.
SPELLING = "functions/registry.py"
# What operators and clauses stand for, and the words of other things.
ASKED = {
    "CONCAT": {"sql/expression_parser.py"},  # ||
    "CONVERT_TZ": {"plan/language/binder.py"},  # AT TIME ZONE
    "COUNT": {"sql/tree/expressions.py"},  # COUNT(*)
    "STRINGTOTIMESTAMP": {"spark/lower/stateless.py"},  # the property TIMESTAMP_FORMAT
    "FILTER": {"plan/nodes.py"},  # a step of EXPLAIN
}
FUNCTIONS = [f for f in REGISTRY.all() if f.path == "internal" and f.name not in KEYWORDS]
HOMES = {
    FunctionKind.SCALAR: "functions/scalar/",
    FunctionKind.AGGREGATE: "functions/aggregates/",
    FunctionKind.TABLE: "functions/table",
}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_a_function_is_named_by_its_declaration(function) -> None:
    named = modules_that_write()[function.name] - ASKED.get(function.name, set()) - {SPELLING}
    assert len(named) == 1
    assert named.pop().startswith(HOMES[function.kind])


def _halved(value):
    return value / 2


HALVE = scalar(
    "HALVE",
    "Half of a number.",
    overload("(amount DOUBLE) -> DOUBLE", _halved),
    category=Category.MATHEMATICAL,
    examples=(call(5.0, gives=2.5),),
)


@pytest.fixture
def halve():
    REGISTRY.add(HALVE)
    yield
    REGISTRY.remove("HALVE")


def test_a_new_scalar_function_needs_nothing_but_its_declaration(halve) -> None:
    listed = ask("SHOW FUNCTIONS;")["functions"]
    assert {"name": "HALVE", "type": "SCALAR", "category": "MATHEMATICAL"} in listed
    described = ask("DESCRIBE FUNCTION halve;")
    assert described["description"] == "Half of a number."
    assert [f["returnType"] for f in described["functions"]] == ["DOUBLE"]

    page = PAGES["functions"]()
    assert "### HALVE\n\nHalf of a number. (scalar)\n\n- `HALVE(amount DOUBLE) -> DOUBLE`" in page
    assert "HALVE(5.0)  -- 2.5" in page

    catalog = Catalog()
    catalog.run(
        "CREATE STREAM S (ID INT KEY, PRICE DOUBLE) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"
    )
    node = catalog.plan("CREATE STREAM O AS SELECT ID, halve(PRICE) AS H FROM S;").node
    assert node.schema.find("H").type == DOUBLE
    assert "HALVE(" in explain(node)
    with pytest.raises(StatementError, match=r"Valid alternatives are:\nHALVE\(DOUBLE amount\)"):
        catalog.plan("SELECT HALVE('a') FROM S EMIT CHANGES;")


def test_without_its_declaration_nobody_knows_it() -> None:
    assert "HALVE" not in PAGES["functions"]()
    with pytest.raises(StatementError, match="Can't find any functions with the name 'HALVE'"):
        ask("DESCRIBE FUNCTION HALVE;")
