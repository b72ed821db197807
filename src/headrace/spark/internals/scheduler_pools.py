"""Whose turn it is when there is more to do than there are cores.

Persistent queries share one of Spark's pools, in which the oldest micro-batch goes first: they take
turns, and a turn is bounded by how many records a micro-batch may have. In pools of their own they
would not: among pools that wait Spark takes the first by name, every time, and where two cores
have twenty queries those whose names come late do nothing at all.

Push and pull queries share another pool, in which who has the least running goes first: one long
answer does not hold up the short ones. Between the two pools it is fair.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

from headrace.spark.internals.java_objects import java_context

ANSWERS = "default"  # Spark's name for the pool of what has none
QUERIES = "queries"
_POOL = "spark.scheduler.pool"

ALLOCATIONS = f"""\
<allocations>
  <pool name="{QUERIES}"><schedulingMode>FIFO</schedulingMode></pool>
  <pool name="{ANSWERS}"><schedulingMode>FAIR</schedulingMode></pool>
</allocations>
"""


@contextmanager
def pool_of(context: SparkContext, query: str) -> Iterator[None]:
    """What starts inside runs in the query's pool.

    That is one of its own, if the user's allocations have one that is named after it.
    """
    own = java_context(context).sc().getPoolForName(query).isDefined()
    context.setLocalProperty(_POOL, query if own else QUERIES)
    try:
        yield
    finally:
        context.setLocalProperty(_POOL, ANSWERS)
