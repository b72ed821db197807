"""Bound expressions as Spark columns: the one evaluator.

Every expression becomes a value and, where it can fail, the text of its failure. Failures of
subexpressions come first, and only count where ksqlDB would have evaluated them.

Some parts may fail alone: casts, functions and fields as arguments of a function, items of arrays,
maps and structs. In a projection they are null then and the rest goes on, so that
`COALESCE(CAST(x AS INT), 0)` is 0 where `x` is no number; their failures are noted beside.

Operators take null for unknown, except in a lambda: there one null operand fails the whole call,
as it stops the Java that ksqlDB makes of a lambda.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import TypeVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.bounded import BOUNDED_LIKE
from headrace.functions.declare.declaration import CallContext
from headrace.functions.registry import REGISTRY
from headrace.model.fallible import Fallible, coalesce_errors
from headrace.model.representation import spark_type
from headrace.model.types import DOUBLE, EXACT_DECIMALS, STRING, Map, SqlType, base_name
from headrace.plan.language import expressions as e
from headrace.spark.lower.casts import cast
from headrace.spark.lower.like import like_regex
from headrace.spark.rows.columns import OFFSET, PARTITION, TIME, column


@dataclass
class Held:
    """Columns that are worked out ahead of a select, stage by stage.

    A function's form names its arguments several times, and the text of its failure once more:
    nested calls would grow to plans that take Spark seconds to read.
    """

    stages: list[list[Column]] = field(default_factory=list)
    _levels: list[int] = field(default_factory=list)

    def mark(self) -> int:
        return len(self._levels)

    def hold(self, part: Fallible, mark: int) -> Fallible:
        """The part as columns of its own; what was held since `mark` is what it is made of."""
        level = 1 + max(self._levels[mark:], default=-1)
        error = None if part.error is None else self._column(part.error, level)
        return Fallible(self._column(part.value, level), error)

    def _column(self, made: Column, level: int) -> Column:
        name = f"$held{len(self._levels)}"
        self._levels.append(level)
        if level == len(self.stages):
            self.stages.append([])
        self.stages[level].append(made.alias(name))
        return column(name)


@dataclass(frozen=True)
class Scope:
    """Where an expression stands: the lambda parameters around it, by name, where failures of
    parts are noted (None: they fail the whole), where parts may be held, and what functions are
    told (`ksql.functions.…`)."""

    parameters: Mapping[str, Column] = field(default_factory=dict)
    notes: list[Column] | None = None
    held: Held | None = None
    settings: Mapping[str, object] = field(default_factory=dict)

    def note(self, part: Fallible) -> Fallible:
        """The part, null where it failed, if that can be noted."""
        if part.error is None or self.notes is None:
            return part
        self.notes.append(part.error)
        return Fallible(F.when(part.error.isNull(), part.value))

    def branch(self) -> Scope:
        """For a part that is not always evaluated."""
        return self if self.notes is None else replace(self, notes=[], held=None)

    def rejoin(self, branch: Scope, evaluated: Column) -> None:
        if self.notes is not None:
            self.notes.extend(F.when(evaluated, note) for note in branch.notes or ())

    def on_null(self, operator: str, *operands: tuple[e.Expression, Column]) -> Column | None:
        """How an operator that has no answer for null fails: outside of lambdas it does not."""
        nulls = [value.isNull() for x, value in operands if not _never_null(x)]
        if not self.parameters or not nulls:
            return None
        return F.when(reduce(or_, nulls), F.lit(f"An operand of {operator} is null"))


_NOWHERE = Scope()

_PREDICATES = e.Comparison | e.Logical | e.Not | e.IsNull | e.Like | e.In | e.Between


def _never_null(x: e.Expression) -> bool:
    """Whether it is true, false or a failure, or a constant."""
    return isinstance(x, _PREDICATES) or (isinstance(x, e.Literal) and x.value is not None)


E = TypeVar("E", bound=e.Expression)
_LOWERINGS: dict[type[e.Expression], Callable[[e.Expression, Scope], Fallible]] = {}


def lowers(
    kind: type[E],
) -> Callable[[Callable[[E, Scope], Fallible]], Callable[[E, Scope], Fallible]]:
    """Declares how one kind of expression becomes columns."""

    def declare(function: Callable[[E, Scope], Fallible]) -> Callable[[E, Scope], Fallible]:
        _LOWERINGS[kind] = function  # type: ignore[assignment]
        return function

    return declare


def lower(expression: e.Expression, scope: Scope = _NOWHERE) -> Fallible:
    return _LOWERINGS[type(expression)](expression, scope)


def lower_noting(
    expression: e.Expression, held: Held | None, settings: Mapping[str, object]
) -> tuple[Fallible, list[Column]]:
    """The expression, whose parts may fail alone, and the texts of those failures."""
    notes: list[Column] = []
    return lower(expression, Scope(notes=notes, held=held, settings=settings)), notes


def _operand(x: e.Expression, scope: Scope) -> Fallible:
    """What another expression is made of: held, if it is a call that can fail."""
    held, notes = scope.held, scope.notes
    if held is None or notes is None or not isinstance(x, e.Call | e.Cast):
        return lower(x, scope)
    mark, noted = held.mark(), len(notes)
    lowered = lower(x, scope)
    fallible = lowered.error is not None or len(notes) > noted
    return held.hold(lowered, mark) if fallible else lowered


@lowers(e.Literal)
def _literal(x: e.Literal, scope: Scope) -> Fallible:
    return Fallible(F.lit(x.value).cast(spark_type(x.type)))


@lowers(e.ColumnValue)
def _column(x: e.ColumnValue, scope: Scope) -> Fallible:
    return Fallible(column(x.name))


@lowers(e.LambdaParameter)
def _parameter(x: e.LambdaParameter, scope: Scope) -> Fallible:
    return Fallible(scope.parameters[x.name])


@lowers(e.Call)
def _call(x: e.Call, scope: Scope) -> Fallible:
    args: list[Column | Callable[..., Fallible]] = []
    errors: list[Column | None] = []
    for arg in x.args:
        if isinstance(arg, e.LambdaFunction):
            args.append(_callable(arg, scope))
        else:
            lowered = _operand(arg, scope)
            if isinstance(arg, e.Call | e.FieldValue):
                lowered = scope.note(lowered)
            args.append(lowered.value)
            errors.append(lowered.error)
    context = CallContext(
        arg_types=tuple(a.type for a in x.args),
        return_type=x.type,
        arg_literals=[a.value if isinstance(a, e.Literal) else None for a in x.args],
        settings=scope.settings,
    )
    result = REGISTRY.find(x.function, x.signature).spark(args, context)
    if not isinstance(result, Fallible):
        return Fallible(result, coalesce_errors(*errors))
    if scope.notes is not None and result.note is not None:
        scope.notes.append(result.note)
    return Fallible(result.value, coalesce_errors(*errors, result.error))


@lowers(e.OfRecord)
def _of_record(x: e.OfRecord, scope: Scope) -> Fallible:
    made = REGISTRY.find(x.call.function, x.call.signature).of_record
    assert made is not None
    # The time tells a record from one of the same offset in a topic that was made again.
    return Fallible(made(F.concat_ws(" ", F.lit(x.place), *map(column, (PARTITION, OFFSET, TIME)))))


def _callable(x: e.LambdaFunction, scope: Scope) -> Callable[..., Fallible]:
    def apply(*values: Column) -> Fallible:
        names = (p.name for p in x.parameters)
        known = {**scope.parameters, **dict(zip(names, values, strict=True))}
        notes: list[Column] | None = None if scope.notes is None else []
        result = lower(x.body, Scope(known, notes, settings=scope.settings))
        return replace(result, note=coalesce_errors(*notes or ()))

    return apply


@lowers(e.Arithmetic)
def _arithmetic(x: e.Arithmetic, scope: Scope) -> Fallible:
    left, right = _operand(x.left, scope), _operand(x.right, scope)
    a = _in_family(left.value, x.left.type, x.type)
    b = _in_family(right.value, x.right.type, x.type)
    if x.type == STRING:
        null = None
        if scope.parameters:  # Java appends a text for null
            a, b = F.coalesce(a, F.lit("null")), F.coalesce(b, F.lit("null"))
    else:
        null = scope.on_null(x.op, (x.left, left.value), (x.right, right.value))
    result = _ARITHMETIC[base_name(x.type)](x.op, a, b)
    value = result.value.cast(spark_type(x.type))
    return Fallible(value, coalesce_errors(left.error, right.error, null, result.error))


def _in_family(value: Column, source: SqlType, target: SqlType) -> Column:
    """Operands meet in the result's family; decimals keep their own precision and scale."""
    if base_name(target) != "DECIMAL":
        return cast(value, source, target).value
    return cast(value, source, EXACT_DECIMALS.get(source, source)).value


