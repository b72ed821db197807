"""The function registry: all functions by name, and overload resolution.

An overload is chosen as ksqlDB does: first without casts, then with implicit ones; of several
that fit, one with a fixed number of parameters wins, then the one with more parameters, with fewer
generics, without `ANY...`, with the later variadic. A tie is an ambiguous call.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headrace.functions import aggregates, scalar, table_functions
from headrace.functions.alternatives import texts
from headrace.functions.declare.declaration import Function, FunctionKind, Overload
from headrace.functions.declare.signatures import (
    ANY,
    ANY_STRUCT,
    DECIMAL,
    INTERVAL_UNIT,
    Generic,
    Parameter,
    Signature,
    has_generics,
    parameter_type_text,
)
from headrace.model.errors import StatementError
from headrace.model.types import (
    EXACT_DECIMALS,
    NULL,
    NUMERIC_RANK,
    Array,
    Field,
    Lambda,
    Map,
    SqlType,
    Struct,
    base_name,
)


@dataclass(frozen=True)
class LambdaShape:
    """A lambda argument before its types are known."""

    arity: int

    def __str__(self) -> str:
        return "LAMBDA"


Argument = SqlType | LambdaShape
Bindings = dict[Generic, SqlType]


@dataclass(frozen=True)
class Resolution:
    """The overload that a call means, and how its types follow from the arguments'."""

    function: Function
    overload: Overload
    args: tuple[Argument, ...]

    @property
    def signature(self) -> str:
        return self.overload.signature.identity(self.function.name)

    @property
    def literal_count(self) -> int:
        """How many of the last arguments have to be constants."""
        return sum(p.constant for p in self._parameters())

    def lambda_inputs(
        self, index: int, known: Mapping[int, SqlType] | None = None
    ) -> tuple[SqlType, ...]:
        """The types that the lambda at `index` is called with; `known` are results of others."""
        parameter = self._parameters()[index].type
        assert isinstance(parameter, Lambda)
        bindings = self._bindings(known or {})
        return tuple(_resolved(i, NULL, bindings) for i in parameter.inputs)

    def finish(
        self, lambda_results: Mapping[int, SqlType] | None = None
    ) -> tuple[tuple[SqlType, ...], SqlType]:
        """The types to cast the arguments to, and the type of the call."""
        bindings = self._bindings(lambda_results or {})
        types: list[SqlType] = []
        for parameter, arg in zip(self._parameters(), self.args, strict=True):
            given = NULL if isinstance(arg, LambdaShape) else arg
            types.append(_resolved(parameter.type, given, bindings))
        if self.overload.returns is not None:
            return tuple(types), self.overload.returns(
                [a if isinstance(a, SqlType) else t for a, t in zip(self.args, types, strict=True)]
            )
        return tuple(types), _return_type(self.overload.signature.returns, bindings)

    def _parameters(self) -> tuple[Parameter, ...]:
        parameters = self.overload.signature.spread(len(self.args))
        assert parameters is not None
        return parameters

    def _bindings(self, lambda_results: Mapping[int, SqlType]) -> Bindings:
        bindings: Bindings = {}
        parameters = self._parameters()
        for parameter, arg in zip(parameters, self.args, strict=True):
            if has_generics(parameter.type):
                _bind(parameter.type, arg, bindings)
        for index, result in sorted(lambda_results.items()):
            _bind_result(parameters[index].type, result, bindings)
        return bindings


