"""Binds expressions: resolves names, chooses functions, determines types.

A binder knows one row's columns. It gives each expression its type by ksqlDB's rules, puts in the
casts those rules imply, and refuses what they refuse, in ksqlDB's words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from headrace.functions.declare.declaration import FunctionKind
from headrace.functions.registry import INTERVAL_UNIT, REGISTRY, LambdaShape
from headrace.model.errors import StatementError
from headrace.model.settings import is_on
from headrace.model.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    NULL,
    STRING,
    Array,
    Field,
    Lambda,
    Map,
    SqlType,
    Struct,
    base_name,
    is_numeric,
)
from headrace.plan.language import expressions as bound
from headrace.plan.language.casts import arithmetic_type, check_cast, decimal_of
from headrace.plan.language.coercion import coerce, convert
from headrace.plan.language.messages import text
from headrace.sql import ast

TypeResolver = Callable[[str], SqlType | None]


class EvaluationError(StatementError):
    """An expression that has a type, but that cannot be computed as written."""


def no_custom_types(name: str) -> SqlType | None:
    return None


def resolve_type(type_: SqlType, resolve: TypeResolver) -> SqlType:
    """The type with every custom type in it replaced by what it stands for."""
    match type_:
        case ast.TypeRef(name):
            found = resolve(name)
            if found is None:
                raise StatementError(f"Cannot resolve unknown type: {name}")
            return found
        case Array(element):
            return Array(resolve_type(element, resolve))
        case Map(key, value):
            return Map(resolve_type(key, resolve), resolve_type(value, resolve))
        case Struct(fields):
            return struct_type(Field(f.name, resolve_type(f.type, resolve)) for f in fields)
    return type_


def struct_type(fields: Iterable[Field]) -> Struct:
    seen: dict[str, Field] = {}
    for f in fields:
        if f.name in seen:
            raise StatementError(
                f"Duplicate field names found in STRUCT: '{seen[f.name]}' and '{f}'"
            )
        seen[f.name] = f
    return Struct(tuple(seen.values()))


@dataclass(frozen=True)
class Arguments:
    """The overload that a call of any kind of function means, its arguments and its type.

    The last `constants` arguments have to be literals.
    """

    signature: str
    args: tuple[bound.Expression, ...]
    type: SqlType
    constants: int


@dataclass(frozen=True)
class Binder:
    """Binds expressions: `columns` are readable, `parameters` those of enclosing lambdas.
    `null_text`: whether CAST makes the text 'null' of a null."""

    columns: Mapping[str, SqlType]
    types: TypeResolver = no_custom_types
    parameters: Mapping[str, SqlType] = field(default_factory=dict)
    null_text: bool = False

    @classmethod
    def of(
        cls, columns: Mapping[str, SqlType], types: TypeResolver, settings: Mapping[str, object]
    ) -> Binder:
        keeps_nulls = is_on(settings, "ksql.cast.strings.preserve.nulls")
        return cls(columns, types, null_text=not keeps_nulls)

    def bind(self, expression: ast.Expression) -> bound.Expression:
        return _RULES[type(expression)](self, expression)

    # ------------------------------------------------------------------------------- leaves

    def literal(self, e: ast.Literal) -> bound.Expression:
        if isinstance(e, ast.DecimalLiteral):
            return bound.Literal(decimal_of(e.value), e.value)
        return bound.Literal(_LITERAL_TYPES[type(e)], e.value)

    def column(self, e: ast.ColumnRef) -> bound.Expression:
        type_ = self.columns.get(e.name)
        if type_ is None or e.source is not None:
            raise StatementError(f"Unknown column {text(e)}.")
        return bound.ColumnValue(type_, e.name)

    def parameter(self, e: ast.LambdaVar) -> bound.Expression:
        if e.name not in self.parameters:
            raise StatementError(f"Unknown column {e.name}.")
        return bound.LambdaParameter(self.parameters[e.name], e.name)

    def unit(self, e: ast.IntervalUnit) -> bound.Expression:
        return bound.Literal(INTERVAL_UNIT, e.unit.value)

    # ---------------------------------------------------------------------------- operators

    def arithmetic(self, e: ast.Arithmetic) -> bound.Expression:
        left, right = self.bind(e.left), self.bind(e.right)
        try:
            type_ = arithmetic_type(e.op, left.type, right.type)
        except StatementError as problem:
            message = f"Error processing expression: {text(e)}. {problem}"
            raise StatementError(message, text(e)) from None
        return bound.Arithmetic(type_, e.op, left, right)

    def sign(self, e: ast.Sign) -> bound.Expression:
        operand = self.bind(e.operand)
        if not is_numeric(operand.type):
            raise EvaluationError(
                f"Error processing expression: {text(e)}. "
                f"Unsupported arithmetic types. {base_name(operand.type)}"
            )
        if e.op == "+":
            return operand
        if isinstance(operand, bound.Literal):
            return bound.Literal(operand.type, -operand.value)  # type: ignore[operator]
        return bound.Negate(operand.type, operand)

    def comparison(self, e: ast.Comparison) -> bound.Expression:
        left, right = self.bind(e.left), self.bind(e.right)
        self._check_comparable(e.op, e.left, left, e.right, right)
        return bound.Comparison(BOOLEAN, e.op, left, right)

    def _check_comparable(
        self,
        op: str,
        left: ast.Expression,
        left_value: bound.Expression,
        right: ast.Expression,
        right_value: bound.Expression,
    ) -> None:
        a, b = left_value.type, right_value.type
        if NULL in (a, b):
            raise StatementError(
                f"Comparison with NULL not supported: {base_name(a)} {op} {base_name(b)}\n"
                "Use 'IS NULL' or 'IS NOT NULL' instead."
            )
        if not _comparable(a, op, b):
            raise StatementError(
                f"Cannot compare {text(left)} ({a}) to {text(right)} ({b}) "
                f"with {_OPERATOR_NAMES[op]}."
            )

    def logical(self, e: ast.Logical) -> bound.Expression:
        left, right = self.boolean(e.left, e.op), self.boolean(e.right, e.op)
        return bound.Logical(BOOLEAN, e.op, left, right)

    def boolean(self, e: ast.Expression, where: str) -> bound.Expression:
        value = self.bind(e)
        if value.type == NULL:
            return bound.Literal(BOOLEAN, None)
        if value.type != BOOLEAN:
            raise EvaluationError(
                f"Operand of {where} should be boolean, but {text(e)} is {value.type}."
            )
        return value

    def negation(self, e: ast.Not) -> bound.Expression:
        return bound.Not(BOOLEAN, self.boolean(e.operand, "NOT"))

    def is_null(self, e: ast.IsNull) -> bound.Expression:
        return bound.IsNull(BOOLEAN, self.bind(e.operand))

    def is_not_null(self, e: ast.IsNotNull) -> bound.Expression:
        return bound.Not(BOOLEAN, bound.IsNull(BOOLEAN, self.bind(e.operand)))

    def between(self, e: ast.Between) -> bound.Expression:
        value, low, high = self.bind(e.value), self.bind(e.lower), self.bind(e.upper)
        try:
            self._check_comparable(">=", e.value, value, e.lower, low)
            self._check_comparable("<=", e.value, value, e.upper, high)
        except StatementError as problem:
            raise EvaluationError(str(problem)) from None
        return bound.Between(BOOLEAN, value, low, high)

    def in_list(self, e: ast.InList) -> bound.Expression:
        listed = [i for i in e.items if not isinstance(i, ast.NullLiteral)]
        try:
            items = coerce([e.value, *listed], self.bind).items
        except EvaluationError:
            raise
        except StatementError as problem:
            raise EvaluationError(str(problem)) from None
        return bound.In(BOOLEAN, items[0], items[1:])

    def like(self, e: ast.Like) -> bound.Expression:
        value, pattern = self.bind(e.value), self.bind(e.pattern)
        for part, source in ((value, e.value), (pattern, e.pattern)):
            if part.type not in (STRING, NULL):
                raise EvaluationError(
                    f"LIKE takes strings, but {text(source)} is {part.type}: {text(e)}"
                )
        return bound.Like(BOOLEAN, convert(value, STRING), convert(pattern, STRING), e.escape)

    # --------------------------------------------------------------------------------- case

    def simple_case(self, e: ast.SimpleCase) -> bound.Expression:
        whens = tuple(
            ast.When(ast.Comparison("=", e.operand, w.condition), w.result) for w in e.whens
        )
        return self.searched_case(ast.SearchedCase(whens, e.default))

    def searched_case(self, e: ast.SearchedCase) -> bound.Expression:
        then: SqlType | None = None
        whens = []
        for when in e.whens:
            condition = self.bind(when.condition)
            if condition.type != BOOLEAN:
                raise StatementError(
                    "WHEN operand type should be boolean.\n"
                    f"Type for '{text(when.condition)}' is {condition.type}"
                )
            result = self.bind(when.result)
            if result.type != NULL:
                if then not in (None, result.type):
                    raise StatementError(
                        "Invalid Case expression. "
                        "Type for all 'THEN' clauses should be the same.\n"
                        f"THEN expression 'WHEN {text(when.condition)} THEN "
                        f"{text(when.result)}' has type: {result.type}.\n"
                        f"Previous THEN expression(s) type: {then}."
                    )
                then = result.type
            whens.append((condition, result))
        default = None if e.default is None else self.bind(e.default)
        otherwise = None if default is None or default.type == NULL else default.type
        if then is not None and otherwise is not None and then != otherwise:
            raise StatementError(
                "Invalid Case expression. "
                "Type for the default clause should be the same as for 'THEN' clauses.\n"
                f"THEN type: {then}.\nDEFAULT type: {otherwise}."
            )
        type_ = then or otherwise
        if type_ is None:
            raise StatementError("Invalid Case expression. All case branches have NULL type")
        return bound.Case(
            type_,
            tuple(bound.When(c, convert(r, type_)) for c, r in whens),
            None if default is None else convert(default, type_),
        )

    # ------------------------------------------------------------------ casts and structures

    def cast(self, e: ast.Cast) -> bound.Expression:
        operand, target = self.bind(e.operand), resolve_type(e.type, self.types)
        try:
            check_cast(operand.type, target)
        except StatementError as problem:
            raise EvaluationError(str(problem)) from None
        if operand.type == NULL:
            return bound.Literal(target, None)
        if operand.type == target:
            return operand
        return bound.Cast(target, operand, self.null_text)

    def at_time_zone(self, e: ast.AtTimeZone) -> bound.Expression:
        zones = (ast.StringLiteral("UTC"), ast.StringLiteral(e.zone))
        return self.bind(ast.Call("CONVERT_TZ", (e.operand, *zones)))

    def subscript(self, e: ast.Subscript) -> bound.Expression:
        base, index = self.bind(e.base), self.bind(e.index)
        match base.type:
            case Array(element):
                if index.type not in (INTEGER, BIGINT):
                    raise EvaluationError(
                        f"Array index should be an integer, but {text(e.index)} is {index.type}."
                    )
                return bound.Subscript(element, base, convert(index, INTEGER))
            case Map(key, value):
                if index.type not in (key, NULL):
                    try:
                        check_cast(index.type, key)
                    except StatementError as problem:
                        raise EvaluationError(str(problem)) from None
                return bound.Subscript(value, base, convert(index, key))
        hint = ""
        if isinstance(base.type, Struct):
            hint = f" Use the dereference operator for STRUCTS: {text(e.base)}->{text(e.index)}"
        raise StatementError(f"Subscript expression ({text(e)}) do not apply to {base.type}.{hint}")

    def dereference(self, e: ast.Dereference) -> bound.Expression:
        base = self.bind(e.base)
        if not isinstance(base.type, Struct):
            raise StatementError(f"Expected STRUCT type, got: {base.type}")
        found = base.type.field(e.field)
        if found is None:
            raise StatementError(f"Could not find field '{e.field}' in '{text(e.base)}'.")
        return bound.FieldValue(found.type, base, e.field)

    def array(self, e: ast.CreateArray) -> bound.Expression:
        if not e.items:
            raise StatementError(
                "Array constructor cannot be empty. Please supply at least one element "
                f"(see {_EMPTY_ISSUE})."
            )
        coerced = coerce(e.items, self.bind)
        if coerced.type is None:
            raise StatementError(
                f"Cannot construct an array with all NULL elements (see {_EMPTY_ISSUE}). "
                "As a workaround, you may cast a NULL value to the desired type."
            )
        return bound.MakeArray(Array(coerced.type), coerced.items)

    def map(self, e: ast.CreateMap) -> bound.Expression:
        if not e.entries:
            raise StatementError(
                "Map constructor cannot be empty. Please supply at least one key value pair "
                f"(see {_EMPTY_ISSUE})."
            )
        sides = []
        for what, side in enumerate(("key", "value")):
            coerced = coerce([entry[what] for entry in e.entries], self.bind)
            if coerced.type is None:
                raise StatementError(
                    f"Cannot construct a map with all NULL {side}s (see {_EMPTY_ISSUE}). "
                    f"As a workaround, you may cast a NULL {side} to the desired type."
                )
            sides.append(coerced)
        keys, values = sides
        assert keys.type is not None and values.type is not None
        type_ = Map(keys.type, values.type)
        return bound.MakeMap(type_, tuple(zip(keys.items, values.items, strict=True)))

    def struct(self, e: ast.CreateStruct) -> bound.Expression:
        fields = tuple((name, self.bind(value)) for name, value in e.fields)
        for name, value in fields:
            if value.type == NULL:
                raise StatementError(
                    f"Can't infer a type of null. Please explicitly cast field {name} to a "
                    "required type, e.g. CAST(null AS VARCHAR)."
                )
        return bound.MakeStruct(struct_type(Field(n, v.type) for n, v in fields), fields)

    # ---------------------------------------------------------------------------- functions

    def call(self, e: ast.Call) -> bound.Expression:
        if REGISTRY.kind(e.name) is not FunctionKind.SCALAR:
            for arg in e.args:  # what is wrong inside is said first
                if not isinstance(arg, ast.Lambda):
                    self.bind(arg)
            raise StatementError(f"Can't find any functions with the name '{e.name}'")
        chosen = self.arguments(e)
        return bound.Call(chosen.type, e.name, chosen.signature, chosen.args)

    def arguments(self, e: ast.Call) -> Arguments:
        args: list[bound.Expression | None] = []
        given: list[SqlType | LambdaShape] = []
        for source in e.args:
            if isinstance(source, ast.Lambda):
                args.append(None)  # bound once the overload says what it is given
                given.append(LambdaShape(len(source.params)))
            else:
                arg = self.bind(source)
                args.append(arg)
                given.append(arg.type)
        resolution = REGISTRY.resolve(e.name, given)
        results: dict[int, SqlType] = {}
        for index, source in enumerate(e.args):
            if isinstance(source, ast.Lambda):
                function = self._lambda(source, resolution.lambda_inputs(index, results))
                results[index] = function.body.type
                args[index] = function
        wanted, type_ = resolution.finish(results)
        converted = tuple(
            arg if isinstance(arg, bound.LambdaFunction) else _argument(arg, to)
            for arg, to in zip(args, wanted, strict=True)
            if arg is not None
        )
        return Arguments(resolution.signature, converted, type_, resolution.literal_count)

    def _lambda(self, e: ast.Lambda, inputs: tuple[SqlType, ...]) -> bound.LambdaFunction:
        parameters = {**self.parameters, **dict(zip(e.params, inputs, strict=True))}
        body = dataclasses.replace(self, parameters=parameters).bind(e.body)
        return bound.LambdaFunction(
            Lambda(inputs, body.type),
            tuple(bound.LambdaParameter(t, n) for n, t in zip(e.params, inputs, strict=True)),
            body,
        )

    def stray_lambda(self, e: ast.Lambda) -> bound.Expression:
        raise StatementError(f"A lambda can only be an argument of a function: {text(e)}")


def _argument(arg: bound.Expression, wanted: SqlType) -> bound.Expression:
    if arg.type == INTERVAL_UNIT:
        assert isinstance(arg, bound.Literal)
        return bound.Literal(BIGINT, arg.value)
    if wanted == NULL:
        return arg
    if arg.type == NULL:
        return bound.Literal(wanted, None)
    return arg if arg.type == wanted else bound.Cast(wanted, arg)


_EMPTY_ISSUE = "https://github.com/confluentinc/ksql/issues/4239"

_LITERAL_TYPES: dict[type[ast.Literal], SqlType] = {
    ast.NullLiteral: NULL,
    ast.BooleanLiteral: BOOLEAN,
    ast.IntegerLiteral: INTEGER,
    ast.LongLiteral: BIGINT,
    ast.DoubleLiteral: DOUBLE,
    ast.StringLiteral: STRING,
}

_OPERATOR_NAMES = {
    "=": "EQUAL",
    "<>": "NOT_EQUAL",
    "!=": "NOT_EQUAL",
    "<": "LESS_THAN",
    "<=": "LESS_THAN_OR_EQUAL",
    ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL",
    "IS DISTINCT FROM": "IS_DISTINCT_FROM",
}
_EQUALITIES = frozenset({"=", "<>", "!=", "IS DISTINCT FROM"})
_ONLY_EQUAL = frozenset({"BOOLEAN", "ARRAY", "MAP", "STRUCT"})
_NUMBERS = frozenset({"INTEGER", "BIGINT", "DECIMAL", "DOUBLE"})
# What each family of types may be compared with.
_COMPARABLE: dict[str, frozenset[str]] = {
    **dict.fromkeys(_NUMBERS, _NUMBERS),
    **{name: frozenset({name}) for name in (*_ONLY_EQUAL, "BYTES")},
    "STRING": frozenset({"STRING", "TIME", "DATE", "TIMESTAMP"}),
    "DATE": frozenset({"DATE", "TIMESTAMP", "STRING"}),
    "TIMESTAMP": frozenset({"DATE", "TIMESTAMP", "STRING"}),
    "TIME": frozenset({"TIME", "STRING"}),
}


def _comparable(left: SqlType, op: str, right: SqlType) -> bool:
    name = base_name(left)
    if name in _ONLY_EQUAL and op not in _EQUALITIES:
        return False
    return base_name(right) in _COMPARABLE[name]


_RULES: dict[type[ast.Expression], Callable[..., bound.Expression]] = {
    **dict.fromkeys((*_LITERAL_TYPES, ast.DecimalLiteral), Binder.literal),
    ast.ColumnRef: Binder.column,
    ast.LambdaVar: Binder.parameter,
    ast.IntervalUnit: Binder.unit,
    ast.Arithmetic: Binder.arithmetic,
    ast.Sign: Binder.sign,
    ast.Comparison: Binder.comparison,
    ast.Logical: Binder.logical,
    ast.Not: Binder.negation,
    ast.IsNull: Binder.is_null,
    ast.IsNotNull: Binder.is_not_null,
    ast.Between: Binder.between,
    ast.InList: Binder.in_list,
    ast.Like: Binder.like,
    ast.SimpleCase: Binder.simple_case,
    ast.SearchedCase: Binder.searched_case,
    ast.Cast: Binder.cast,
    ast.AtTimeZone: Binder.at_time_zone,
    ast.Subscript: Binder.subscript,
    ast.Dereference: Binder.dereference,
    ast.CreateArray: Binder.array,
    ast.CreateMap: Binder.map,
    ast.CreateStruct: Binder.struct,
    ast.Call: Binder.call,
    ast.Lambda: Binder.stray_lambda,
}
