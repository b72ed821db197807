"""The tokenizer.

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
from typing import NamedTuple

from headrace.model.errors import ParseError, Position
from headrace.sql.keywords import KEYWORDS

_WORDS = frozenset(KEYWORDS)
_TOKEN = re.compile(
    r"""
      (?P<space>[ \r\n\t]+)
    | (?P<directive>--@[^\r\n]*)
    | (?P<comment>--[^\r\n]*)
    | (?P<opened>/\*)
    | (?P<word>[A-Za-z_][A-Za-z0-9_@]*)
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[Ee][+-]?[0-9]+)?)
    | (?P<quote>['"`])
    | (?P<variable>\$\{[A-Za-z_][A-Za-z0-9_@]*\})
    | (?P<symbol><>|!=|<=|>=|\|\||:=|->|=>|[=<>+\-*/%(),.;\[\]])
    | (?P<unknown>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIGIT_IDENTIFIER = re.compile(r"[0-9][A-Za-z0-9_@]+")
_LAYOUT = frozenset({"space", "comment"})

_QUOTES = {"'": "string", '"': "quoted", "`": "backquoted"}
_REMEMBERED_LENGTH = 16 * 1024


class Token(NamedTuple):
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


def tokenize(text: str, most: int | None = None) -> Source:
    """The tokens of a text, in a time that is proportional to its length, whatever it holds.

    No step of it takes long: other threads can run meanwhile. A text of more than `most` tokens is
    refused.
    """
    if len(text) <= _REMEMBERED_LENGTH:
        return _remembered(text)
    return _tokenize(text, most)


def _tokenize(text: str, most: int | None = None) -> Source:
    tokens: list[Token] = []
    directives: list[Token] = []
    offset, end = 0, len(text)
    last_close = text.rfind("*/")
    while offset < end:
        match = _TOKEN.match(text, offset)
        assert match is not None and match.lastgroup is not None  # the last group takes anything
        group = match.lastgroup
        if group == "opened":
            if offset + 2 <= last_close:
                offset = text.index("*/", offset + 2) + 2
                continue
            token = Token("/", "/", offset)  # a comment that never ends is none
        elif group == "quote":
            token = _quoted(text, offset)
        else:
            token = _token(group, match.group(), text, offset)
        offset = token.end
        if token.kind == "directive":
            directives.append(token)
        elif token.kind not in _LAYOUT:
            tokens.append(token)
        if most is not None and len(tokens) + len(directives) > most:
            raise ParseError(f"The text has more than {most} words and signs: split it up.")
    tokens.append(Token("eof", "<EOF>", end))
    lines = [0, *(m.end() for m in re.finditer("\n", text))]
    return Source(text, tuple(tokens), tuple(directives), lines)


def _quoted(text: str, offset: int) -> Token:
    """The text up to its closing quote; a doubled one does not close it. A quote that nothing
    closes stands for itself."""
    mark = text[offset]
    close = offset
    while True:
        place = text.find(mark, close + 1)
        if place < 0:  # the last pair was no doubled quote then
            if close == offset:
                return Token("unknown", mark, offset)
            return Token(_QUOTES[mark], text[offset:close], offset)
        if not text.startswith(mark, place + 1):
            return Token(_QUOTES[mark], text[offset : place + 1], offset)
        close = place + 1


# A text is asked for again on its way: to see what it is, to split it, to find variables, to parse.
_remembered = lru_cache(maxsize=16)(_tokenize)


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
