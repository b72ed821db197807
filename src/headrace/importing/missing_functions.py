"""Functions that a ksqlDB has and Headrace does not: Java functions of its users, to be written in
Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.functions.registry import REGISTRY
from headrace.model.types import SqlType
from headrace.sql import ast

# Parameters, by name and type, and the result, in SQL's types.
Signature = tuple[tuple[tuple[str, str], ...], str]

_DECORATORS = {"SCALAR": "udf", "TABLE": "udtf", "AGGREGATE": "udaf"}
_UNKNOWN = "STRING"
_GUESSED = (
    "# The types are guessed from a call. If it gives many rows it is a udtf, if it is an",
    "# aggregate a udaf.",
)
_FUNCTION = """\
def {name}({arguments}):
    raise NotImplementedError  # what the Java function did
"""
_AGGREGATE = """\
class {camel}:
    def initialize(self):
        raise NotImplementedError  # the state of an empty group

    def add(self, state, {arguments}):
        raise NotImplementedError  # one more row

    def merge(self, left, right):
        raise NotImplementedError  # two sessions became one

    def result(self, state):
        raise NotImplementedError
"""


def missing_functions(statement: ast.Statement) -> list[ast.Call]:
    """The calls of functions that are not there, the first of each name."""
    calls: dict[str, ast.Call] = {}
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and REGISTRY.kind(node.name.upper()) is None:
            calls.setdefault(node.name.upper(), node)
    return list(calls.values())


@dataclass(frozen=True)
class MissingFunction:
    """A function to write; its types are `certain` if ksqlDB told them."""

    name: str
    kind: str
    signatures: tuple[Signature, ...]
    certain: bool

    def stub(self) -> str:
        """Where to begin: a Python file for the directory of `ksql.extension.dir`."""
        decorator = _DECORATORS.get(self.kind, "udf")
        body = _AGGREGATE if self.kind == "AGGREGATE" else _FUNCTION
        name = _identifier(self.name, 0)
        parameters = self.signatures[0][0]
        return "\n".join(
            [
                f"from headrace.functions import {decorator}",
                "",
                *(() if self.certain else _GUESSED),
                f"@{decorator}({', '.join(map(_signature, self.signatures))})",
                body.format(
                    name=name,
                    camel=name.title().replace("_", ""),
                    arguments=", ".join(p for p, _ in parameters),
                ),
            ]
        )


def described(name: str, told: Mapping[str, Any]) -> MissingFunction:
    """As ksqlDB's DESCRIBE FUNCTION tells it."""
    signatures = tuple(
        (
            tuple(
                (_identifier(a.get("name"), i), str(a["type"]))
                for i, a in enumerate(variation["arguments"])
            ),
            str(variation["returnType"]),
        )
        for variation in told["functions"]
    )
    kind = str(told.get("type") or "SCALAR").upper()
    return MissingFunction(name, kind, signatures, certain=True)


def guessed(call: ast.Call, columns: Mapping[str, SqlType]) -> MissingFunction:
    """As a call shows it: the names and types of the columns that it is given."""
    parameters = tuple(
        (_identifier(arg.name, i), str(columns.get(arg.name, _UNKNOWN)))
        if isinstance(arg, ast.ColumnRef)
        else (_identifier(None, i), _literal_type(arg))
        for i, arg in enumerate(call.args)
    )
    return MissingFunction(call.name.upper(), "SCALAR", ((parameters, _UNKNOWN),), certain=False)


def _identifier(name: object, place: int) -> str:
    text = str(name or "").lower()
    return text if text.isidentifier() else f"arg{place + 1}"


def _literal_type(arg: ast.Expression) -> str:
    match arg:
        case ast.BooleanLiteral():
            return "BOOLEAN"
        case ast.IntegerLiteral():
            return "INTEGER"
        case ast.LongLiteral():
            return "BIGINT"
        case ast.DoubleLiteral() | ast.DecimalLiteral():
            return "DOUBLE"
    return _UNKNOWN


def _signature(signature: Signature) -> str:
    parameters, result = signature
    declared = ", ".join(f"{name} {type_}" for name, type_ in parameters)
    return f'"({declared}) -> {result}"'


def all_of(functions: Iterable[MissingFunction]) -> Iterator[MissingFunction]:
    """Each once, those of which ksqlDB told more first."""
    seen: dict[str, MissingFunction] = {}
    for function in functions:
        if function.name not in seen or (function.certain and not seen[function.name].certain):
            seen[function.name] = function
    return iter(seen.values())
