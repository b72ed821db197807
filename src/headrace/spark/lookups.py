"""What PySpark asks Java again and again: where a class is, and what a name in it stands for.

Each is a way to Java and back, like a call itself. To make a column takes one of both and one call;
a statement makes hundreds. Py4J does not ask for what is an attribute already.
"""

from __future__ import annotations

from typing import Any

_CLASSES = (
    "org.apache.spark.sql.functions",
    "functions",  # the same, as other parts of PySpark have it
    "PythonUtils",
)


class _Known:
    """A Java class; each of its static methods is looked up once."""

    def __init__(self, java_class: Any) -> None:
        self._class = java_class

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._class, name)
        setattr(self, name, method)
        return method


def know_classes(jvm: Any) -> None:
    """`jvm` is Py4J's view of Java."""
    for name in _CLASSES:
        if name not in vars(jvm):
            setattr(jvm, name, _Known(getattr(jvm, name)))
