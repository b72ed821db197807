"""JAAS login strings, `sasl.jaas.config`: a login module's class, a flag, and options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headrace.model.errors import HeadraceError

_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_CLASS = re.compile(r"[A-Za-z][\w$]*(\.[A-Za-z][\w$]*)*")
# Java's own tokenizer: a word needs quotes if it has any other character.
_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<mark>[=;])
      | "(?P<double>(?:[^"\\\n]|\\.)*)"
      | '(?P<single>(?:[^'\\\n]|\\.)*)'
      | (?P<word>[\w.$-]+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\([0-7]{1,3}|.)", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b", "a": "\a", "v": "\v"}


@dataclass(frozen=True)
class Login:
    """The class of a login module, and its options."""

    class_name: str
    options: Mapping[str, str]

    @property
    def module(self) -> str:
        """The class without its package."""
        return self.class_name.rpartition(".")[2]


@dataclass(frozen=True)
class _Token:
    text: str
    at: int
    quoted: bool = False

    def is_mark(self, mark: str) -> bool:
        return self.text == mark and not self.quoted


def read_login(text: str) -> Login:
    """Reads a string with one login module. Errors repeat nothing of it that may be a secret."""
    tokens = list(_tokens(text))
    if not tokens or tokens[0].quoted or not _CLASS.fullmatch(tokens[0].text):
        raise _unreadable("it has to begin with the class of a login module")
    if len(tokens) < 2 or tokens[1].quoted or tokens[1].text.lower() not in _FLAGS:
        raise _unreadable("after the class of the login module there has to be 'required'")
    end = next((i for i, token in enumerate(tokens) if token.is_mark(";")), None)
    if end is None:
        raise _unreadable("it has to end with a semicolon")
    if end + 1 < len(tokens):
        raise _unreadable("it names more than one login module, or has a semicolon too many")
    return Login(tokens[0].text, _options(tokens[2:end]))


def _options(tokens: list[_Token]) -> dict[str, str]:
    options: dict[str, str] = {}
    for at in range(0, len(tokens), 3):
        match tokens[at : at + 3]:
            case [name, equals, value] if (
                equals.is_mark("=") and not name.is_mark("=") and not value.is_mark("=")
            ):
                options[name.text] = value.text
            case _:
                raise _unreadable(
                    f'an option is no name="value" (at character {tokens[at].at + 1})'
                )
    return options


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            quote = text[at] in "\"'"
            raise _unreadable(
                f"a quote is not closed (at character {at + 1})"
                if quote
                else f"a value with characters other than letters, digits and . _ - $ needs double "
                f"quotes (at character {at + 1})"
            )
        kind = str(match.lastgroup)
        if kind != "space":
            quoted = kind in ("double", "single")
            yield _Token(
                _ESCAPED.sub(_unescaped, match[kind]) if quoted else match[kind], at, quoted
            )
        at = match.end()


def _unescaped(match: re.Match[str]) -> str:
    told = match[1]
    return chr(int(told, 8)) if told[0] in "01234567" else _CONTROLS.get(told, told)


def _unreadable(reason: str) -> HeadraceError:
    return HeadraceError(
        f"sasl.jaas.config cannot be read: {reason}. It has the form 'org.apache.kafka.common."
        'security.plain.PlainLoginModule required username="…" password="…";\'.'
    )
