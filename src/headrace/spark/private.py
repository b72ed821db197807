"""Java objects of Spark and Py4J from within, for what they have no method for.

Where they are built differently there is a Py4JError: callers go on without.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError


def field(of: Any, kind: str, name: str) -> Any:
    """A field, as Java's reflection has it, of an object's class or one above it, called `kind`."""
    declaring = of.getClass()
    while declaring is not None and declaring.getSimpleName() != kind:
        declaring = declaring.getSuperclass()
    if declaring is None:
        raise Py4JError(f"{of.getClass().getName()} is no {kind}")
    found = declaring.getDeclaredField(name)
    found.setAccessible(True)
    return found
