"""The Java objects behind PySpark's, and fields of Java objects that have no method.

Where Spark or Py4J are built differently there is a Py4JError: callers go on without.
"""

from __future__ import annotations

from py4j.java_gateway import JavaObject, JVMView
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery


def jvm_of(spark: SparkSession) -> JVMView:
    return spark._jvm


def java_session(spark: SparkSession) -> JavaObject:
    return spark._jsparkSession


def java_context(context: SparkContext) -> JavaObject:
    return context._jsc


def java_query(query: StreamingQuery) -> JavaObject:
    return query._jsq


def register_expression(spark: SparkSession, name: str, builder: JavaObject) -> None:
    """Makes a SQL function known that `builder`, a Java function, turns into an expression."""
    registry = java_session(spark).sessionState().functionRegistry()
    registry.createOrReplaceTempFunction(name, builder, "built-in")


def field(of: JavaObject, kind: str, name: str) -> JavaObject:
    """A field, as Java's reflection has it, of an object's class or one above it, called `kind`."""
    declaring = of.getClass()
    while declaring is not None and declaring.getSimpleName() != kind:
        declaring = declaring.getSuperclass()
    if declaring is None:
        raise Py4JError(f"{of.getClass().getName()} is no {kind}")
    found = declaring.getDeclaredField(name)
    found.setAccessible(True)
    return found