class Registry:
    """Functions by their upper-case name."""

    def __init__(self, functions: Iterable[Function] = ()) -> None:
        self._functions: dict[str, Function] = {}
        for function in functions:
            self.add(function)

    def add(self, function: Function) -> None:
        name = function.name
        existing = self._functions.get(name)
        if existing is not None:
            raise StatementError(_ALREADY[function.kind, existing.kind].format(name=name))
        self._functions[name] = function

    def remove(self, name: str) -> None:
        del self._functions[name]

    def copy(self) -> Registry:
        return Registry(self._functions.values())

    def kind(self, name: str) -> FunctionKind | None:
        function = self._functions.get(name)
        return None if function is None else function.kind

    def get(self, name: str) -> Function:
        function = self._functions.get(name.upper())
        if function is None:
            raise StatementError(f"Can't find any functions with the name '{name}'")
        return function

    def find(self, name: str, signature: str) -> Overload:
        found = self.get(name).find(signature)
        if found is None:
            raise StatementError(f"Can't find any functions with the name '{signature}'")
        return found

    def all(self) -> tuple[Function, ...]:
        return tuple(sorted(self._functions.values(), key=lambda f: f.name))

    def resolve(self, name: str, args: Sequence[Argument]) -> Resolution:
        function = self.get(name)
        given = tuple(args)
        casting = (False,) if function.kind is FunctionKind.AGGREGATE else (False, True)
        for allow_casts in casting:
            best = _best(function, given, allow_casts)
            if best is not None:
                return Resolution(function, best, given)
        raise StatementError(
            f"Function '{_spelled(function)}' does not accept parameters {_texts(given)}.\n"
            f"Valid alternatives are:\n{_alternatives(function)}\n{_SEE_ALSO}"
        )


# What ksqlDB says of a second function of a name: by the kinds of the new and the existing one.
_ALREADY = {
    (FunctionKind.SCALAR, FunctionKind.SCALAR): "Function already registered: {name}",
    (FunctionKind.SCALAR, FunctionKind.AGGREGATE): (
        "UdfFactory already registered as aggregate: {name}"
    ),
    (FunctionKind.SCALAR, FunctionKind.TABLE): (
        "UdfFactory already registered as table function: {name}"
    ),
    (FunctionKind.AGGREGATE, FunctionKind.SCALAR): (
        "Aggregate function already registered as non-aggregate: {name}"
    ),
    (FunctionKind.AGGREGATE, FunctionKind.TABLE): (
        "Aggregate function already registered as table function: {name}"
    ),
    (FunctionKind.AGGREGATE, FunctionKind.AGGREGATE): (
        "Aggregate function already registered: {name}"
    ),
    (FunctionKind.TABLE, FunctionKind.SCALAR): (
        "Table function already registered as non-aggregate: {name}"
    ),
    (FunctionKind.TABLE, FunctionKind.AGGREGATE): (
        "Table function already registered as aggregate: {name}"
    ),
    (FunctionKind.TABLE, FunctionKind.TABLE): "Table function already registered: {name}",
}

# How ksqlDB's messages spell its own functions, where that is not in lower case.
_SPELLED = {
    name.upper(): name
    for name in [
        "ARRAY_CONTAINS",
        "ARRAY_JOIN",
        "ARRAY_LENGTH",
        "AS_MAP",
        "AS_VALUE",
        "ATTR",
        "Abs",
        "COALESCE",
        "COUNT",
        "COUNT_DISTINCT",
        "Ceil",
        "Chr",
        "EARLIEST_BY_OFFSET",
        "ENTRIES",
        "Floor",
        "GENERATE_SERIES",
        "IFNULL",
        "IS_JSON_STRING",
        "JSON_ARRAY_CONTAINS",
        "JSON_ARRAY_LENGTH",
        "JSON_CONCAT",
        "JSON_ITEMS",
        "JSON_KEYS",
        "JSON_RECORDS",
        "LATEST_BY_OFFSET",
        "LPad",
        "MAX",
        "MIN",
        "NULLIF",
        "RPad",
        "Round",
        "STDDEV_SAMP",
        "STDDEV_SAMPLE",
        "SUM",
        "TOPK",
        "TOPKDISTINCT",
        "TO_JSON_STRING",
        "UUID",
    ]
}


