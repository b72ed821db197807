"""A plan node has two places: its class, which says what planning knows of it, and its lowering."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from headrace.model.errors import StatementError
from headrace.plan import nodes as n
from headrace.plan.determinism import check_repeatable
from headrace.plan.explain import explain
from headrace.plan.prune import prune
from headrace.plan.replace import check_query_upgrade, starts_anew
from headrace.spark.lower import lowering
from naming import concrete, modules_that_name

# The ends of a plan are where the engine takes hold of it.
ENDS = {n.ReadSource, n.Write, n.Answer}
# Modules that ask for one kind of node, besides the one that makes it and those that lower it.
ASKED = {
    n.Filter: {"plan/replace.py", "engine/tables/pull.py"},
    n.Project: {"engine/tables/pull.py"},
}


@pytest.mark.parametrize("kind", sorted(concrete(n.Node) - ENDS, key=lambda k: k.__name__))
def test_a_node_is_named_where_it_is_made_and_where_it_is_lowered(kind: type[n.Node]) -> None:
    named = modules_that_name("headrace.plan.nodes")[kind.__name__] - ASKED.get(kind, set())
    made = {m for m in named if m.startswith(("plan/clauses/", "plan/query.py", "plan/pull.py"))}
    assert made
    assert {m for m in named - made if not m.startswith("spark/lower/")} == set()


@pytest.mark.parametrize("walk", ["explain", "prune", "determinism"])
def test_those_who_walk_a_plan_name_no_node(walk: str) -> None:
    named = modules_that_name("headrace.plan.nodes")
    kinds = {kind.__name__ for kind in concrete(n.Node)}
    assert {kind for kind in kinds if f"plan/{walk}.py" in named[kind]} == set()


def test_a_new_node_needs_its_class_and_its_lowering(catalog, monkeypatch) -> None:
    """All that planning does with a node works with one that only this test knows."""
    _use_a_new_node(catalog, monkeypatch)
    monkeypatch.undo()
    gc.collect()  # other tests look at every class there is


def _use_a_new_node(catalog, monkeypatch) -> None:
    @dataclass(frozen=True)
    class Deduplicate(n.Node):
        """The first row of each value of a column."""

        input: n.Node
        column: str

        title = "DEDUPLICATE"
        keeps_state = True

        def details(self) -> Sequence[str]:
            return [f"By: {self.column}"]

        def requires(self, needed: n.Names) -> Sequence[n.Names]:
            return [needed | {self.column}]

        def narrowed(self, below: Sequence[n.Node], needed: n.Names) -> n.Schema:
            return below[0].schema

        def fixed(self):
            yield n.Fixed("StreamDeduplicate", {"column": self.column})

    def over(sql: str, column: str) -> n.Node:
        """The plan of a statement with the new step above its source."""
        write = catalog.plan(f"CREATE OR REPLACE STREAM O AS {sql};").node
        read = write.input.input
        everything = catalog.plan("SELECT * FROM S EMIT CHANGES;").node.input.input
        step = Deduplicate(everything.schema, read.kind, everything, column)
        return replace(write, input=replace(write.input, input=step))

    plan = prune(over("SELECT ID, PRICE FROM S", "NAME"))
    step = plan.input.input
    assert [c.name for c in step.schema] == ["ID", "NAME", "PRICE"]
    assert "> [ DEDUPLICATE ] | Schema: " in explain(plan)
    assert "By: NAME | Logger: CSAS_O_1.Deduplicate" in explain(plan, "CSAS_O_1")
    with pytest.raises(StatementError, match="StreamDeduplicate must have matching column"):
        check_query_upgrade(plan, over("SELECT ID, PRICE FROM S", "AMOUNT"))
    assert not starts_anew(plan, plan)

    # The second place: how it becomes a program, which whoever lowers what is above it finds.
    monkeypatch.setattr(lowering, "_LOWERINGS", dict(lowering._LOWERINGS))
    lowering.lowers(Deduplicate)(lambda node, context: ("first of each", node.column, context))
    assert lowering.lower_node(step, "context") == ("first of each", "NAME", "context")

    varying = over("SELECT ID, PRICE, UUID() AS U FROM S", "NAME")
    check_repeatable(varying)  # above what keeps state, calls may vary
