"""Splits typed text into statements, and says whether a statement is complete."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.sql.parser import split
from headrace.sql.tokens import Source, tokenize


def statements(text: str) -> Iterator[str]:
    """The statements of a text, one by one, without the comments between them."""
    return (one.text for one in split(text) if one.text != ";")


def first_word(text: str) -> str:
    """The word a statement begins with, in upper case."""
    return tokenize(text).tokens[0].text.upper()


def is_complete(text: str) -> bool:
    """Whether the text ends with a statement's semicolon, and not within quotes or a comment."""
    source = tokenize(text)
    return _is_closed(source) and (len(source.tokens) == 1 or source.tokens[-2].kind == ";")


def _is_closed(source: Source) -> bool:
    quotes = any(token.kind == "unknown" and token.text in "'\"`" for token in source.tokens)
    pairs = zip(source.tokens, source.tokens[1:], strict=False)
    comment = any(a.kind == "/" and b.kind == "*" and a.end == b.start for a, b in pairs)
    return not quotes and not comment
