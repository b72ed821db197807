"""Calls user-defined scalar and table functions on batches of rows, on executors.

A batch comes and goes as Arrow arrays; a function of single values is called in a loop here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as spark
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type

from headrace.functions.declare.declaration import CallContext, Fallible
from headrace.functions.extensions.calling import Body, reason, settings_of
from headrace.functions.extensions.shipping import Shipped
from headrace.functions.extensions.values import Convert, held, shown
from headrace.model.representation import spark_type
from headrace.model.types import Array, Map, SqlType, Struct, walk

Columns = tuple[pa.Array, ...]
# The values of a batch, and for each of them what went wrong.
Results = tuple[pa.Array, list[str | None]]


def column_of(
    body: Body, style: str, args: tuple[Column, ...], context: CallContext, returns: SqlType
) -> Fallible:
    """The call of a function as a column; `style` says how it is called."""
    batch = _STYLES[style](body, context, returns)
    both = spark.StructType(
        [
            spark.StructField("value", spark_type(returns)),
            spark.StructField("error", spark.StringType()),
        ]
    )

    def run(rows: pa.Array, *columns: pa.Array) -> pa.Array:
        return batch(rows, *columns)

    # The first column tells the number of rows, also to a function without arguments.
    result = arrow_udf(run, both)(F.lit(True), *args)  # type: ignore[call-overload]
    return Fallible(result["value"], result["error"])


class Batch(Shipped):
    """Calls a function for all rows of a batch; a row that fails is null and says why."""

    def __init__(self, body: Body, context: CallContext, returns: SqlType) -> None:
        self.extension = body.extension
        self.name = body.name
        self.function = body.function
        self.arg_types = context.arg_types
        self.required = _required(body.takes_null, len(context.arg_types))
        self.returns = returns
        self.keywords: dict[str, object] = (
            {"config": settings_of(body.name, context.settings)} if body.wants_config else {}
        )

    def __call__(self, rows: pa.Array, *columns: pa.Array) -> pa.Array:
        values, errors = self.results(len(rows), columns)
        both = [values, pa.array(errors, pa.string())]
        return pa.StructArray.from_arrays(both, ["value", "error"])

    def results(self, count: int, columns: Columns) -> Results:
        raise NotImplementedError

    @property
    def arrow_type(self) -> pa.DataType:
        return to_arrow_type(spark_type(self.returns))


def _required(takes_null: tuple[bool, ...], count: int) -> tuple[int, ...]:
    """The arguments without which the function is not called."""
    if not takes_null:
        return ()
    return tuple(i for i in range(count) if not takes_null[min(i, len(takes_null) - 1)])


class RowBatch(Batch):
    """A function of single values."""

    def results(self, count: int, columns: Columns) -> Results:
        rows: Iterable[tuple[object, ...]] = (
            zip(*map(_values, columns, self.arg_types), strict=True) if columns else [()] * count
        )
        values: list[object] = [None] * count
        errors: list[str | None] = [None] * count
        call, hold, keywords, required = self.function, self.hold, self.keywords, self.required
        for at, row in enumerate(rows):
            if required and any(row[i] is None for i in required):
                values[at] = self.skipped
                continue
            try:
                values[at] = hold(call(*row, **keywords))
            except Exception as error:  # the user's code may fail in any way it likes
                errors[at] = reason(error)
        return pa.array(_for_arrow(self.returns, values), self.arrow_type), errors

    # What a row without a required argument gives.
    skipped: object = None

    def hold(self, value: object) -> object:
        return held(self.returns, value)


class TableBatch(RowBatch):
    """A table function: its rows are an array."""

    skipped: object = ()

    def hold(self, value: object) -> object:
        if value is None:
            raise TypeError(
                f"Table function {self.name} returned null. This is invalid. "
                "Table functions should always return a valid list."
            )
        return held(self.returns, value)


class ArrowBatch(Batch):
    """A function of Arrow arrays."""

    def results(self, count: int, columns: Columns) -> Results:
        try:
            result = self.call(columns)
            if len(result) != count:
                raise ValueError(f"expected {count} values, got {len(result)}")
            return result, [None] * count
        except Exception as error:  # a user's code may raise anything
            if count == 1:
                return pa.nulls(1, self.arrow_type), [reason(error)]
        # One row spoils the batch: find it, and keep the others.
        parts = [self.results(1, tuple(c.slice(i, 1) for c in columns)) for i in range(count)]
        values = pa.concat_arrays([v for v, _ in parts]) if parts else pa.nulls(0, self.arrow_type)
        return values, [error for _, errors in parts for error in errors]

    def call(self, columns: Columns) -> pa.Array:
        result = self.function(*columns, **self.keywords)
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        if not isinstance(result, pa.Array):
            result = pa.array(result, self.arrow_type)
        return result.cast(self.arrow_type)


class PandasBatch(ArrowBatch):
    """A function of pandas Series."""

    def call(self, columns: Columns) -> pa.Array:
        result = self.function(*map(_series, columns), **self.keywords)
        return pa.Array.from_pandas(result, type=self.arrow_type)


def _values(column: pa.Array, type_: SqlType) -> list[object]:
    """The column's values as Python's own."""
    values: list[object] = column.to_pylist(maps_as_pydicts="lossy")
    convert = shown(type_)
    return values if convert is None else [_tried(convert, v) for v in values]


def _tried(convert: Convert, value: object) -> object:
    # A date beyond Python's calendar is not there for the function.
    try:
        return convert(value)
    except (OverflowError, ValueError):
        return None


def _for_arrow(type_: SqlType, values: list[object]) -> list[object]:
    """Arrow takes a map as the list of its entries."""
    if not any(isinstance(t, Map) for t in walk(type_)):
        return values
    return [_with_entries(type_, value) for value in values]


def _with_entries(type_: SqlType, value: Any) -> Any:
    if value is None:
        return None
    match type_:
        case Array(element):
            return [_with_entries(element, item) for item in value]
        case Map(_, item_type):
            return [(key, _with_entries(item_type, item)) for key, item in value.items()]
        case Struct(fields):
            return {f.name: _with_entries(f.type, value[f.name]) for f in fields}
    return value


def _series(column: pa.Array) -> object:
    """The column for pandas; integers and booleans keep their type although there are nulls."""
    import pandas as pd

    nullable = {
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }
    return column.to_pandas(types_mapper=nullable.get)


_STYLES: dict[str, type[Batch]] = {
    "row": RowBatch,
    "table": TableBatch,
    "arrow": ArrowBatch,
    "pandas": PandasBatch,
}
