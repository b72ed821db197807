"""Classifies statements by their first words, to decide who may run them and on which threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.model.errors import ParseError
from headrace.model.requests import QueryKind
from headrace.sql.cursor import TOO_LARGE
from headrace.sql.statements.statement_parser import STATEMENTS, SYNONYMS
from headrace.sql.tokens import Token, tokenize
from headrace.sql.tree import Effect, Statement


@dataclass(frozen=True)
class Outline:
    """The kind of a statement, `Statement` if unknown; `query` is None if it is no SELECT."""

    kind: type[Statement]
    query: QueryKind | None = None

    @property
    def effect(self) -> Effect:
        return self.kind.effect


# Of one request: they take half a second, and to forget them is one step of 20 ms. Of one
# statement: what the parser makes of them, the garbage collector looks through in one step, too.
MOST_TOKENS = 250_000
MOST_IN_STATEMENT = 50_000


def outlines(text: str) -> list[Outline]:
    """One for each statement of the text, whether or not a semicolon ends the last; raises for a
    text that is too long to be parsed for somebody who is not trusted."""
    found = []
    start = 0
    tokens = tokenize(text, MOST_TOKENS).tokens
    for index, token in enumerate(tokens):
        if token.kind in (";", "eof") and (token.kind == ";" or index > start):
            if index - start > MOST_IN_STATEMENT:
                raise ParseError(TOO_LARGE)
            found.append(_outline(tokens[start:index]))
            start = index + 1
    return found


def _outline(tokens: Sequence[Token]) -> Outline:
    kind = _kind(tokens)
    return Outline(kind, kind.query_kind([token.kind for token in tokens[-4:]]))


def _kind(tokens: Sequence[Token]) -> type[Statement]:
    words = tuple(SYNONYMS.get(token.kind, token.kind) for token in tokens[:3])
    for length in (3, 2, 1):
        kind = STATEMENTS.get(words[:length])
        if kind is not None:
            return kind
    # The second word is wrong. What all statements with this first word do, this one would.
    begun = [kind for known, kind in STATEMENTS.items() if known[:1] == words[:1]]
    return begun[0] if len({kind.effect for kind in begun}) == 1 else Statement