def _spelled(function: Function) -> str:
    """The name as messages show it; functions of users keep theirs."""
    if function.path != "internal":
        return function.name
    return _SPELLED.get(function.name, function.name.lower())


_SEE_ALSO = "For detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;"


# ------------------------------------------------------------------------ which overload is meant


def _best(function: Function, args: tuple[Argument, ...], allow_casts: bool) -> Overload | None:
    fitting = [o for o in function.overloads if _accepts(o.signature, args, allow_casts)]
    ranked = sorted(fitting, key=lambda o: _rank(o.signature))
    if len(ranked) > 1 and _rank(ranked[-1].signature) == _rank(ranked[-2].signature):
        raise StatementError(
            f"Function '{_spelled(function)}' cannot be resolved due to ambiguous method "
            f"parameters {_texts(args)}.\n"
            "Use CAST() to explicitly cast your parameters to one of the supported function "
            f"calls.\nValid function calls are:\n{_alternatives(function)}\n{_SEE_ALSO}"
        )
    return ranked[-1] if ranked else None


def _rank(signature: Signature) -> tuple[int, ...]:
    """Greater is preferred."""
    parameters, variadic = signature.parameters, signature.variadic
    any_variadic = any(p.variadic and p.type == ANY for p in parameters)
    generics = sum(has_generics(p.type) or (p.variadic and p.type == ANY) for p in parameters)
    return (
        variadic is None,
        len(parameters),
        -generics,
        not any_variadic,
        -1 if variadic is None else variadic,
    )


def _accepts(signature: Signature, args: tuple[Argument, ...], allow_casts: bool) -> bool:
    parameters = signature.spread(len(args))
    if parameters is None:
        return False
    bindings: Bindings = {}
    return all(
        _bind(p.type, arg, bindings)
        if has_generics(p.type)
        else _compatible(p.type, arg, allow_casts)
        for p, arg in zip(parameters, args, strict=True)
    )


def _compatible(declared: SqlType, arg: Argument, allow_casts: bool) -> bool:
    """Whether an argument fits a parameter without generics."""
    if declared == ANY or arg == NULL:
        return True
    if isinstance(arg, LambdaShape):
        return isinstance(declared, Lambda) and len(declared.inputs) == arg.arity
    match declared, arg:
        case (Lambda(), _):
            return False
        case (Array(), Array()):
            return _compatible(declared.element, arg.element, allow_casts)
        case (Map(), Map()):
            return _compatible(declared.key, arg.key, allow_casts) and _compatible(
                declared.value, arg.value, allow_casts
            )
        case (Struct(), Struct()):
            return _struct_compatible(declared, arg)
    source, target = base_name(arg), base_name(declared)
    return source == target or (allow_casts and _is_converted(source, target))


def _struct_compatible(declared: Struct, arg: Struct) -> bool:
    if not declared.fields or not arg.fields:
        return True
    fields = {f.name: f.type for f in arg.fields}
    return len(fields) == len(declared.fields) and all(
        f.name in fields and _compatible(f.type, fields[f.name], False) for f in declared.fields
    )


def _is_converted(source: str, target: str) -> bool:
    """Whether an argument of the family `source` is cast for a parameter of `target`."""
    if source in NUMERIC_RANK and target in NUMERIC_RANK:
        return NUMERIC_RANK[source] <= NUMERIC_RANK[target]
    return source == "STRING" and target in ("DATE", "TIME", "TIMESTAMP", "BYTES")


# ------------------------------------------------------------------------------------- generics


def _bind(declared: SqlType, arg: Argument, bindings: Bindings) -> bool:
    """Learn what generics stand for; False if the argument does not have the declared shape."""
    if arg == NULL:
        return True
    if isinstance(arg, LambdaShape):
        return isinstance(declared, Lambda) and len(declared.inputs) == arg.arity
    match declared, arg:
        case (Generic(), _):
            return bindings.setdefault(declared, arg) == arg
        case (Array(), Array()):
            return _bind(declared.element, arg.element, bindings)
        case (Map(), Map()):
            return _bind(declared.key, arg.key, bindings) and _bind(
                declared.value, arg.value, bindings
            )
    return declared == ANY or base_name(declared) == base_name(arg)


