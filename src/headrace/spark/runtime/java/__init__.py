"""What needs Java: regular expressions of users in bounds, records in JSON, and files that Spark
forgets to close.

Java's regular expressions go back over a text as often as it takes, and nothing interrupts them:
one record could hold a core for ever (docs/design/0005-regular-expressions.md).
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, BooleanType, DataType, StringType, StructType

from headrace.formats.json.columns import JSON_FUNCTION
from headrace.functions.bounded import (
    BOUNDED_EXTRACT,
    BOUNDED_EXTRACT_ALL,
    BOUNDED_LIKE,
    BOUNDED_REPLACE,
    BOUNDED_SPLIT,
)
from headrace.spark.compiled import compiled_jar
from headrace.spark.internals.java_objects import java_session, jvm_of, register_expression

# For `java.nio.channels.spi.SelectorProvider`, of the driver.
SELECTORS = "headrace.SweptSelectors"


def _answer(value: DataType) -> StructType:
    return StructType().add("value", value).add("error", StringType())


_FUNCTIONS = {
    BOUNDED_EXTRACT: ("RegexExtract", _answer(StringType())),
    BOUNDED_EXTRACT_ALL: ("RegexExtractAll", _answer(ArrayType(StringType()))),
    BOUNDED_REPLACE: ("RegexReplace", _answer(StringType())),
    BOUNDED_SPLIT: ("RegexSplit", _answer(ArrayType(StringType()))),
    BOUNDED_LIKE: ("Like", BooleanType()),
}


def java_jar() -> Path:
    """What a session's JVM and executors need to have."""
    return compiled_jar("java", __package__)


def register(session: SparkSession) -> None:
    """Makes our Java functions known to a session."""
    jvm, functions = jvm_of(session), java_session(session).udf()
    for name, (kind, type_) in _FUNCTIONS.items():
        java_type = jvm.org.apache.spark.sql.types.DataType.fromJson(type_.json())
        functions.register(name, getattr(jvm.headrace, kind)(), java_type)
    register_expression(session, JSON_FUNCTION, jvm.headrace.JsonFunction())
