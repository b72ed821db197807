"""Java's classes and methods are asked for once; Java is pretended."""

from __future__ import annotations

from types import SimpleNamespace

from headrace.spark.internals.py4j_cache import cache_classes


class Java:
    """A view of Java, or a class: everything has every name. It notes what it was asked for."""

    def __init__(self, asked, name=""):
        self.asked = asked
        self.name = name

    def __getattr__(self, name):
        self.asked.append(f"{self.name}.{name}")
        return Java(self.asked, name)


def test_a_class_and_its_methods_are_looked_up_once():
    asked = []
    jvm = Java(asked)
    spark = SimpleNamespace(_jvm=jvm)
    cache_classes(spark)
    cache_classes(spark)  # a second session of the same Java
    asked.clear()
    functions = "org.apache.spark.sql.functions"
    for _ in range(3):
        assert getattr(jvm, functions).col.name == "col"
        assert getattr(jvm, functions).lit.name == "lit"
    assert asked == [f"{functions}.col", f"{functions}.lit"]
    assert jvm.SparkConf.name == "SparkConf"