def _bind_result(declared: SqlType, result: SqlType, bindings: Bindings) -> None:
    assert isinstance(declared, Lambda)
    before = dict(bindings)
    if _bind(declared.result, result, bindings):
        return
    inputs = tuple(_resolved(i, NULL, before) for i in declared.inputs)
    schema, instance = parameter_type_text(declared), str(Lambda(inputs, result))
    if isinstance(declared.result, Generic):
        raise StatementError(
            f"Found invalid instance of generic schema when mapping {schema} to {instance}. "
            f"Cannot map {declared.result} to both {before[declared.result]} and {result}"
        )
    raise StatementError(
        f"Cannot infer generics for {schema} from {instance} because they do not have the same "
        "schema structure."
    )


def _resolved(declared: SqlType, given: SqlType, bindings: Bindings) -> SqlType:
    """The type that an argument of type `given` is cast to for a parameter."""
    match declared:
        case Generic():
            return bindings.get(declared, NULL)
        case Array(element):
            inner = given.element if isinstance(given, Array) else NULL
            return Array(_resolved(element, inner, bindings))
        case Map(key, value):
            inner_key, inner_value = (
                (given.key, given.value) if isinstance(given, Map) else (NULL, NULL)
            )
            return Map(_resolved(key, inner_key, bindings), _resolved(value, inner_value, bindings))
        case Lambda(inputs, result):
            return Lambda(
                tuple(_resolved(i, NULL, bindings) for i in inputs),
                _resolved(result, NULL, bindings),
            )
    if declared == DECIMAL:
        return EXACT_DECIMALS.get(given, given)
    return given if declared in (ANY, ANY_STRUCT) else declared


def _return_type(declared: SqlType, bindings: Bindings) -> SqlType:
    match declared:
        case Generic():
            if declared not in bindings:
                raise StatementError(f"Could not find mapping for generic type: {declared}")
            return bindings[declared]
        case Array(element):
            return Array(_return_type(element, bindings))
        case Map(key, value):
            return Map(_return_type(key, bindings), _return_type(value, bindings))
        case Struct(fields):
            return Struct(tuple(Field(f.name, _return_type(f.type, bindings)) for f in fields))
    return declared


# ---------------------------------------------------------------------------------- error texts


def _texts(args: Iterable[Argument]) -> str:
    return f"({', '.join(map(_argument_text, args))})"


def _argument_text(arg: Argument) -> str:
    """The type as ksqlDB prints it here: field names bare, a null literal as `null`."""
    match arg:
        case Struct(fields):
            inner = ", ".join(f"{f.name} {_argument_text(f.type)}" for f in fields)
            return f"STRUCT<{inner}>"
        case Array(element):
            return f"ARRAY<{_argument_text(element)}>"
        case Map(key, value):
            return f"MAP<{_argument_text(key)}, {_argument_text(value)}>"
    return "null" if arg == NULL else str(arg)


def _alternatives(function: Function) -> str:
    return "\n".join(texts(function, _spelled(function)))


# ------------------------------------------------------------------------------------ built-ins


def _built_in() -> Iterable[Function]:
    """Aggregates, table functions, and what the modules below `scalar` declare."""
    yield from aggregates.FUNCTIONS
    yield from table_functions.FUNCTIONS
    for module in pkgutil.walk_packages(scalar.__path__, scalar.__name__ + "."):
        yield from getattr(importlib.import_module(module.name), "FUNCTIONS", ())


REGISTRY = Registry(_built_in())

__all__ = ["INTERVAL_UNIT", "REGISTRY", "LambdaShape", "Registry", "Resolution"]
