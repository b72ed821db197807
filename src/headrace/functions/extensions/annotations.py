"""Signatures of user-defined functions, from Python annotations or from SQL text."""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from headrace.functions.declare.signatures import (
    ANY,
    DECIMAL,
    INTERVAL_UNIT,
    Parameter,
    Signature,
    generics_of,
    parse_signature,
    parse_type,
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
    walk,
)


class DeclarationError(Exception):
    """A function that is not declared well; the text says what to change."""


_PYTHON: dict[object, SqlType] = {
    bool: BOOLEAN,
    int: BIGINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    decimal.Decimal: DECIMAL,
    datetime.date: DATE,
    datetime.time: TIME,
    datetime.datetime: TIMESTAMP,
    typing.Any: ANY,
}
_LISTS = (list, collections.abc.Sequence)
_ROWS = (*_LISTS, *(getattr(collections.abc, n) for n in ("Iterable", "Iterator", "Generator")))
_MAPS = (dict, collections.abc.Mapping)
_UNIONS = (typing.Union, types.UnionType)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class Taken:
    """A parameter of a Python function."""

    name: str
    annotation: object
    nullable: bool
    variadic: bool
    optional: bool


def parameters_of(function: Callable[..., object], skip: int = 0) -> list[Taken]:
    """The positional parameters, without the first `skip` of them."""
    taken = []
    for parameter in list(inspect.signature(function).parameters.values())[skip:]:
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and parameter.name == "config":
            continue
        variadic = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        if not variadic and parameter.kind not in _POSITIONAL:
            raise DeclarationError(
                f"'{parameter.name}' cannot be given in SQL: parameters are positional, and the "
                "only keyword is 'config'"
            )
        annotation = _evaluated(parameter.annotation, function)
        nullable = annotation is not _required(annotation)
        optional = parameter.default is not parameter.empty
        taken.append(Taken(parameter.name, annotation, nullable, variadic, optional))
    return taken


def wants_config(function: Callable[..., object]) -> bool:
    config = inspect.signature(function).parameters.get("config")
    return config is not None and config.kind is inspect.Parameter.KEYWORD_ONLY


def returned(function: Callable[..., object], *, rows: bool = False) -> SqlType:
    """The annotated type of the result; with `rows` that of one row of many."""
    annotation = _required(_evaluated(inspect.signature(function).return_annotation, function))
    if annotation is inspect.Signature.empty:
        raise DeclarationError(
            f"'{function.__name__}' has no return type; annotate it, or write its signature"
        )
    if not rows:
        return sql_type(annotation)
    if typing.get_origin(annotation) in _ROWS:
        return sql_type(typing.get_args(annotation)[0])
    array = sql_type(annotation)
    if not isinstance(array, Array):
        raise DeclarationError("a table function returns many rows: annotate it list[…]")
    return array.element


def sql_type(annotation: object) -> SqlType:
    """The SQL type that an annotation means: a Python type, or SQL's own text for it."""
    annotation = _required(annotation)
    if isinstance(annotation, SqlType):
        return annotation
    if isinstance(annotation, str):
        try:
            return parse_type(annotation)
        except ValueError:
            raise DeclarationError(f"'{annotation}' is not a SQL type") from None
    if isinstance(annotation, collections.abc.Hashable) and annotation in _PYTHON:
        return _PYTHON[annotation]
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in _LISTS and len(args) == 1:
        return Array(sql_type(args[0]))
    if origin in _MAPS and len(args) == 2:
        return Map(sql_type(args[0]), sql_type(args[1]))
    raise DeclarationError(
        f"no SQL type is known for {annotation!r}; write the function's signature instead"
    )


def _required(annotation: object) -> object:
    """The annotation without its `| None`."""
    if typing.get_origin(annotation) not in _UNIONS:
        return annotation
    others = [a for a in typing.get_args(annotation) if a is not type(None)]
    return others[0] if len(others) == 1 else annotation


def _evaluated(annotation: object, function: Callable[..., object]) -> object:
    """What a name in quotes stands for; text that is no Python is SQL."""
    names = getattr(inspect.unwrap(function), "__globals__", {})
    while isinstance(annotation, str):
        try:
            annotation = eval(annotation, dict(names))
        except Exception:  # text that is not Python raises anything: it is SQL
            return annotation
    return annotation


# ------------------------------------------------------------------------------- signatures


def annotated(parameters: Iterable[Taken], returns: SqlType) -> list[Signature]:
    """The signatures that annotations mean: one more for each parameter that has a default."""
    read: list[Parameter] = []
    shorter: list[tuple[Parameter, ...]] = []
    for p in parameters:
        if p.annotation is inspect.Parameter.empty:
            raise DeclarationError(
                f"'{p.name}' has no type; annotate it, or write the function's signature"
            )
        if p.optional:
            shorter.append(tuple(read))
        read.append(Parameter(p.name, sql_type(p.annotation), p.variadic))
    return [Signature(taken, returns) for taken in (*shorter, tuple(read))]


def written(texts: Iterable[str]) -> list[Signature]:
    signatures = []
    for text in texts:
        try:
            signatures.append(parse_signature(text))
        except ValueError as error:
            raise DeclarationError(str(error)) from None
    return signatures


def checked(signature: Signature, *, aggregate: bool = False) -> Signature:
    """The signature, if a Python function can have it."""
    constants = [p.constant for p in signature.parameters]
    if any(constants) and not aggregate:
        raise DeclarationError("only aggregates take constants")
    if sorted(constants) != constants:
        raise DeclarationError("constants come after all columns")
    if sum(p.variadic for p in signature.parameters) > 1:
        raise DeclarationError("only one parameter can take any number of arguments")
    for parameter in signature.parameters:
        if isinstance(parameter.type, Lambda) or parameter.type == INTERVAL_UNIT:
            raise DeclarationError(f"a Python function cannot take '{parameter.type}'")
    bound = {g for p in signature.parameters for g in generics_of(p.type)}
    for generic in generics_of(signature.returns):
        if generic not in bound:
            raise DeclarationError(f"the return type {generic} is no parameter's type")
    for part in walk(signature.returns):
        if part in (ANY, DECIMAL, INTERVAL_UNIT) or isinstance(part, Lambda):
            more = "; say its precision and scale" if part == DECIMAL else ""
            raise DeclarationError(f"the return type {part} is not certain{more}")
    return signature


def fitting(function: Callable[..., object], count: int, what: str) -> None:
    """Refuses a function that cannot be called with so many arguments."""
    keywords: dict[str, object] = {"config": {}} if wants_config(function) else {}
    try:
        inspect.signature(function).bind(*[None] * count, **keywords)
    except TypeError as error:
        raise DeclarationError(f"{what} does not fit its signature: {error}") from None


def with_integers(signature: Signature) -> list[Signature]:
    """Aggregates take no implicit casts, so that `int` has to mean both kinds of integers."""
    narrow = tuple(
        replace(p, type=INTEGER) if p.type == BIGINT and not p.constant else p
        for p in signature.parameters
    )
    if narrow == signature.parameters:
        return [signature]
    return [replace(signature, parameters=narrow), signature]
