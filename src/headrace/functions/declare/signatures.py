"""Parses the short notation of parameter and return types.

    (str STRING, pos INTEGER, length INTEGER) -> STRING
    (array ARRAY<A>, item A) -> BOOLEAN                       generics: single capital letters
    (separator STRING, inputs STRING...) -> STRING            any number of them, anywhere
    (array ARRAY<A>, fn LAMBDA (A) => B) -> ARRAY<B>
    (value DECIMAL) -> DECIMAL                                any precision and scale
    (value A, const n INTEGER) -> ARRAY<A>                    must be a constant (aggregates)
    (n INTEGER!, texts STRING...) -> STRING                   fails where the argument is null

Besides the SQL types there are `ANY` (no restriction), `STRUCT` (any struct) and `INTERVAL` (a
unit of time, written bare in SQL; its value is the unit's milliseconds).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from headrace.model.types import (
    PRIMITIVES,
    Array,
    Decimal,
    Field,
    Lambda,
    Map,
    Primitive,
    SqlType,
    Struct,
)

# Types that only a parameter can have.
DECIMAL = Primitive("DECIMAL")
ANY = Primitive("ANY")
INTERVAL_UNIT = Primitive("INTERVAL UNIT")
ANY_STRUCT = Struct(())


@dataclass(frozen=True)
class Generic(SqlType):
    """A type that the call's arguments decide; the same letter is the same type everywhere."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Parameter:
    """A parameter; `type` is that of one argument, also of a variadic one."""

    name: str
    type: SqlType
    variadic: bool = False
    constant: bool = False
    required: bool = False
    description: str = ""


@dataclass(frozen=True)
class Signature:
    parameters: tuple[Parameter, ...]
    returns: SqlType

    @property
    def variadic(self) -> int | None:
        """The index of the parameter that takes any number of arguments."""
        return next((i for i, p in enumerate(self.parameters) if p.variadic), None)

    def spread(self, count: int) -> tuple[Parameter, ...] | None:
        """One parameter for each of `count` arguments, or None if that many do not fit."""
        at = self.variadic
        if at is None:
            return self.parameters if count == len(self.parameters) else None
        times = count - (len(self.parameters) - 1)
        if times < 0:
            return None
        before, here, after = (
            self.parameters[:at],
            self.parameters[at],
            self.parameters[at + 1 :],
        )
        return before + (here,) * times + after

    def text(self, name: str) -> str:
        """As ksqlDB prints it among the valid alternatives: `LEN(VARCHAR string)`."""
        return f"{name}({', '.join(map(_parameter_text, self.parameters))})"

    def identity(self, name: str) -> str:
        """The overload's stable id: `SUBSTRING(STRING, INTEGER)`."""
        types = (f"{p.type}..." if p.variadic else str(p.type) for p in self.parameters)
        return f"{name}({', '.join(types)})"


def _parameter_text(parameter: Parameter) -> str:
    dots = "..." if parameter.variadic else ""
    return f"{parameter_type_text(parameter.type)}{dots} {parameter.name}".rstrip()


# ksqlDB names two types differently where it speaks of parameters.
_PARAMETER_NAMES = {"INTEGER": "INT", "STRING": "VARCHAR"}


def parameter_type_text(type_: SqlType) -> str:
    match type_:
        case Primitive(name):
            return _PARAMETER_NAMES.get(name, name)
        case Decimal():
            return "DECIMAL"
        case Array(element):
            return f"ARRAY<{parameter_type_text(element)}>"
        case Map(key, value):
            return f"MAP<{parameter_type_text(key)}, {parameter_type_text(value)}>"
        case Struct(fields):
            inner = ", ".join(f"{f.name} {parameter_type_text(f.type)}" for f in fields)
            return f"STRUCT<{inner}>"
        case Lambda(inputs, result):
            taken = ", ".join(map(parameter_type_text, inputs))
            return f"LAMBDA ({taken}) => {parameter_type_text(result)}"
    return str(type_)


def generics_of(type_: SqlType) -> Iterator[Generic]:
    """Every generic that occurs in the type."""
    match type_:
        case Generic():
            yield type_
        case Array(element):
            yield from generics_of(element)
        case Map(key, value):
            yield from generics_of(key)
            yield from generics_of(value)
        case Struct(fields):
            for field in fields:
                yield from generics_of(field.type)
        case Lambda(inputs, result):
            for part in (*inputs, result):
                yield from generics_of(part)


def has_generics(type_: SqlType) -> bool:
    return next(generics_of(type_), None) is not None


# ------------------------------------------------------------------------------------- reading

_TOKEN = re.compile(r"\s*(->|=>|\.\.\.|[(),<>!]|`[^`]+`|\w+)")
_NAMED: dict[str, SqlType] = {
    **PRIMITIVES,
    "ANY": ANY,
    "INTERVAL": INTERVAL_UNIT,
}


def parse_signature(text: str) -> Signature:
    reader = _Reader(text)
    signature = reader.signature()
    reader.end()
    return signature


def parse_type(text: str) -> SqlType:
    reader = _Reader(text)
    type_ = reader.type()
    reader.end()
    return type_


class _Reader:
    """Reads one text, token by token. What it does not understand is a ValueError."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _TOKEN.findall(text)
        self.at = 0
        if _TOKEN.sub("", text).strip():
            raise ValueError(f"Not a signature: {text}")

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if not token or (expected is not None and token != expected):
            raise ValueError(f"Expected {expected or 'more'} at token {self.at} of: {self.text}")
        self.at += 1
        return token

    def took(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.at += 1
        return True

    def end(self) -> None:
        if self.peek():
            raise ValueError(f"Unexpected '{self.peek()}' in: {self.text}")

    def signature(self) -> Signature:
        self.take("(")
        parameters: list[Parameter] = []
        while not self.took(")"):
            if parameters:
                self.take(",")
            constant = self.took("const")
            name = self.take().strip("`")
            type_ = self.type()
            required = self.took("!")
            parameters.append(Parameter(name, type_, self.took("..."), constant, required))
        self.take("->")
        return Signature(tuple(parameters), self.type())

    def type(self) -> SqlType:
        name = self.take()
        match name.upper():
            case "DECIMAL":
                return self.decimal()
            case "ARRAY":
                self.take("<")
                element = self.type()
                self.take(">")
                return Array(element)
            case "MAP":
                self.take("<")
                key = self.type()
                self.take(",")
                value = self.type()
                self.take(">")
                return Map(key, value)
            case "STRUCT":
                return self.struct()
            case "LAMBDA":
                inputs = self.listed("(", ")")
                self.take("=>")
                return Lambda(inputs, self.type())
            case known if known in _NAMED:
                return _NAMED[known]
        if len(name) == 1 and name.isupper():
            return Generic(name)
        raise ValueError(f"Unknown type '{name}' in: {self.text}")

    def decimal(self) -> SqlType:
        if not self.took("("):
            return DECIMAL
        precision = int(self.take())
        self.take(",")
        scale = int(self.take())
        self.take(")")
        return Decimal(precision, scale)

    def struct(self) -> Struct:
        if not self.took("<"):
            return ANY_STRUCT
        fields: list[Field] = []
        while not self.took(">"):
            if fields:
                self.take(",")
            fields.append(Field(self.take().strip("`"), self.type()))
        return Struct(tuple(fields))

    def listed(self, opening: str, closing: str) -> tuple[SqlType, ...]:
        self.take(opening)
        types: list[SqlType] = []
        while not self.took(closing):
            if types:
                self.take(",")
            types.append(self.type())
        return tuple(types)
