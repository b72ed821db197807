"""The decorators `@udf`, `@udaf` and `@udtf`, which declare user-defined functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from headrace.functions.declare.declaration import (
    CallContext,
    Category,
    Function,
    FunctionKind,
    Overload,
    Steps,
    StepsFactory,
)
from headrace.functions.declare.signatures import Signature
from headrace.functions.extensions.annotations import (
    DeclarationError,
    annotated,
    checked,
    fitting,
    parameters_of,
    returned,
    wants_config,
    with_integers,
    written,
)
from headrace.functions.extensions.calling import (
    Body,
    UserSteps,
    reason,
    scalar_form,
    settings_of,
    table_form,
)
from headrace.functions.extensions.shipping import Extension
from headrace.model.errors import StatementError

_VECTORIZED = (None, "arrow", "pandas")
_CATEGORIES = {
    FunctionKind.SCALAR: Category.OTHER,
    FunctionKind.AGGREGATE: Category.AGGREGATE,
    FunctionKind.TABLE: Category.TABLE,
}


@dataclass
class Collected:
    """What the file that is being loaded has declared so far."""

    extension: Extension | None
    functions: list[Function]


_COLLECTED: ContextVar[Collected | None] = ContextVar("collected", default=None)


@contextmanager
def collecting(extension: Extension | None = None) -> Iterator[list[Function]]:
    """Gathers what is declared inside. Declarations elsewhere are checked, and go nowhere."""
    collected = Collected(extension, [])
    token = _COLLECTED.set(collected)
    try:
        yield collected.functions
    finally:
        _COLLECTED.reset(token)


@dataclass(frozen=True)
class _About:
    """The arguments of a decorator besides the types."""

    name: str | None
    description: str | None
    author: str
    version: str
    parameters: Mapping[str, str]

    def sql_name(self, target: Any) -> str:
        name: str = self.name or re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", target.__name__)
        if not name.isidentifier():
            raise DeclarationError(f"'{name}' is not a name for a function")
        return name.upper()

    def text(self, target: object) -> str:
        own = inspect.cleandoc(target.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        return self.description or own

    def declare(self, kind: FunctionKind, target: object, overloads: Sequence[Overload]) -> None:
        collected = _COLLECTED.get()
        if collected is not None:
            collected.functions.append(
                Function(
                    self.sql_name(target),
                    kind,
                    self.text(target),
                    tuple(self._described(o) for o in overloads),
                    _CATEGORIES[kind],
                    author=self.author,
                    version=self.version,
                )
            )

    def _described(self, overload: Overload) -> Overload:
        parameters = (
            replace(p, description=self.parameters.get(p.name, p.description))
            for p in overload.signature.parameters
        )
        return replace(
            overload, signature=replace(overload.signature, parameters=tuple(parameters))
        )


def udf(
    *signatures: object,
    name: str | None = None,
    description: str | None = None,
    author: str = "",
    version: str = "",
    parameters: Mapping[str, str] | None = None,
    vectorized: str | None = None,
    nulls: bool = False,
) -> Any:
    """Declares a scalar function: one value for each row.

    `signatures` are written as `"(v1 INTEGER, v2 INTEGER) -> BIGINT"`; without them the types are
    the annotations'. With `vectorized="arrow"` or `"pandas"` the function takes and gives whole
    columns. Where an argument is null the result is null and the function is not called, unless
    the parameter is annotated `… | None`, or `nulls` is true.
    """
    about = _About(name, description, author, version, parameters or {})
    texts, bare = _parted(signatures)

    def declare(function: Callable[..., object]) -> Callable[..., object]:
        if vectorized not in _VECTORIZED:
            raise DeclarationError(f"vectorized is 'arrow' or 'pandas', not '{vectorized}'")
        if vectorized and not texts:
            raise DeclarationError("a vectorized function needs its signature written")
        body = _body(about.sql_name(function), function, nulls or vectorized is not None)
        form = scalar_form(body, vectorized or "row")
        overloads = [
            Overload(signature, form, description=about.text(function))
            for signature in _signatures(function, texts, rows=False)
        ]
        about.declare(FunctionKind.SCALAR, function, overloads)
        return function

    return declare if bare is None else declare(bare)


def udtf(
    *signatures: object,
    name: str | None = None,
    description: str | None = None,
    author: str = "",
    version: str = "",
    parameters: Mapping[str, str] | None = None,
    nulls: bool = False,
) -> Any:
    """Declares a table function: it returns or yields any number of rows for each row.

    A signature gives the type of one of them: `"(text STRING) -> STRING"`. The annotation is that
    of the function: `list[str]` or `Iterator[str]`. Where an argument is null there are no rows,
    unless the function takes nulls, as with `udf`.
    """
    about = _About(name, description, author, version, parameters or {})
    texts, bare = _parted(signatures)

    def declare(function: Callable[..., object]) -> Callable[..., object]:
        form = table_form(_body(about.sql_name(function), function, nulls))
        overloads = [
            Overload(signature, form, description=about.text(function))
            for signature in _signatures(function, texts, rows=True)
        ]
        about.declare(FunctionKind.TABLE, function, overloads)
        return function

    return declare if bare is None else declare(bare)


def udaf(
    *signatures: object,
    name: str | None = None,
    description: str | None = None,
    author: str = "",
    version: str = "",
    parameters: Mapping[str, str] | None = None,
) -> Any:
    """Declares an aggregate: a class with `initialize`, `add`, `merge`, `result`, maybe `undo`.

    Its constructor takes the constant arguments, written `const n INTEGER` in a signature; without
    signatures the types are the annotations of `__init__`, `add` and `result`.
    """
    about = _About(name, description, author, version, parameters or {})
    texts, bare = _parted(signatures)

    def declare(aggregate: type[object]) -> type[object]:
        sql_name = about.sql_name(aggregate)
        for step in ("initialize", "add", "merge", "result"):
            if not callable(getattr(aggregate, step, None)):
                raise DeclarationError(f"{sql_name} has no method '{step}'")
        overloads = [
            Overload(
                signature,
                description=about.text(aggregate),
                steps=_steps(sql_name, aggregate, signature),
                undoes=callable(getattr(aggregate, "undo", None)),
            )
            for signature in _aggregate_signatures(aggregate, texts)
        ]
        about.declare(FunctionKind.AGGREGATE, aggregate, overloads)
        return aggregate

    return declare if bare is None else declare(bare)


def _parted(signatures: tuple[Any, ...]) -> tuple[tuple[str, ...], Any]:
    """The texts, and the target where the decorator is written without parentheses."""
    if len(signatures) == 1 and callable(signatures[0]):
        return (), signatures[0]
    if not all(isinstance(s, str) for s in signatures):
        raise DeclarationError("a signature is a text such as '(v1 INTEGER) -> BIGINT'")
    return signatures, None


def _body(name: str, function: Callable[..., object], nulls: bool) -> Body:
    takes_null = () if nulls else tuple(p.nullable for p in parameters_of(function))
    return Body(name, function, takes_null, wants_config(function), _extension())


def _extension() -> Extension | None:
    collected = _COLLECTED.get()
    return None if collected is None else collected.extension


def _signatures(
    function: Callable[..., object], texts: tuple[str, ...], *, rows: bool
) -> list[Signature]:
    if not texts:
        read = annotated(parameters_of(function), returned(function, rows=rows))
        return [checked(signature) for signature in read]
    signatures = [checked(signature) for signature in written(texts)]
    for signature in signatures:
        fitting(function, len(signature.parameters), f"'{function.__name__}'")
    return signatures


def _aggregate_signatures(aggregate: type[Any], texts: tuple[str, ...]) -> list[Signature]:
    if texts:
        signatures = [checked(signature, aggregate=True) for signature in written(texts)]
    else:
        constants = annotated(_constants_of(aggregate), returned(aggregate.result))
        (columns,) = annotated(parameters_of(aggregate.add, skip=2), returned(aggregate.result))
        signatures = [
            checked(wide, aggregate=True)
            for constant in constants
            for wide in with_integers(_joined(columns, constant))
        ]
    for signature in signatures:
        count = sum(p.constant for p in signature.parameters)
        columns_count = len(signature.parameters) - count
        fitting(aggregate, count, f"the constructor of '{aggregate.__name__}'")
        fitting(aggregate.add, columns_count + 2, "'add'")
        if hasattr(aggregate, "undo"):
            fitting(aggregate.undo, columns_count + 2, "'undo'")
    return signatures


def _constants_of(aggregate: type[Any]) -> list[Any]:
    constructor = aggregate.__init__
    return [] if constructor is object.__init__ else parameters_of(constructor, skip=1)


def _joined(columns: Signature, constants: Signature) -> Signature:
    constant = tuple(replace(p, constant=True) for p in constants.parameters)
    return Signature(columns.parameters + constant, columns.returns)


def _steps(name: str, aggregate: type[object], signature: Signature) -> StepsFactory:
    configured = wants_config(aggregate)
    extension = _extension()

    def make(context: CallContext) -> Steps:
        constants = _constants(signature, context)
        keywords = {"config": settings_of(name, context.settings)} if configured else {}
        try:
            made = aggregate(*constants, **keywords)
        except Exception as error:  # a user's code may raise anything
            raise StatementError(f"Failed to make the aggregate {name}: {reason(error)}") from error
        return UserSteps(name, made, context.arg_types, context.return_type, extension)

    return make


def _constants(signature: Signature, context: CallContext) -> Sequence[object]:
    """The values of the constant arguments: the last literals, as many as there can be."""
    declared = [p for p in signature.parameters if p.constant]
    literals = context.arg_literals
    if not any(p.variadic for p in declared):
        return literals[len(literals) - len(declared) :]
    columns = len(signature.parameters) - len(declared)
    return literals[columns:] if len(context.arg_types) > columns else literals
