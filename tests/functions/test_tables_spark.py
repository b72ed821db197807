"""Table functions in Spark: the arrays whose elements become rows."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.sql import types as spark_types

from headrace.functions.declare.declaration import CallContext, Fallible, FunctionKind
from headrace.functions.registry import Registry
from headrace.functions.table_functions import FUNCTIONS
from headrace.model import types as t
from headrace.model.representation import spark_type

pytestmark = pytest.mark.heavy

REGISTRY = Registry(FUNCTIONS)


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    from headrace.spark.runtime.session import start_session

    session = start_session([], {}, tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


def rows_of(spark, name, type_, value):
    found = REGISTRY.resolve(name, (type_,))
    assert found.function.kind is FunctionKind.TABLE
    types, returns = found.finish({})
    schema = spark_types.StructType([spark_types.StructField("x", spark_type(type_))])
    frame = spark.createDataFrame([(value,)], schema)
    form = found.overload.spark([frame["x"]], CallContext(types, returns))
    value, error = (form.value, form.error) if isinstance(form, Fallible) else (form, None)
    columns = [value.alias("value")] + ([error.alias("error")] if error is not None else [])
    result = frame.select(*columns)
    assert result.schema["value"].dataType == spark_type(t.Array(returns))
    row = result.collect()[0]
    return row["value"], row["error"] if error is not None else None


def test_explode(spark):
    integers = t.Array(t.INTEGER)
    assert rows_of(spark, "EXPLODE", integers, [1, None]) == ([1, None], None)
    assert rows_of(spark, "EXPLODE", integers, None) == ([], None)
    nested = t.Array(t.Struct((t.Field("A", t.INTEGER),)))
    assert rows_of(spark, "EXPLODE", nested, None) == ([], None)
    decimals = t.Array(t.Decimal(5, 2))
    assert rows_of(spark, "EXPLODE", decimals, [Decimal("1.25")]) == ([Decimal("1.25")], None)


def test_cube_explode(spark):
    def cube(values, type_=t.INTEGER):
        return rows_of(spark, "CUBE_EXPLODE", t.Array(type_), values)

    assert cube([1, 2]) == ([[None, None], [None, 2], [1, None], [1, 2]], None)
    assert cube([1, None]) == ([[None, None], [1, None]], None)
    assert cube([None]) == ([[None]], None)
    assert cube([]) == ([[]], None)
    assert cube(None) == ([], None)
    assert len(cube(list(range(10)))[0]) == 1024
    assert cube(["a"], t.STRING) == ([[None], ["a"]], None)
    assert cube([1] * 21) == ([], "cube_explode: too many columns (21); max is 20")
