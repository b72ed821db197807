"""Substitutes `${variables}` in a statement's text before it is parsed.

A variable may stand for a name or a literal, or for a part of a text in quotes. Its value cannot be
anything else, so that no value can change what kind of statement it is put into.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from headrace.model.errors import ParseError
from headrace.sql.cursor import VariableUse, unquote
from headrace.sql.parser import illegal_argument, read_statement
from headrace.sql.statements.statement_parser import StatementParser
from headrace.sql.tokens import tokenize

_REFERENCE = re.compile(r"\$(\$?)\{([^${}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_@]*")
# A value that is made of values that are made of values may be of any size.
LONGEST = 4 * 1024 * 1024
DEEPEST = 100
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([Ee][+-]?[0-9]+)?")


def substitute(text: str, variables: Mapping[str, str], *, tests: bool = False) -> str:
    """The statement with each variable replaced by its value, checked for the place it stands in.

    Names are compared without case. In quoted text an unknown variable stays as it is, and
    `$${name}` means the characters `${name}`.
    """
    if "${" not in text:
        return text
    values = {name.upper(): value for name, value in variables.items()}
    expansion = _Expansion(variables)
    source = tokenize(text)
    parser = StatementParser(source, tests=tests)
    if source.tokens[0].kind == "eof":
        return text
    read_statement(parser)
    for use in parser.variables:
        _check(use, values.get(use.name.upper(), "${" + use.name + "}"), text)
    pieces: list[str] = []
    copied = 0
    for token in source.tokens:
        if token.kind in ("variable", "string"):
            pieces += (text[copied : token.start], expansion.of(token.text))
            copied = token.end
    return "".join([*pieces, text[copied:]])


def substitute_text(text: str, variables: Mapping[str, str]) -> str:
    """Any text with its variables replaced; quotes inside a value are doubled."""
    return _Expansion(variables).of(text)


class _Expansion:
    """Expands variables in values; each value is computed once, and its size is limited."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._values = {name.upper(): value for name, value in variables.items()}
        self._done: dict[str, str] = {}
        self._within: list[str] = []

    def of(self, text: str) -> str:
        pieces = _REFERENCE.split(text)
        out = [pieces[0]]
        size = len(pieces[0])
        for escaped, reference, rest in zip(*(pieces[i::3] for i in (1, 2, 3)), strict=True):
            piece = "${" + reference + "}" if escaped else self._value(reference, text)
            size += len(piece) + len(rest)
            if size > LONGEST:
                raise ParseError(
                    f"With its variables replaced, a text has more than {LONGEST} characters."
                )
            out += (piece, rest)
        return "".join(out)

    def _value(self, reference: str, text: str) -> str:
        name, has_default, default = reference.partition(":-")
        key = name.upper()
        value = self._values.get(key)
        if value is None:
            return default if has_default else "${" + reference + "}"
        if key not in self._done:
            if key in self._within or len(self._within) >= DEEPEST:
                raise ParseError(
                    f"Infinite loop in property interpolation of {name}", statement=text
                )
            self._within.append(key)
            self._done[key] = self.of(_sanitized(value))
            self._within.pop()
        return self._done[key]


def _sanitized(value: str) -> str:
    if _is_string(value):
        return "'" + unquote(value).replace("'", "''") + "'"
    return value.replace("'", "''")


def _check(use: VariableUse, value: str, statement: str) -> None:
    name = (
        unquote(value) if len(value) > 1 and value[0] == value[-1] and value[0] in '"`' else value
    )
    if use.may_be_name and _NAME.fullmatch(name):
        return
    if use.may_be_literal and _is_literal(value):
        return
    error = illegal_argument(value, use.position, name=not use.may_be_literal)
    error.statement = statement
    raise error


def _is_literal(value: str) -> bool:
    return (
        _is_string(value)
        or value.lower() in ("true", "false")
        or _NUMBER.fullmatch(value) is not None
    )


def _is_string(value: str) -> bool:
    return len(value) > 1 and value[0] == value[-1] == "'"
