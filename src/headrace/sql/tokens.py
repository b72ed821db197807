"""Text to tokens.

The `kind` of a token is what the parser decides by. A keyword's kind is the keyword in upper case
and a symbol's is the symbol; all other kinds are in lower case: `identifier`, `digits` (a name that
begins with a digit), `quoted`, `backquoted`, `string`, `integer`, `decimal`, `float`, `variable`,
`unknown` (a character no token begins with) and `eof`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import lru_cache

from headrace.model.errors import Position
from headrace.sql.keywords import KEYWORDS

_WORDS = frozenset(KEYWORDS)
_TOKEN = re.compile(
    r"""
      (?P<space>[ \r\n\t]+)
    | (?P<directive>--@[^\r\n]*)
    | (?P<comment>--[^\r\n]*|/\*.*?\*/)
    | (?P<word>[A-Za-z_][A-Za-z0-9_@]*)
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[Ee][+-]?[0-9]+)?)
    | (?P<string>'[^']*(?:''[^']*)*')
    | (?P<quoted>"[^"]*(?:""[^"]*)*")
    | (?P<backquoted>`[^`]*(?:``[^`]*)*`)
    | (?P<variable>\$\{[A-Za-z_][A-Za-z0-9_@]*\})
    | (?P<symbol><>|!=|<=|>=|\|\||:=|->|=>|[=<>+\-*/%(),.;\[\]])
    | (?P<unknown>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIGIT_IDENTIFIER = re.compile(r"[0-9][A-Za-z0-9_@]+")
_LAYOUT = frozenset({"space", "comment"})


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True)
class Source:
    """A text and its tokens, the last of which is `eof`; layout and comments are left out."""

    text: str
    tokens: tuple[Token, ...]
    directives: tuple[Token, ...]  # comments that begin with `--@`
    _lines: list[int] = field(repr=False)  # where each line begins

    def position(self, offset: int) -> Position:
        line = bisect_right(self._lines, offset)
        return Position(line, offset - self._lines[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of a line, counted from 1."""
        return self.text.split("\n")[number - 1]


@lru_cache(maxsize=16)
def tokenize(text: str) -> Source:
    """The tokens of a text. It is asked for again on a text's way: to split it, to find variables,
    to parse it."""
    tokens: list[Token] = []
    directives: list[Token] = []
    offset, end = 0, len(text)
    while offset < end:
        match = _TOKEN.match(text, offset)
        assert match is not None and match.lastgroup is not None  # the last group takes anything
        token = _token(match.lastgroup, match.group(), text, offset)
        offset = token.end
        if token.kind == "directive":
            directives.append(token)
        elif token.kind not in _LAYOUT:
            tokens.append(token)
    tokens.append(Token("eof", "<EOF>", end))
    lines = [0, *(m.end() for m in re.finditer("\n", text))]
    return Source(text, tuple(tokens), tuple(directives), lines)


def _token(group: str, value: str, text: str, offset: int) -> Token:
    if group == "word":
        upper = value.upper()
        return Token(upper if upper in _WORDS else "identifier", value, offset)
    if group == "symbol":
        return Token("<>" if value == "!=" else value, value, offset)
    if group == "number":
        name = _DIGIT_IDENTIFIER.match(text, offset)
        if name is not None and len(name.group()) > len(value):
            return Token("digits", name.group(), offset)
        return Token(_number_kind(value), value, offset)
    return Token(group, value, offset)


def _number_kind(value: str) -> str:
    if value.isdigit():
        return "integer"
    return "float" if "E" in value.upper() else "decimal"
