"""What the statements of a text are, as their first words say: enough to decide who may run them
and on which threads, for a text that has not been parsed and may never be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.model.errors import ParseError
from headrace.model.requests import QueryKind
from headrace.sql.ast import Effect, Query, Statement
from headrace.sql.cursor import TOO_LARGE
from headrace.sql.statement_parser import STATEMENTS, SYNONYMS
from headrace.sql.tokens import Token, tokenize


@dataclass(frozen=True)
class Outline:
    """`kind` is `Statement` itself where the words begin no statement; `query` is None for what is
    no SELECT."""

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
    if not issubclass(kind, Query):
        return Outline(kind)
    return Outline(kind, QueryKind.PUSH if _emits(tokens) else QueryKind.PULL)


def _kind(tokens: Sequence[Token]) -> type[Statement]:
    words = tuple(SYNONYMS.get(token.kind, token.kind) for token in tokens[:3])
    for length in (3, 2, 1):
        form = STATEMENTS.get(words[:length])
        if form is not None:
            return form.kind
    # The second word is wrong. What all statements with this first word do, this one would.
    begun = (
        [form.kind for known, form in STATEMENTS.items() if known[0] == words[0]] if words else []
    )
    return begun[0] if len({kind.effect for kind in begun}) == 1 else Statement


def _emits(tokens: Sequence[Token]) -> bool:
    """Whether a SELECT ends with EMIT CHANGES or EMIT FINAL; only LIMIT may follow it."""
    kinds = [token.kind for token in tokens[-4:]]
    if len(kinds) == 4 and kinds[-2] == "LIMIT":
        kinds = kinds[:-2]
    return kinds[-2:-1] == ["EMIT"] and kinds[-1] in ("CHANGES", "FINAL")
