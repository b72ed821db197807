"""Runs Python functions on Arrow batches, for what Spark columns cannot express.

One small adapter: a Python function of one row's values becomes a column of structs of its
value and its failure. It is called in a loop over a batch's arrays, and whatever it raises is the
row's failure. A call with a null argument is null and is not made, unless the function wants nulls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from headrace.functions.declare.declaration import Fallible

RowFunction = Callable[..., object]


def batched(
    function: RowFunction, returns: T.DataType, args: Sequence[Column], *, nulls: bool = False
) -> Fallible:
    """`function` applied to the columns, row by row within each batch.

    The function must be importable where Spark runs it: defined at the top of a module.
    """
    pair = _udf(function, returns.json(), nulls)(*args)
    return Fallible(pair.getField("value"), pair.getField("error"))


@cache
def _udf(function: RowFunction, returns: str, nulls: bool) -> Callable[..., Column]:
    """One function object for each use, so that Spark evaluates value and failure at once."""
    type_ = T._parse_datatype_json_string(returns)
    pair = T.StructType([T.StructField("value", type_), T.StructField("error", T.StringType())])
    arrow = _arrow_type(type_)

    def run(*arrays: pa.Array) -> pa.Array:
        rows = zip(*(array.to_pylist() for array in arrays), strict=True)
        values, errors = apply(function, rows, nulls)
        return pa.StructArray.from_arrays(
            [pa.array(values, arrow), pa.array(errors, pa.string())], ["value", "error"]
        )

    return F.arrow_udf(run, pair)  # type: ignore[attr-defined, no-any-return]


def apply(
    function: RowFunction, rows: Iterable[tuple[object, ...]], nulls: bool
) -> tuple[list[object], list[str | None]]:
    values: list[object] = []
    errors: list[str | None] = []
    for row in rows:
        value, error = None, None
        if nulls or None not in row:
            try:
                value = function(*row)
            except Exception as e:  # whatever goes wrong is this row's, never the query's
                error = str(e)
        values.append(value)
        errors.append(error)
    return values, errors


def _arrow_type(type_: T.DataType) -> pa.DataType:
    from pyspark.sql.pandas.types import to_arrow_type

    return to_arrow_type(type_)
