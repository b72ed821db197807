"""Which of Spark's pools a query is in; Spark is pretended."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from headrace.spark.internals.scheduler_pools import pool_of


class Context:
    """Spark's context, with pools, and the one that this thread starts jobs in."""

    def __init__(self, *pools):
        self._jsc = self
        self._pools = pools
        self.here = None

    def sc(self):
        return self

    def getPoolForName(self, name):
        return SimpleNamespace(isDefined=lambda: name in self._pools)

    def setLocalProperty(self, name, value):
        assert name == "spark.scheduler.pool"
        self.here = value


@pytest.mark.parametrize(
    ("pools", "pool"),
    [(("default", "queries"), "queries"), (("default", "queries", "CSAS_A_1"), "CSAS_A_1")],
)
def test_queries_share_a_pool_unless_one_is_named_after_them(pools, pool):
    context = Context(*pools)
    with pool_of(context, "CSAS_A_1"):
        assert context.here == pool
    assert context.here == "default"


def test_a_query_that_cannot_start_leaves_its_pool():
    context = Context()
    with pytest.raises(ValueError, match="no"), pool_of(context, "CSAS_A_1"):
        raise ValueError("no")
    assert context.here == "default"
