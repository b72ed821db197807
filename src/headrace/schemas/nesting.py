"""The limit on the nesting depth of schemas, independent of the interpreter's own."""

from __future__ import annotations

MAX_DEPTH = 500


def check_nesting(declaration: object) -> None:
    """Raises RecursionError for JSON that is nested deeper than any schema needs to be."""
    level: list[object] = [declaration]
    for _ in range(MAX_DEPTH):
        inner: list[object] = []
        for value in level:
            if isinstance(value, dict):
                inner.extend(value.values())
            elif isinstance(value, list):
                inner.extend(value)
        if not inner:
            return
        level = inner
    raise RecursionError(f"nested deeper than {MAX_DEPTH} levels")
