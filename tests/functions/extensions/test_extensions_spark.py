"""User functions in Spark: workers that never saw the directory run them, and nothing stops."""

from __future__ import annotations

import pytest

from headrace.functions.declare.declaration import CallContext
from headrace.functions.extensions import load_extensions
from headrace.functions.registry import REGISTRY
from headrace.model import types as t

pytestmark = pytest.mark.heavy

FILE = """
import functools
import os
from headrace.functions import udf, udtf
from ._shared import SUFFIX

@functools.cache
def model():
    return os.getpid(), object()

@udf
def shout(x: str) -> str:
    return x.upper() + SUFFIX

@udf
def inverse(x: int) -> float:
    return 1 / x

@udf
def answer() -> int:
    return 42

@udf("(x BIGINT) -> BIGINT", vectorized="arrow")
def twice(x):
    import pyarrow.compute as pc
    return pc.multiply(x, 2)

@udf("(x STRING) -> STRUCT<LENGTH INTEGER, LETTERS MAP<STRING, INTEGER>>")
def about(x):
    return {"LENGTH": len(x), "LETTERS": {c: x.count(c) for c in x}}

@udf
def process(x: int) -> str:
    return f"{model()[0]} {id(model()[1])}"

@udtf
def words(x: str) -> list[str]:
    return x.split()
"""


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    directory = tmp_path_factory.mktemp("ext")
    (directory / "mine.py").write_text(FILE)
    (directory / "_shared.py").write_text("SUFFIX = '!'\n")
    registry = REGISTRY.copy()
    assert load_extensions(directory, registry) == []
    for file in directory.iterdir():
        file.unlink()  # executors do not have the directory
    return registry


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    from headrace.spark.runtime.session import start_session

    session = start_session([], {}, tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


def call(registry, name, types, columns):
    found = registry.resolve(name, types)
    finished, returns = found.finish({})
    return found.overload.spark(columns, CallContext(finished, returns))


def test_functions_run_in_workers(spark, registry):
    frame = spark.createDataFrame([("ab c", 2), (None, 0), ("x", None)], "s string, n bigint")
    s, n = frame["s"], frame["n"]
    calls = {
        "shout": call(registry, "SHOUT", (t.STRING,), [s]),
        "inverse": call(registry, "INVERSE", (t.BIGINT,), [n]),
        "answer": call(registry, "ANSWER", (), []),
        "twice": call(registry, "TWICE", (t.BIGINT,), [n]),
        "about": call(registry, "ABOUT", (t.STRING,), [s]),
        "words": call(registry, "WORDS", (t.STRING,), [s]),
    }
    columns = [
        c for name, f in calls.items() for c in (f.value.alias(name), f.error.alias(f"{name}_e"))
    ]
    first, second, third = frame.select(*columns).collect()
    assert [r["shout"] for r in (first, second, third)] == ["AB C!", None, "X!"]
    assert [r["inverse"] for r in (first, second, third)] == [0.5, None, None]
    assert second["inverse_e"] == "ZeroDivisionError: division by zero"
    assert first["inverse_e"] is None and third["inverse_e"] is None
    assert first["answer"] == 42
    assert [r["twice"] for r in (first, second, third)] == [4, 0, None]
    assert first["about"].asDict() == {"LENGTH": 4, "LETTERS": {"a": 1, "b": 1, " ": 1, "c": 1}}
    assert [r["words"] for r in (first, second, third)] == [["ab", "c"], [], ["x"]]


def test_a_function_is_called_once_for_value_and_error(spark, registry):
    frame = spark.range(10)
    shout = call(registry, "INVERSE", (t.BIGINT,), [frame["id"]])
    plan = frame.select(shout.value, shout.error)._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ArrowEvalPython") == 1
    assert plan.split("ArrowEvalPython")[1].count("run(true") == 1


def test_modules_stay_loaded_in_a_worker(spark, registry):
    seen = set()
    for _ in range(3):
        frame = spark.range(4).coalesce(1)
        done = call(registry, "PROCESS", (t.BIGINT,), [frame["id"]])
        rows = frame.select(done.value.alias("v")).collect()
        assert len({r["v"] for r in rows}) == 1
        seen |= {r["v"] for r in rows}
    assert len({text.split()[0] for text in seen}) == len(seen), "loaded again in the same process"