def _integral(op: str, left: Column, right: Column) -> Fallible:
    match op:
        case "/":
            return Fallible(F.call_function("div", left, right), _by_zero(right))
        case "%":
            return Fallible(left % right, _by_zero(right))
    return Fallible(_PLAIN[op](left, right))


def _floating(op: str, left: Column, right: Column) -> Fallible:
    """Spark gives null for zero on the right; Java gives an infinity or NaN. The left side is named
    once: each time more would double a chain of divisions."""
    at_zero = right == 0
    if op == "/":
        # What is divided by zero is what is multiplied by infinity.
        dividend = left * F.when(at_zero, F.lit(float("inf"))).otherwise(F.lit(1.0))
        return Fallible(dividend / F.when(at_zero, F.lit(1.0)).otherwise(right))
    if op == "%":
        return Fallible(left % F.when(at_zero, F.lit(float("nan"))).otherwise(right))
    return Fallible(_PLAIN[op](left, right))


def _decimal(op: str, left: Column, right: Column) -> Fallible:
    return Fallible(_PLAIN[op](left, right), _by_zero(right) if op in "/%" else None)


def _by_zero(divisor: Column) -> Column:
    return F.when(divisor == 0, F.lit("/ by zero"))


_PLAIN: dict[str, Callable[[Column, Column], Column]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
}

