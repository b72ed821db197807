"""The representation of each SQL type's values, the same in Spark and in Python.

| SQL type | Spark | Python |
|---|---|---|
| BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING | the same | bool, int, int, float, str |
| BYTES | binary | bytes |
| DECIMAL(p, s) | decimal(p, s) | decimal.Decimal |
| DATE | int: days since 1970-01-01 | int |
| TIME | int: milliseconds of the day | int |
| TIMESTAMP | bigint: milliseconds since the epoch, UTC | int |
| ARRAY, MAP, STRUCT | array, map, struct | list, dict, dict by field name |

Dates and times are integers because that is what ksqlDB's formats write, and because they pass
unchanged through Arrow, state and JSON at any year. What they mean is known from the plan.
"""

from __future__ import annotations

from functools import cache

from pyspark.sql import types as spark

from headrace.model.types import Array, Decimal, Map, Primitive, SqlType, Struct

_PRIMITIVES: dict[str, spark.DataType] = {
    "BOOLEAN": spark.BooleanType(),
    "INTEGER": spark.IntegerType(),
    "BIGINT": spark.LongType(),
    "DOUBLE": spark.DoubleType(),
    "STRING": spark.StringType(),
    "BYTES": spark.BinaryType(),
    "DATE": spark.IntegerType(),
    "TIME": spark.IntegerType(),
    "TIMESTAMP": spark.LongType(),
    "NULL": spark.NullType(),
    "INTERVAL UNIT": spark.LongType(),  # its milliseconds
}


@cache
def spark_type(type_: SqlType) -> spark.DataType:
    match type_:
        case Primitive(name):
            return _PRIMITIVES[name]
        case Decimal(precision, scale):
            # Spark holds 38 digits at most; ksqlDB's types may promise more than data ever needs.
            return spark.DecimalType(min(precision, 38), min(scale, 38))
        case Array(element):
            return spark.ArrayType(spark_type(element))
        case Map(key, value):
            return spark.MapType(spark_type(key), spark_type(value))
        case Struct(fields):
            return spark.StructType([spark.StructField(f.name, spark_type(f.type)) for f in fields])
    raise TypeError(f"{type_} is not the type of a value")
