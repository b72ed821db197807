"""Column codecs of most formats: Spark expressions where they are exact, Python otherwise.

Spark's own functions are fast, but do not know ksqlDB's coercions. So each record is first tried
natively; the attempt also says whether its result is certain. Only records of which it is not are
decoded by the format's row codec, batch by batch, so that both codecs agree to the last error.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type

from headrace.formats.base import CodecError, ColumnCodec, Layout, Row, RowCodec
from headrace.formats.connect import Reader
from headrace.model.fallible import Fallible
from headrace.model.representation import spark_type
from headrace.model.types import Array, Map, SqlType, Struct

_ATTEMPT = "$attempt"
_UNSURE = "$unsure"
_DECODED = "$decoded"


class PythonColumns(ColumnCodec):
    """A column codec that hands whole batches to the row codec."""

    def __init__(self, format_name: str, layout: Layout) -> None:
        self.format_name = format_name
        self.layout = layout

    def decode(self, data: SparkColumn) -> Fallible:
        decoded = decode_batches(self.format_name, self.layout)(data)
        return Fallible(decoded["row"], decoded["error"])

    def read(self, frame: DataFrame, data: str, value: str, error: str) -> DataFrame:
        decode = decode_batches(self.format_name, self.layout)
        decoded = F.col(_DECODED)
        frame = frame.withColumn(_DECODED, decode(F.col(f"`{data}`")))
        return frame.withColumns({value: decoded["row"], error: decoded["error"]}).drop(_DECODED)

    def encode(self, row: SparkColumn) -> Fallible:
        encoded = encode_batches(self.format_name, self.layout)(row)
        return Fallible(encoded["data"], encoded["error"])


class NativeFirst(PythonColumns):
    """A column codec with a native attempt; what that is unsure of goes to the row codec."""

    # Whether a row can be worked out, to whatever end, also where it is not certain.
    rows_never_fail: ClassVar[bool] = False

    @abstractmethod
    def attempt(self, data: SparkColumn) -> SparkColumn:
        """The costly part, evaluated once; what it gives is passed on to `settle`."""

    @abstractmethod
    def settle(self, attempt: SparkColumn, data: SparkColumn) -> tuple[SparkColumn, SparkColumn]:
        """The row and whether Python has to decide instead (never null). Data is not null."""

    def decode(self, data: SparkColumn) -> Fallible:
        row, unsure = self.settle(self.attempt(data), data)
        decoded = decode_batches(self.format_name, self.layout)(F.when(unsure, data))
        return Fallible(
            F.when(data.isNull(), None).when(~unsure, row).otherwise(decoded["row"]),
            decoded["error"],
        )

    def read(self, frame: DataFrame, data: str, value: str, error: str) -> DataFrame:
        # Each step is a projection of its own: Spark keeps them apart, because each uses something
        # of the one before twice. So the attempt is made once, and the row is settled before
        # Python: little passes by the Python operator.
        source = F.col(f"`{data}`")
        frame = frame.withColumn(_ATTEMPT, self.attempt(source))
        row, unsure = self.settle(F.col(_ATTEMPT), source)
        # Where it is not certain, working the row out may even fail.
        sure = source.isNotNull() & ~unsure
        frame = frame.withColumns({value: F.when(sure, row), _UNSURE: F.when(~sure, source)})
        frame = frame.drop(_ATTEMPT)
        # As it may give another result each time, for all that Spark knows, it is not called again
        # for a filter that Spark moves below it.
        decode = decode_batches(self.format_name, self.layout).asNondeterministic()
        frame = frame.withColumn(_DECODED, decode(F.col(_UNSURE)))
        decoded = F.col(_DECODED)
        settled = F.when(F.col(_UNSURE).isNull(), F.col(f"`{value}`")).otherwise(decoded["row"])
        return frame.withColumns({value: settled, error: decoded["error"]}).drop(_UNSURE, _DECODED)

    def read_natively(self, frame: DataFrame, data: str, value: str, doubt: str) -> DataFrame:
        source = F.col(f"`{data}`")
        frame = frame.withColumn(_ATTEMPT, _once(self.attempt(source)))
        row, unsure = self.settle(F.col(_ATTEMPT), source)
        doubtful = source.isNotNull() & unsure
        made = row if self.rows_never_fail else F.when(~doubtful, row)
        return frame.withColumns({value: made, doubt: doubtful}).drop(_ATTEMPT)


def _once(column: SparkColumn) -> SparkColumn:
    """The column, as one that Spark does not work out again for a filter that it moves below: for
    all that it knows, the number of the task may be another each time."""
    return F.when(F.spark_partition_id() >= 0, column)


def decode_batches(format_name: str, layout: Layout) -> Any:
    """The row codec over batches: binary to struct<row, error>, null to null."""
    result = spark.StructType(
        [
            spark.StructField("row", spark_type(layout.struct)),
            spark.StructField("error", spark.StringType()),
        ]
    )

    def decode(data: pa.Array) -> pa.Array:
        return _decode(format_name, layout, data)

    return arrow_udf(decode, result)  # type: ignore[call-overload]


def encode_batches(format_name: str, layout: Layout) -> Callable[[SparkColumn], SparkColumn]:
    """The row codec over batches: struct to struct<data, error>."""
    result = spark.StructType(
        [
            spark.StructField("data", spark.BinaryType()),
            spark.StructField("error", spark.StringType()),
        ]
    )

    def encode(rows: pa.Array) -> pa.Array:
        return _encode(format_name, layout, rows)

    return arrow_udf(encode, result)  # type: ignore[call-overload,no-any-return]


@lru_cache(maxsize=64)
def _codec(format_name: str, layout: Layout) -> RowCodec:
    from headrace.formats import FORMATS

    return FORMATS[format_name].python(layout)


def _decode(format_name: str, layout: Layout, data: pa.Array) -> pa.Array:
    row_type = to_arrow_type(spark_type(layout.struct))
    result_type = pa.struct([("row", row_type), ("error", pa.string())])
    if data.null_count == len(data):
        return pa.nulls(len(data), result_type)
    decode = _codec(format_name, layout).decode
    rows: list[Row | None] = []
    errors: list[str | None] = []
    for item in data.to_pylist():
        error = None
        row = None
        try:
            row = decode(item)
        except CodecError as e:
            error = e.message
        rows.append(row)
        errors.append(error)
    try:
        array = _struct_array(layout.struct, row_type, rows)
    except (pa.ArrowException, OverflowError):
        array = _fitting_rows(layout, row_type, rows, errors)
    return pa.StructArray.from_arrays(
        [array, pa.array(errors, pa.string())], fields=list(result_type), mask=data.is_null()
    )


def _fitting_rows(
    layout: Layout, row_type: pa.DataType, rows: list[Row | None], errors: list[str | None]
) -> pa.Array:
    """The rows one by one; one with a value that Spark cannot hold becomes an error."""
    for i, row in enumerate(rows):
        try:
            _struct_array(layout.struct, row_type, [row])
        except (pa.ArrowException, OverflowError) as e:
            rows[i] = None
            errors[i] = f"Error deserializing message from topic: {layout.topic}\n{e}"
    return _struct_array(layout.struct, row_type, rows)


def _struct_array(type_: Struct, arrow: pa.DataType, rows: list[Row | None]) -> pa.Array:
    """Rows as columns, one array each: several times faster than a list of dicts."""
    arrays = []
    for field, arrow_field in zip(type_.fields, arrow, strict=True):
        name = field.name
        values: list[object] = [None if row is None else row[name] for row in rows]
        if (convert := _to_arrow(field.type)) is not None:
            values = [None if v is None else convert(v) for v in values]
        arrays.append(pa.array(values, arrow_field.type))
    mask = pa.array([row is None for row in rows], pa.bool_())
    return pa.StructArray.from_arrays(arrays, fields=list(arrow), mask=mask)


def _to_arrow(type_: SqlType) -> Reader | None:
    """How a value is given to Arrow, which wants maps as pairs; None where it stays as it is."""
    match type_:
        case Array(element):
            inner = _to_arrow(element)
            return None if inner is None else lambda v: [_apply(inner, x) for x in v]
        case Map(_, value):
            inner = _to_arrow(value)
            return lambda v: [(k, _apply(inner, x)) for k, x in v.items()]
        case Struct(fields):
            inners = {f.name: c for f in fields if (c := _to_arrow(f.type)) is not None}
            if inners:
                return lambda v: {k: _apply(inners.get(k), x) for k, x in v.items()}
    return None


def _apply(convert: Reader | None, value: object) -> object:
    return value if convert is None or value is None else convert(value)


def _encode(format_name: str, layout: Layout, rows: pa.Array) -> pa.Array:
    encode = _codec(format_name, layout).encode
    data: list[bytes | None] = []
    errors: list[str | None] = []
    for row in _rows(layout.struct, rows):
        error = None
        encoded = None
        try:
            encoded = encode(row)
        except CodecError as e:
            error = e.message
        data.append(encoded)
        errors.append(error)
    return pa.StructArray.from_arrays(
        [pa.array(data, pa.binary()), pa.array(errors, pa.string())], names=["data", "error"]
    )


def _rows(struct: Struct, rows: pa.StructArray) -> Iterator[Row | None]:
    """Rows out of columns, one list each: several times faster than Arrow's own dicts."""
    names = [f.name for f in struct.fields]
    columns = []
    for field, column in zip(struct.fields, rows.flatten(), strict=True):
        values = _values(column)
        if (convert := _from_arrow(field.type)) is not None:
            values = [None if v is None else convert(v) for v in values]
        columns.append(values)
    valid = _values(rows.is_valid())
    for present, *values in zip(valid, *columns, strict=True):
        yield dict(zip(names, values, strict=True)) if present else None


