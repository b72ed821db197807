"""An aggregate has one place: its declaration, with the steps that it consists of."""

from __future__ import annotations

import pytest

from headrace.cli.reference import PAGES
from headrace.functions.aggregates.steps import ShowsState
from headrace.functions.declare.declaration import CallContext, aggregate, aggregate_overload, call
from headrace.functions.registry import REGISTRY
from headrace.model.errors import StatementError
from headrace.model.types import BIGINT
from headrace.plan.explain import explain
from headrace.spark.state.kernels.aggregate import StreamAggregate
from headrace.spark.state.kernels.kernel import Output, Store
from headrace.spark.state.kernels.steps import Call
from partial_engine import ask
from plan_catalog import Catalog

SOURCES = """
    CREATE STREAM S (ID INT KEY, N BIGINT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='{0}');
    CREATE TABLE T (ID INT PRIMARY KEY, N BIGINT, G INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='{0}');
"""


class Product(ShowsState):
    def initialize(self) -> int:
        return 1

    def add(self, state: int, value: int | None) -> int:
        return state if value is None else state * value

    def merge(self, left: int, right: int) -> int:
        return left * right


def product(**more):
    return aggregate(
        "PRODUCT",
        "Multiplies the values of a column.",
        aggregate_overload("(val1 BIGINT) -> BIGINT", Product),
        examples=(call([2, None, 3], gives=6),),
        **more,
    )


@pytest.fixture
def declare():
    def declare(function):
        if REGISTRY.kind(function.name) is not None:
            REGISTRY.remove(function.name)
        REGISTRY.add(function)

    yield declare
    REGISTRY.remove("PRODUCT")


def planned(sql: str, value_format: str = "JSON"):
    catalog = Catalog()
    catalog.run(SOURCES.format(value_format))
    return catalog.plan(sql).node


def test_a_new_aggregate_needs_nothing_but_its_declaration(declare) -> None:
    declare(product())
    listed = ask("SHOW FUNCTIONS;")["functions"]
    assert {"name": "PRODUCT", "type": "AGGREGATE", "category": "AGGREGATE"} in listed
    assert "PRODUCT(2/NULL/3)  -- 6" in PAGES["functions"]()

    node = planned("CREATE TABLE P AS SELECT ID, PRODUCT(N) AS P FROM S GROUP BY ID;")
    assert node.schema.find("P").type == BIGINT
    assert "AGGREGATE" in explain(node)
    with pytest.raises(StatementError, match=r"Valid alternatives are:\nproduct\(BIGINT val1\)"):
        planned("SELECT ID, PRODUCT('a') FROM S GROUP BY ID EMIT CHANGES;")


def test_what_it_can_do_is_said_where_it_is_declared(declare) -> None:
    """Whether rows can be taken back, and whether formats without structures hold its state."""
    by_another = "CREATE TABLE P AS SELECT G, PRODUCT(N) AS P FROM T GROUP BY G;"
    declare(product())
    with pytest.raises(StatementError, match="PRODUCT"):
        planned(by_another)  # it has no `undo`
    delimited = "CREATE TABLE P AS SELECT ID, PRODUCT(N) AS P FROM S GROUP BY ID;"
    with pytest.raises(
        StatementError, match="has an intermediate type that the value format can not handle"
    ):
        planned(delimited, "DELIMITED")
    declare(product(simple_state=True))
    planned(delimited, "DELIMITED")


def test_the_kernel_runs_its_steps() -> None:
    (overload,) = product().overloads
    steps = overload.step(CallContext((BIGINT,), BIGINT))
    spec = StreamAggregate((Call("PRODUCT", steps, (0,)),))
    out = Output()
    spec.open(Store(spec.tables)).run([(i, 0, "k", (n,), i, i) for i, n in enumerate((2, 5))], out)
    assert [row[1:3] for row in out.rows][-1] == ("k", (10,))
