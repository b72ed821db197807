"""Every example of every scalar function, run by Spark: as constants and as columns."""

import math
import os

import pytest
from scalar_session import start
from sql_examples import argument_of, plain

from headrace.functions.declare.declaration import (
    CallContext,
    Fallible,
    FunctionKind,
    LambdaArgument,
)
from headrace.functions.registry import REGISTRY, LambdaShape
from headrace.model.representation import spark_type
from headrace.model.types import NULL, Lambda, Struct

CASES = [
    (function, index, example)
    for function in REGISTRY.all()
    if function.kind is FunctionKind.SCALAR
    for index, example in enumerate(function.examples)
]
ONLY = os.environ.get("ONLY")
if ONLY:
    CASES = [c for c in CASES if c[0].name in ONLY.split(",")]
CHUNK = 30


@pytest.fixture(scope="module")
def spark():
    session = start()
    yield session
    session.stop()


class Case:
    """One example, resolved; `as_columns` hides from the form that its arguments are constants."""

    def __init__(self, number, function, example):
        self.number, self.function, self.example = number, function, example
        resolution = REGISTRY.resolve(function.name, [argument_of(a) for a in example.args])
        self.overload = resolution.overload
        results = {}
        for i, (arg, shape) in enumerate(zip(example.args, resolution.args, strict=True)):
            if isinstance(shape, LambdaShape):
                resolution.lambda_inputs(i, results)
                results[i] = arg.gives
        self.types, self.returned = resolution.finish(results)

    def data(self):
        return [
            None if isinstance(a, LambdaArgument) else _row(plain(a), t)
            for a, t in zip(self.example.args, self.types, strict=True)
        ]

    def fields(self):
        from pyspark.sql import types as T

        return [
            T.StructField(
                f"a{self.number}_{i}",
                T.StringType() if isinstance(t, Lambda) or t == NULL else spark_type(t),
            )
            for i, t in enumerate(self.types)
        ]

    def columns(self, constants):
        from pyspark.sql import functions as F

        args = []
        for field, arg, value in zip(self.fields(), self.example.args, self.data(), strict=True):
            if isinstance(arg, LambdaArgument):
                args.append(arg.function)
            elif constants and _simple(value):
                args.append(F.lit(value).cast(field.dataType))
            else:
                args.append(F.col(field.name))
        literals = [
            plain(a) if constants and _simple(plain(a)) else None for a in self.example.args
        ]
        context = CallContext(self.types, self.returned, literals)
        result = self.overload.spark(args, context)
        if not isinstance(result, Fallible):
            result = Fallible(result)
        error = F.lit(None).cast("string") if result.error is None else result.error
        value = result.value
        if self.returned != NULL:
            value = value.cast(spark_type(self.returned))
        return value.alias(f"v{self.number}"), error.alias(f"e{self.number}")


def _simple(value):
    return value is None or isinstance(value, (bool, int, float, str, bytes)) or _is_decimal(value)


def _is_decimal(value):
    import decimal

    return isinstance(value, decimal.Decimal)


def _row(value, type_):
    from pyspark.sql import Row

    if isinstance(type_, Struct) and isinstance(value, dict):
        return Row(**value)
    if isinstance(value, int) and not isinstance(value, bool) and str(type_) == "DOUBLE":
        return float(value)
    if str(type_).startswith("DECIMAL") and isinstance(value, int):
        import decimal

        return decimal.Decimal(value)
    return value


def _plain(value):
    from pyspark.sql import Row

    if isinstance(value, Row):
        return {k: _plain(v) for k, v in value.asDict().items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {_plain(k): _plain(v) for k, v in value.items()}
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.fixture(scope="module")
def answers(spark):
    cases = [Case(n, function, example) for n, (function, _, example) in enumerate(CASES)]
    found = {}
    for constants in (True, False):
        for first in range(0, len(cases), CHUNK):
            chunk = cases[first : first + CHUNK]
            try:
                found.update(_run(spark, chunk, constants))
            except Exception:
                # One by one, so that only the culprit fails.
                for case in chunk:
                    try:
                        found.update(_run(spark, [case], constants))
                    except Exception as e:
                        found[case.number, constants] = (e, "raised")
    return found


def _run(spark, cases, constants):
    from pyspark.sql import types as T

    schema = T.StructType([f for c in cases for f in c.fields()] + [_one()])
    data = [(*(v for c in cases for v in c.data()), 1)]
    frame = spark.createDataFrame(data, schema).repartition(1)
    row = frame.select(*(col for c in cases for col in c.columns(constants))).collect()[0]
    return {
        (c.number, constants): (_plain(row[f"v{c.number}"]), row[f"e{c.number}"]) for c in cases
    }


def _one():
    from pyspark.sql import types as T

    return T.StructField("one", T.IntegerType())


def _equal(left, right):
    if isinstance(left, float) and isinstance(right, float):
        return left == right or math.isclose(left, right, rel_tol=1e-13)
    return left == right and isinstance(left, bool) == isinstance(right, bool)


@pytest.mark.heavy
@pytest.mark.parametrize("constants", [True, False], ids=["constants", "columns"])
@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{f.name}-{i}" for f, i, _ in CASES])
def test_example(answers, number, constants):
    example = CASES[number][2]
    value, error = answers[number, constants]
    if example.fails:
        assert (value, error) == (None, example.gives)
        return
    assert error is None
    if example.varies:
        assert value is not None
    else:
        assert _equal(value, plain(example.gives)), value