def _values(column: pa.Array) -> list[object]:
    if column.null_count == 0 and (
        pa.types.is_integer(column.type)
        or pa.types.is_floating(column.type)
        or pa.types.is_boolean(column.type)
    ):
        return column.to_numpy(zero_copy_only=False).tolist()  # type: ignore[no-any-return]
    return column.to_pylist()  # type: ignore[no-any-return]


def _from_arrow(type_: SqlType) -> Reader | None:
    """How a value comes from Arrow, which gives maps as pairs; None where it stays as it is."""
    match type_:
        case Array(element):
            inner = _from_arrow(element)
            return None if inner is None else lambda v: [_apply(inner, x) for x in v]
        case Map(_, value):
            inner = _from_arrow(value)
            return lambda v: {k: _apply(inner, x) for k, x in v}
        case Struct(fields):
            inners = {f.name: c for f in fields if (c := _from_arrow(f.type)) is not None}
            if inners:
                return lambda v: {k: _apply(inners.get(k), x) for k, x in v.items()}
    return None


def with_entries(
    type_: SqlType, value: SparkColumn, rename: Callable[[str], str] = lambda name: name
) -> SparkColumn:
    """The value with maps as arrays of entries, and fields renamed."""
    if not _is_rewritten(type_, rename):
        return value
    match type_:
        case Array(element):
            return F.transform(value, lambda item: with_entries(element, item, rename))
        case Map(_, inner):
            return F.transform(
                F.map_entries(value),
                lambda e: F.struct(
                    e["key"].alias("key"), with_entries(inner, e["value"], rename).alias("value")
                ),
            )
        case Struct(fields):
            parts = [
                with_entries(f.type, value[f.name], rename).alias(rename(f.name)) for f in fields
            ]
            return F.when(value.isNotNull(), F.struct(*parts))
    return value


def _is_rewritten(type_: SqlType, rename: Callable[[str], str]) -> bool:
    match type_:
        case Array(element):
            return _is_rewritten(element, rename)
        case Map():
            return True
        case Struct(fields):
            return any(rename(f.name) != f.name or _is_rewritten(f.type, rename) for f in fields)
    return False
