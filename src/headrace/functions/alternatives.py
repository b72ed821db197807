"""The overloads of a function as error messages list them, in ksqlDB's spelling and order.

ksqlDB keeps a function's overloads in a hash map by the types of their parameters, and lists them
as that map has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from headrace.functions.declare.declaration import Function, FunctionKind
from headrace.functions.declare.signatures import (
    ANY,
    DECIMAL,
    INTERVAL_UNIT,
    Generic,
    Signature,
)
from headrace.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Lambda,
    Map,
    SqlType,
    Struct,
)

_32_BITS = 0xFFFFFFFF
_FEWEST_BUCKETS = 16


def texts(function: Function, spelled: str) -> list[str]:
    """One line for each overload; `spelled` is how ksqlDB writes the function's own name."""
    buckets = _FEWEST_BUCKETS
    while len(function.overloads) > buckets * 3 // 4:
        buckets *= 2

    def bucket(signature: Signature) -> int:
        code = _of_list(Array(p.type) if p.variadic else p.type for p in signature.parameters)
        return (code ^ code >> 16) % buckets

    signatures = sorted((o.signature for o in function.overloads), key=bucket)
    if function.kind is FunctionKind.SCALAR:
        return [s.text(function.name) for s in signatures]
    return [_GENERIC.sub("T", s.text(spelled)) for s in signatures]


# What ksqlDB's aggregates and table functions call the type that is the caller's choice.
_GENERIC = re.compile(r"\bA\b")


def _of_list(types: Iterable[SqlType]) -> int:
    code = 1
    for type_ in types:
        code = 31 * code + _of(type_) & _32_BITS
    return code


def _of(type_: SqlType) -> int:
    """The hash of a parameter's type in ksqlDB."""
    match type_:
        case Array(element):
            return 31 + _of(element) & _32_BITS
        case Map(key, value):
            return _of_list((key, value))
        case Lambda(inputs, result):
            return 31 * (31 + _of_list(inputs)) + _of(result) & _32_BITS
        case Generic(name):
            return 31 + _of_text(name) & _32_BITS
        case Struct(fields):
            return 31 + sum(_of_text(f.name) ^ _of(f.type) for f in fields) & _32_BITS
    return _SIMPLE[type_]


def _of_text(text: str) -> int:
    code = 0
    for character in text:
        code = 31 * code + ord(character) & _32_BITS
    return code


_SIMPLE: dict[SqlType, int] = {
    BOOLEAN: 1,
    DECIMAL: 2,
    DOUBLE: 3,
    INTEGER: 4,
    BIGINT: 5,
    STRING: 6,
    TIMESTAMP: 7,
    TIME: 8,
    INTERVAL_UNIT: 8,
    DATE: 9,
    BYTES: 10,
    ANY: 11,
}
