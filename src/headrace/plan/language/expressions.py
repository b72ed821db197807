"""Bound expressions: names resolved, functions chosen, every node knows its type.

These are the only expressions that run. The binder makes them from the AST and inserts every
implicit cast, so that whoever evaluates them never has to decide about types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from headrace.model.types import SqlType


@dataclass(frozen=True)
class Expression:
    """Anything that has a value for a row."""

    type: SqlType


@dataclass(frozen=True)
class Literal(Expression):
    """A constant, held as `model.representation` says.

    bool, int, float, str, bytes, decimal.Decimal; DATE as days, TIME as milliseconds of the day,
    TIMESTAMP as milliseconds since the epoch; None for NULL of any type.
    """

    value: object


@dataclass(frozen=True)
class ColumnValue(Expression):
    """The value of a column of the input node's schema, or of a pseudocolumn it carries."""

    name: str


@dataclass(frozen=True)
class LambdaParameter(Expression):
    name: str


@dataclass(frozen=True)
class LambdaFunction(Expression):
    """An argument of a function; `type` is a `model.types.Lambda`."""

    parameters: tuple[LambdaParameter, ...]
    body: Expression


@dataclass(frozen=True)
class Call(Expression):
    """A scalar function's call. `signature` identifies the overload in the registry."""

    function: str
    signature: str
    args: tuple[Expression, ...]


@dataclass(frozen=True)
class OfRecord(Expression):
    """A call that would answer differently each time, made to answer the same for the same record.

    `place` tells it from other such calls.
    """

    call: Call
    place: str


@dataclass(frozen=True)
class Arithmetic(Expression):
    """`+ - * / %` on two numbers, `+` on two strings; the operands keep their own types, `type`
    is the result's."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Negate(Expression):
    operand: Expression


@dataclass(frozen=True)
class Comparison(Expression):
    """`= <> < <= > >=` and `IS [NOT] DISTINCT FROM`; operands of different types are compared
    as ksqlDB does (numbers as decimals or doubles, strings against dates and times parsed)."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Logical(Expression):
    """`AND` or `OR`, in SQL's three-valued logic."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Not(Expression):
    operand: Expression


@dataclass(frozen=True)
class IsNull(Expression):
    operand: Expression


@dataclass(frozen=True)
class Like(Expression):
    value: Expression
    pattern: Expression
    escape: str | None


@dataclass(frozen=True)
class In(Expression):
    """`value IN (items)`; the items are already cast to the value's type."""

    value: Expression
    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Between(Expression):
    value: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True)
class When:
    condition: Expression
    result: Expression


@dataclass(frozen=True)
class Case(Expression):
    """Searched CASE; a simple CASE is bound to comparisons. No ELSE is ELSE NULL."""

    whens: tuple[When, ...]
    default: Expression | None


@dataclass(frozen=True)
class Cast(Expression):
    """An explicit CAST, or an implicit one the binder put in. `null_text`: whether null becomes
    the text 'null', where ksqlDB can be told so."""

    operand: Expression
    null_text: bool = False


@dataclass(frozen=True)
class Subscript(Expression):
    """`array[i]` (from 1, negative from the end) or `map[key]`."""

    base: Expression
    index: Expression


@dataclass(frozen=True)
class FieldValue(Expression):
    """`struct->field`."""

    base: Expression
    field: str


@dataclass(frozen=True)
class MakeArray(Expression):
    items: tuple[Expression, ...]


@dataclass(frozen=True)
class MakeMap(Expression):
    entries: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True)
class MakeStruct(Expression):
    fields: tuple[tuple[str, Expression], ...]


class _FieldNames(dict[type[Expression], tuple[str, ...]]):
    """The fields of each kind of expression, looked up once."""

    def __missing__(self, kind: type[Expression]) -> tuple[str, ...]:
        names = self[kind] = tuple(f.name for f in fields(kind))
        return names


_FIELD_NAMES = _FieldNames()


def children(expression: Expression) -> Iterator[Expression]:
    """The direct subexpressions, in the order of evaluation."""
    for name in _FIELD_NAMES[type(expression)]:
        yield from _nested(getattr(expression, name))


def _nested(value: object) -> Iterable[Expression]:
    if isinstance(value, Expression):
        return (value,)
    if isinstance(value, When):
        return (value.condition, value.result)
    if isinstance(value, tuple):
        return [nested for item in value for nested in _nested(item)]
    return ()


def columns_used(expression: Expression) -> frozenset[str]:
    """The names of all columns and pseudocolumns that the expression reads."""
    used: set[str] = set()
    todo = [expression]
    while todo:
        one = todo.pop()
        if isinstance(one, ColumnValue):
            used.add(one.name)
        todo += children(one)
    return frozenset(used)
