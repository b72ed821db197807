"""Long and deep expressions are answered, by every kind of query, and soon."""

from __future__ import annotations

import time

import pytest

from scene import record

pytestmark = pytest.mark.heavy

DEPTH = 300
# By name: the expression, and what it is where N is 1 and T is 'a'.
DEEP = {
    "sums": ("N" + " + N" * DEPTH, DEPTH + 1),
    "conjunctions": ("N = 1" + " AND N = 1" * DEPTH, True),
    "disjunctions": ("N = 2" + " OR N = 2" * DEPTH, False),
    "texts": ("T" + " || T" * DEPTH, "a" * (DEPTH + 1)),
    "calls": ("ABS(" * DEPTH + "N" + ")" * DEPTH, 1),
    "cases": ("CASE WHEN N = 2 THEN 1 ELSE " * 100 + "N" + " END" * 100, 1),
    # Each had stood four times in the one around it: eight took a minute, and twelve for ever.
    "quotients": ("1e0" + " / N" * 60, 1.0),
    "remainders": ("5e-1" + " % N" * 60, 0.5),
}


@pytest.fixture(scope="module")
def deep(scene):
    scene.topic("deep")
    scene.sql(
        "CREATE STREAM DEEP (N INT, T STRING) WITH (KAFKA_TOPIC='deep', VALUE_FORMAT='JSON');"
    )
    scene.write("deep", record({"N": 1, "T": "a"}))
    return scene


@pytest.mark.parametrize("shape", DEEP)
def test_deep_expressions(deep, shape):
    expression, wanted = DEEP[shape]
    began = time.monotonic()
    assert deep.pull(f"SELECT {expression} AS X FROM DEEP;") == [(wanted,)]
    assert deep.push(f"SELECT {expression} AS X FROM DEEP EMIT CHANGES;", 1) == [(wanted,)]
    sink = f"DEEP_{shape.upper()}"
    with deep.query(f"CREATE STREAM {sink} AS SELECT N, {expression} AS X FROM DEEP;"):
        assert deep.values(sink, 1) == [{"N": 1, "X": wanted}]
    assert time.monotonic() - began < 60
