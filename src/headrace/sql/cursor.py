"""The token cursor that all parts of the parser share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from headrace.model.errors import ParseError, Position
from headrace.sql.keywords import NON_RESERVED
from headrace.sql.tokens import Source, Token

T = TypeVar("T")

NAME = "identifier"
_NAMES = NON_RESERVED | {"identifier", "quoted", "backquoted", "digits", "variable"}
_SOURCE_NAME = re.compile(r"[a-zA-Z0-9_-]*")

# How deep brackets may nest. Printing puts one around each operator: what was read can be read
# again.
MAX_NESTING = 1000
TOO_LARGE = (
    "Error processing statement: Statement is too large to parse. "
    "This may be caused by having too many nested expressions in the statement."
)


@dataclass(frozen=True)
class VariableUse:
    """A `${name}` that stands for a whole identifier or literal."""

    name: str
    position: Position
    may_be_literal: bool
    may_be_name: bool


def unquote(text: str) -> str:
    """The text between its quotes, where a doubled quote stands for one."""
    mark = text[0]
    return text[1:-1].replace(mark * 2, mark)


def at(position: Position | None) -> str:
    return f"Line: {position.line}, Col: {position.column}" if position else "?"


class Unexpected(Exception):
    """The token at `index` cannot stand there: one of `wanted` should, or `required` must."""

    def __init__(self, index: int, wanted: tuple[str, ...], required: str | None) -> None:
        super().__init__()
        self.index = index
        self.wanted = wanted
        self.required = required


class Cursor:
    """Errors of syntax end the parse at once. Errors of meaning are kept in `problems`: a statement
    is not read for its meaning before the whole text is known to be well-formed."""

    def __init__(self, source: Source, *, tests: bool = False, start: int = 0) -> None:
        self.source = source
        self.start = start
        self.tests = tests
        self.problems: list[ParseError] = []
        self.variables: list[VariableUse] = []
        self._tokens = source.tokens
        self.index = start
        self._depth = 0
        # What was looked for at the token `_wanted_at`, since the last part that ended there.
        self._wanted: list[str] = []
        self._wanted_at = start

    def whole(self) -> object:
        """Everything up to the end of the text."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------- look

    @property
    def token(self) -> Token:
        return self._tokens[self.index]

    @property
    def kind(self) -> str:
        return self._tokens[self.index].kind

    def peek(self, ahead: int) -> str:
        """The kind of the token so many after this one."""
        index = self.index + ahead
        return self._tokens[index].kind if index < len(self._tokens) else "eof"

    def sees(self, *kinds: str) -> bool:
        """Whether the next tokens are these."""
        if self._tokens[self.index].kind != kinds[0]:
            return False
        return all(self.peek(i) == kind for i, kind in enumerate(kinds[1:], 1))

    def sees_name(self, ahead: int = 0) -> bool:
        return self.peek(ahead) in _NAMES

    @property
    def position(self) -> Position:
        return self.position_of(self.token)

    def position_of(self, token: Token) -> Position:
        return self.source.position(token.start)

    # ------------------------------------------------------------------------------------- take

    def advance(self) -> Token:
        token = self._tokens[self.index]
        if token.kind != "eof":
            self.index += 1
        return token

    def accept(self, *kinds: str) -> bool:
        """Takes these tokens if all of them are next."""
        if not self.sees(*kinds):
            self._want(kinds[0])
            return False
        self.index += len(kinds)
        return True

    def expect(self, *kinds: str) -> Token:
        """Takes these tokens, which must be next; the last of them."""
        for kind in kinds:
            if self.kind != kind:
                self._want(kind)
                raise Unexpected(self.index, tuple(self._wanted), kind)
            token = self.advance()
        return token

    def expect_any(self, kinds: Iterable[str]) -> Token:
        """Takes a token of one of these kinds, which must be next."""
        kinds = tuple(kinds)
        if self.kind not in kinds:
            raise Unexpected(self.index, kinds, None)
        return self.advance()

    def identifier(self, *, keep_case: bool = False) -> str:
        token = self.token
        if token.kind not in _NAMES:
            raise Unexpected(self.index, (NAME,), None)
        self.index += 1
        if token.kind == "variable":
            self.use_variable(token, may_be_name=True)
        if token.kind in ("quoted", "backquoted"):
            return unquote(token.text)
        return token.text if keep_case else token.text.upper()

    def source_name(self) -> str:
        position, is_variable = self.position, self.kind == "variable"
        name = self.identifier()
        if not is_variable and not _SOURCE_NAME.fullmatch(name):
            message = (
                f"Illegal argument at {at(position)}. "
                "Source names may only contain alphanumeric values, '_' or '-'. "
                f"Got: '{name}'"
            )
            self.problems.append(ParseError(message, position, name))
        return name

    def string(self) -> str:
        return unquote(self.expect("string").text)

    def resource_name(self) -> str:
        """The name of something outside: a topic, a subject. It keeps its case."""
        return self.string() if self.kind == "string" else self.identifier(keep_case=True)

    def use_variable(self, token: Token, *, literal: bool = False, may_be_name: bool) -> None:
        use = VariableUse(token.text[2:-1], self.position_of(token), literal, may_be_name)
        self.variables.append(use)

    def listed(self, item: Callable[[], T]) -> tuple[T, ...]:
        """One or more items with commas between them."""
        items = [item()]
        self._wanted.clear()  # an item has ended: what may follow the list is what matters now
        while self.accept(","):
            items.append(item())
            self._wanted.clear()
        return tuple(items)

    def _want(self, kind: str) -> None:
        if self._wanted_at != self.index:
            self._wanted_at = self.index
            self._wanted.clear()
        self._wanted.append(kind)

    # --------------------------------------------------------------------------------- complain

    def fail(self) -> NoReturn:
        """Raises a syntax error: nothing that is allowed here begins with this token."""
        raise Unexpected(self.index, (), None)

    def reject(self, message: str, position: Position | None = None) -> None:
        """Records an error of a well-formed text that has no valid meaning."""
        self.problems.append(ParseError(f"Failed to prepare statement: {message}", position))

    def deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise ParseError(TOO_LARGE, self.position, self.source.text)

    def shallower(self) -> None:
        self._depth -= 1
