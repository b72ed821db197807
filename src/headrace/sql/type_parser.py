"""Parses types and numbers."""

from __future__ import annotations

import decimal
import math

from headrace.model.errors import ParseError, Position
from headrace.model.types import PRIMITIVES, Array, Decimal, Field, Map, SqlType, Struct
from headrace.sql.cursor import Cursor
from headrace.sql.tree import (
    DecimalLiteral,
    DoubleLiteral,
    IntegerLiteral,
    Literal,
    LongLiteral,
    TypeRef,
)

NUMBERS = frozenset({"integer", "decimal", "float"})

_MAX_INT = 2**31 - 1
_MAX_LONG = 2**63 - 1
# Enough for any literal that fits a statement: a literal keeps all of its digits.
_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


class TypeParser(Cursor):
    def whole(self) -> object:
        self.type()
        return self.expect("eof")

    def type(self) -> SqlType:
        self.deeper()
        type_ = self._prefix_type()
        while self.accept("ARRAY"):
            type_ = Array(type_)
        self.shallower()
        return type_

    def _prefix_type(self) -> SqlType:
        if self.accept("ARRAY", "<"):
            element = self.type()
            self.expect(">")
            return Array(element)
        if self.accept("MAP", "<"):
            key = self.type()
            self.expect(",")
            value = self.type()
            self.expect(">")
            return Map(key, value)
        if self.accept("STRUCT", "<"):
            return self._struct()
        if self.accept("DECIMAL"):
            return self._decimal()
        if not self.sees_name():
            self.fail()
        name = self.identifier()
        if self.accept("("):
            self.listed(self._type_parameter)
            self.expect(")")
        primitive = PRIMITIVES.get(name.upper())
        return primitive if primitive is not None else TypeRef(name)

    def _type_parameter(self) -> None:
        self.expect_any(("STRING", "integer"))

    def _struct(self) -> Struct:
        fields: tuple[Field, ...] = ()
        if self.kind != ">":
            fields = self.listed(lambda: Field(self.identifier(), self.type()))
        self.expect(">")
        seen: dict[str, Field] = {}
        for field in fields:
            if field.name in seen:
                self.reject(
                    f"Duplicate field names found in STRUCT: '{seen[field.name]}' and '{field}'"
                )
            seen.setdefault(field.name, field)
        return Struct(fields)

    def _decimal(self) -> Decimal:
        self.expect("(")
        precision = self.integer("DECIMAL(PRECISION)")
        self.expect(",")
        scale = self.integer("DECIMAL(SCALE)")
        self.expect(")")
        rules = (
            (precision > 0, "DECIMAL precision must be >= 1"),
            (scale >= 0, "DECIMAL scale must be >= 0"),
            (precision >= scale, "DECIMAL precision must be >= scale"),
        )
        for holds, rule in rules:
            if not holds:
                self.reject(f"{rule}: DECIMAL({precision},{scale})")
                break
        return Decimal(precision, scale)

    # ---------------------------------------------------------------------------------- numbers

    def sees_number(self) -> bool:
        return self.kind in NUMBERS or (self.kind == "-" and self.peek(1) in NUMBERS)

    def number(self) -> Literal:
        position = self.position
        kind, text = self._number_text()
        if kind == "integer":
            return self._integer(text, position)
        if kind == "decimal":
            return DecimalLiteral(_EXACT.create_decimal(text), position=position)
        value = float(text)
        if math.isinf(value):
            self._bad_number(f"Number overflows DOUBLE: {text}", position)
            value = 0.0
        return DoubleLiteral(value, position=position)

    def integer(self, what: str) -> int:
        """A number that must be an INTEGER; `what` names what it is for."""
        position = self.position
        literal = self.number()
        if isinstance(literal, IntegerLiteral):
            return literal.value
        self.reject(f"Value must be integer for command: {what}", position)
        return 0

    def long(self) -> int:
        """A number that must be a whole number of 64 bits."""
        position = self.position
        kind, text = self._number_text()
        value = _whole(text) if kind == "integer" else None
        if value is None:
            self.reject(f'For input string: "{text}"', position)
        return value or 0

    def _number_text(self) -> tuple[str, str]:
        sign = "-" if self.accept("-") else ""
        if self.kind not in NUMBERS:
            self.fail()
        token = self.advance()
        return token.kind, sign + token.text

    def _integer(self, text: str, position: Position) -> Literal:
        value = _whole(text)
        if value is None:
            self._bad_number(f"Invalid numeric literal: {text}", position)
            value = 0
        if -_MAX_INT - 1 <= value <= _MAX_INT:
            return IntegerLiteral(value, position=position)
        return LongLiteral(value, position=position)

    def _bad_number(self, message: str, position: Position) -> None:
        # ksqlDB names the column after the one where the number begins.
        where = f"line {position.line}:{position.column + 1}"
        self.problems.append(
            ParseError(f"Failed to prepare statement: {where}: {message}", position)
        )


def _whole(text: str) -> int | None:
    """The number, if it fits 64 bits."""
    digits = text.lstrip("-").lstrip("0")
    if len(digits) > len(str(_MAX_LONG)):  # Python refuses to convert very long numbers
        return None
    value = int(text)
    return value if -_MAX_LONG - 1 <= value <= _MAX_LONG else None