_ARITHMETIC: dict[str, Callable[[str, Column, Column], Fallible]] = {
    "INTEGER": _integral,
    "BIGINT": _integral,
    "DOUBLE": _floating,
    "DECIMAL": _decimal,
    "STRING": lambda op, left, right: Fallible(F.concat(left, right)),
}


@lowers(e.Negate)
def _negate(x: e.Negate, scope: Scope) -> Fallible:
    operand = lower(x.operand, scope)
    null = scope.on_null("-", (x.operand, operand.value))
    return Fallible(-operand.value, coalesce_errors(operand.error, null))


_COMPARISONS: dict[str, Callable[[Column, Column], Column]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@lowers(e.Comparison)
def _comparison(x: e.Comparison, scope: Scope) -> Fallible:
    left, right = lower(x.left, scope), lower(x.right, scope)
    a, b, errors = _comparable(left, x.left.type, right, x.right.type)
    if x.op == "IS DISTINCT FROM":
        value = ~a.eqNullSafe(b)
    elif x.op == "IS NOT DISTINCT FROM":
        value = a.eqNullSafe(b)
    else:
        # A comparison with null is false in ksqlDB, not unknown.
        value = F.coalesce(_COMPARISONS[x.op](a, b), F.lit(False))
    return Fallible(value, coalesce_errors(left.error, right.error, *errors))


def _comparable(
    left: Fallible, left_type: SqlType, right: Fallible, right_type: SqlType
) -> tuple[Column, Column, tuple[Column | None, ...]]:
    """Both sides in one type: numbers by Spark's widening, text as the other side's time."""
    names = base_name(left_type), base_name(right_type)
    if isinstance(left_type, Map):  # Spark cannot compare maps, but their sorted entries
        return _entries(left.value), _entries(right.value), ()
    if names[0] != names[1] and "NULL" not in names:
        if names[0] == "STRING":
            parsed = cast(left.value, left_type, right_type)
            return parsed.value, right.value, (parsed.error,)
        if names[1] == "STRING":
            parsed = cast(right.value, right_type, left_type)
            return left.value, parsed.value, (parsed.error,)
        if "DATE" in names and "TIMESTAMP" in names:
            target = left_type if names[0] == "TIMESTAMP" else right_type
            return (
                cast(left.value, left_type, target).value,
                cast(right.value, right_type, target).value,
                (),
            )
        if "DOUBLE" in names:
            return left.value.cast(spark_type(DOUBLE)), right.value.cast(spark_type(DOUBLE)), ()
    return left.value, right.value, ()


def _entries(value: Column) -> Column:
    return F.array_sort(F.map_entries(value))


@lowers(e.Logical)
def _logical(x: e.Logical, scope: Scope) -> Fallible:
    later = scope.branch()
    left, right = lower(x.left, scope), lower(x.right, later)
    if x.op == "AND":
        value, decided = left.value & right.value, ~left.value
    else:
        value, decided = left.value | right.value, left.value
    evaluated = ~F.coalesce(decided, F.lit(False))
    scope.rejoin(later, evaluated)
    right_error = coalesce_errors(right.error, scope.on_null(x.op, (x.right, right.value)))
    if right_error is not None:
        right_error = F.when(evaluated, right_error)
    null = scope.on_null(x.op, (x.left, left.value))
    return Fallible(value, coalesce_errors(left.error, null, right_error))


@lowers(e.Not)
def _not(x: e.Not, scope: Scope) -> Fallible:
    operand = lower(x.operand, scope)
    null = scope.on_null("NOT", (x.operand, operand.value))
    return Fallible(~operand.value, coalesce_errors(operand.error, null))


@lowers(e.IsNull)
def _is_null(x: e.IsNull, scope: Scope) -> Fallible:
    operand = lower(x.operand, scope)
    return Fallible(operand.value.isNull(), operand.error)


@lowers(e.Like)
def _like(x: e.Like, scope: Scope) -> Fallible:
    value, pattern = lower(x.value, scope), lower(x.pattern, scope)
    known = x.pattern.value if isinstance(x.pattern, e.Literal) else None
    regex = like_regex(known, x.escape) if isinstance(known, str) else None
    if regex is not None:
        matched = value.value.rlike(regex)
    elif known is None:
        escape = F.lit(x.escape or "")
        matched = F.call_function(BOUNDED_LIKE, value.value, pattern.value, escape)
    else:
        # Without ESCAPE nothing escapes; Spark insists on some character, so take an unlikely one.
        matched = F.like(value.value, pattern.value, F.lit(x.escape or "\x00"))
    null = scope.on_null("LIKE", (x.value, value.value), (x.pattern, pattern.value))
    error = coalesce_errors(value.error, pattern.error, null)
    return Fallible(F.coalesce(matched, F.lit(False)), error)


@lowers(e.In)
def _in(x: e.In, scope: Scope) -> Fallible:
    value = lower(x.value, scope)
    items = [lower(i, scope) for i in x.items]
    matches = [
        _comparable(value, x.value.type, item, i.type)
        for item, i in zip(items, x.items, strict=True)
    ]
    found = F.lit(False)
    for a, b, _ in matches:
        found = found | F.coalesce(a == b, F.lit(False))
    return Fallible(found, coalesce_errors(value.error, *(i.error for i in items)))


@lowers(e.Between)
def _between(x: e.Between, scope: Scope) -> Fallible:
    low = _comparison(e.Comparison(x.type, ">=", x.value, x.low), scope)
    high = _comparison(e.Comparison(x.type, "<=", x.value, x.high), scope)
    return Fallible(low.value & high.value, coalesce_errors(low.error, high.error))


@lowers(e.Case)
def _case(x: e.Case, scope: Scope) -> Fallible:
    last = scope.branch()
    default = Fallible(F.lit(None)) if x.default is None else lower(x.default, last)
    value, error = default.value, default.error
    for when in reversed(x.whens):
        here, then = scope.branch(), scope.branch()
        condition, result = lower(when.condition, here), lower(when.result, then)
        chosen = F.coalesce(condition.value, F.lit(False))
        # What comes after this branch is evaluated only if this one is not taken.
        here.rejoin(then, chosen)
        here.rejoin(last, ~chosen)
        last = here
        value = F.when(condition.value, result.value).otherwise(value)
        null = scope.on_null("CASE", (when.condition, condition.value))
        if null is None and condition.error is None and result.error is None and error is None:
            continue
        none = F.lit(None).cast("string")
        found = F.when(condition.value, none if result.error is None else result.error).otherwise(
            none if error is None else error
        )
        error = coalesce_errors(condition.error, null, found)
    scope.rejoin(last, F.lit(True))
    return Fallible(value.cast(spark_type(x.type)), error)


@lowers(e.Cast)
def _cast(x: e.Cast, scope: Scope) -> Fallible:
    operand = _operand(x.operand, scope)
    result = cast(operand.value, x.operand.type, x.type, x.null_text)
    return scope.note(Fallible(result.value, coalesce_errors(operand.error, result.error)))


@lowers(e.Subscript)
def _subscript(x: e.Subscript, scope: Scope) -> Fallible:
    base, index = lower(x.base, scope), lower(x.index, scope)
    error = coalesce_errors(base.error, index.error)
    if isinstance(x.base.type, Map):
        return Fallible(F.try_element_at(base.value, index.value), error)
    at = (
        F.when(index.value > 0, index.value - 1)
        .when(index.value < 0, F.size(base.value) + index.value)
        .cast("int")
    )
    null = scope.on_null("[]", (x.index, index.value))
    if null is not None:
        error = coalesce_errors(error, F.when(base.value.isNotNull(), null))
    return Fallible(F.get(base.value, at), error)


@lowers(e.FieldValue)
def _field(x: e.FieldValue, scope: Scope) -> Fallible:
    base = lower(x.base, scope)
    return Fallible(base.value.getField(x.field), base.error)


@lowers(e.MakeArray)
def _make_array(x: e.MakeArray, scope: Scope) -> Fallible:
    items = [scope.note(_operand(i, scope)) for i in x.items]
    value = F.array(*(i.value for i in items)).cast(spark_type(x.type))
    return Fallible(value, coalesce_errors(*(i.error for i in items)))


@lowers(e.MakeMap)
def _make_map(x: e.MakeMap, scope: Scope) -> Fallible:
    keys = [scope.note(_operand(k, scope)) for k, _ in x.entries]
    values = [scope.note(_operand(v, scope)) for _, v in x.entries]
    error = None
    if isinstance(x.type, Map) and x.type.key == STRING:
        # Spark knows no null keys; a text says what all formats write for one.
        keys = [Fallible(F.coalesce(k.value, F.lit("null")), k.error) for k in keys]
    else:
        # Spark raises on a null key, so a map with one is a failure before Spark sees it.
        some_null = reduce(or_, (k.value.isNull() for k in keys), F.lit(False))
        error = F.when(some_null, F.lit("A map's key cannot be null"))
    value = F.create_map(*(c.value for kv in zip(keys, values, strict=True) for c in kv))
    if error is not None:
        value = F.when(error.isNull(), value)
    errors = coalesce_errors(*(i.error for i in (*keys, *values)), error)
    return Fallible(value.cast(spark_type(x.type)), errors)


@lowers(e.MakeStruct)
def _make_struct(x: e.MakeStruct, scope: Scope) -> Fallible:
    fields = [(name, scope.note(_operand(v, scope))) for name, v in x.fields]
    value = F.struct(*(v.value.alias(name) for name, v in fields)).cast(spark_type(x.type))
    return Fallible(value, coalesce_errors(*(v.error for _, v in fields)))
