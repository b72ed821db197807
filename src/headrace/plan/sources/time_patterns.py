"""Patterns of dates and times, in the letters of Java's DateTimeFormatter."""

from __future__ import annotations

import re

_LETTERS = frozenset("GuyDMLdgQqYwWEecFaBhKkHmsSAnNVvzOXxZp")
_RESERVED = frozenset("{}#")
_LITERAL = re.compile(r"'(?:[^']|'')*('?)")


def check_pattern(pattern: str) -> None:
    """Raises ValueError, with Java's reason, for an invalid pattern."""
    optional = 0
    # Quoted literals may hold anything.
    for match in _LITERAL.finditer(pattern):
        if not match[1]:
            raise ValueError(f"Pattern ends with an incomplete string literal: {pattern}")
    for letter in _LITERAL.sub("", pattern):
        if letter.isascii() and letter.isalpha() and letter not in _LETTERS:
            raise ValueError(f"Unknown pattern letter: {letter}")
        if letter in _RESERVED:
            raise ValueError(f"Pattern includes reserved character: '{letter}'")
        optional += (letter == "[") - (letter == "]")
        if optional < 0:
            raise ValueError("Pattern invalid as it contains ] without previous [")
