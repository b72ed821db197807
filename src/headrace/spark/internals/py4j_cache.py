"""A cache of the Java classes and static methods that PySpark calls through Py4J.

Py4J asks Java where a class is and what a name in it stands for, each time: a round trip, like the
call itself. To make a column takes one of both and one call; a statement makes hundreds. Py4J does
not ask for what is an attribute already.
"""

from __future__ import annotations

from py4j.java_gateway import JavaClass, JavaMember
from pyspark.sql import SparkSession

_CLASSES = (
    "org.apache.spark.sql.functions",
    "functions",  # the same, as other parts of PySpark have it
    "PythonUtils",
)


class _CachedClass:
    """A Java class; each of its static methods is looked up once."""

    def __init__(self, java_class: JavaClass) -> None:
        self._class = java_class

    def __getattr__(self, name: str) -> JavaMember:
        method = getattr(self._class, name)
        setattr(self, name, method)
        return method


def cache_classes(spark: SparkSession) -> None:
    """From now on, for every session of this JVM."""
    jvm = spark._jvm
    for name in _CLASSES:
        if name not in vars(jvm):
            setattr(jvm, name, _CachedClass(getattr(jvm, name)))
