"""Inspects a statement's text by its tokens, without parsing it."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.sql.cursor import unquote
from headrace.sql.outline import outlines
from headrace.sql.tokens import Token, tokenize


def is_query(text: str) -> bool:
    return any(outline.query is not None for outline in outlines(text)[:1])


def inserts_values(text: str) -> bool:
    kinds = [token.kind for token in tokenize(text).tokens]
    return kinds[:2] == ["INSERT", "INTO"] and "VALUES" in kinds


def asserts_values(text: str) -> bool:
    kinds = [token.kind for token in tokenize(text).tokens[:3]]
    return kinds[:1] == ["ASSERT"] and "VALUES" in kinds


def values_of(text: str, name: str) -> Iterator[Token]:
    """The tokens of the values that a property has in WITH clauses."""
    tokens = tokenize(text).tokens
    for one, sign, value in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if one.text.upper() == name.upper() and sign.kind == "=":
            yield value


def topics_of(text: str) -> list[str]:
    return [unquote(token.text) for token in values_of(text, "KAFKA_TOPIC")]


def with_topic_prefix(text: str, prefix: str) -> str:
    """The statement with other topics: those it names, with a prefix."""
    for token in reversed([*values_of(text, "KAFKA_TOPIC")]):
        text = text[: token.start + 1] + prefix + text[token.start + 1 :]
    return text
