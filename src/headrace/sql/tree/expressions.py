"""Expressions as parsed: names unresolved, no types."""

from __future__ import annotations

import dataclasses
import decimal
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from headrace.model.types import MILLIS_PER_DAY, SqlType, quote
from headrace.sql.tree.base import (
    FIELD_NAMES,
    Names,
    Node,
    bare,
    listed,
    quoted,
    string,
    type_text,
)

# Words that may be names, but begin something else when the symbol beside them follows.
_AMBIGUOUS = frozenset({"ARRAY", "MAP", "STRUCT"})


@dataclass(frozen=True)
class Expression(Node):
    """Anything that has a value for a row."""


@dataclass(frozen=True)
class Literal(Expression):
    """A constant. Every literal has a `value`."""

    value: object

    def sql(self, names: Names) -> str:
        return str(self.value)


@dataclass(frozen=True)
class NullLiteral(Literal):
    value: None = None

    def sql(self, names: Names) -> str:
        return "null"


@dataclass(frozen=True)
class BooleanLiteral(Literal):
    value: bool

    def sql(self, names: Names) -> str:
        return "true" if self.value else "false"


@dataclass(frozen=True)
class IntegerLiteral(Literal):
    value: int


@dataclass(frozen=True)
class LongLiteral(Literal):
    value: int


@dataclass(frozen=True)
class DecimalLiteral(Literal):
    """A number with a point; its digits are its precision and scale."""

    value: decimal.Decimal

    def sql(self, names: Names) -> str:
        if names is bare:
            return str(self.value)
        text = format(self.value, "f")  # an exponent would make it a DOUBLE
        return text if "." in text else text + "."


@dataclass(frozen=True)
class DoubleLiteral(Literal):
    """A number with an exponent."""

    value: float

    def sql(self, names: Names) -> str:
        """In scientific notation with the fewest digits, which no other literal is written in."""
        sign, digits, exponent = decimal.Decimal(repr(self.value)).normalize().as_tuple()
        assert isinstance(exponent, int)  # literals are finite
        text = "".join(map(str, digits))
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        return f"{'-' if sign else ''}{text[0]}{fraction}E{exponent + len(text) - 1}"


@dataclass(frozen=True)
class StringLiteral(Literal):
    value: str

    def sql(self, names: Names) -> str:
        return string(self.value)


@dataclass(frozen=True)
class ColumnRef(Expression):
    """A column, optionally of a named source: `name` or `source.name`. `stands_for` is the text of
    the expression in whose place a query's own column was put, for whoever reads of it."""

    source: str | None
    name: str
    stands_for: str | None = field(default=None, compare=False, repr=False, kw_only=True)

    def sql(self, names: Names) -> str:
        if self.stands_for is not None:
            return self.stands_for
        name = names(self.name)
        if not self.source:
            return name
        if names is quoted and name[0].isdigit():
            name = quote(name)  # else the point would become part of a number
        return f"{names(self.source)}.{name}"


@dataclass(frozen=True)
class Arithmetic(Expression):
    """An operation on numbers; `op` is one of `+ - * / %`."""

    op: str
    left: Expression
    right: Expression

    def sql(self, names: Names) -> str:
        return f"({self.left.sql(names)} {self.op} {self.right.sql(names)})"


@dataclass(frozen=True)
class Sign(Expression):
    """A sign before an expression; `op` is `-` or `+`."""

    op: str
    operand: Expression

    def sql(self, names: Names) -> str:
        operand = self.operand.sql(names)
        literal = isinstance(self.operand, Literal) and not operand.startswith("-")
        if names is quoted and (literal or operand[:1].isdigit()):
            return f"{self.op}({operand})"  # else the sign would become part of the number
        space = " " if operand.startswith("-") and self.op == "-" else ""  # two make a comment
        return f"{self.op}{space}{operand}"


@dataclass(frozen=True)
class Comparison(Expression):
    """`op` is one of `= <> < <= > >=` or `IS DISTINCT FROM`; `IS NOT DISTINCT FROM` is a Not."""

    op: str
    left: Expression
    right: Expression

    def sql(self, names: Names) -> str:
        return f"({self.left.sql(names)} {self.op} {self.right.sql(names)})"


@dataclass(frozen=True)
class Logical(Expression):
    """A logical operation; `op` is `AND` or `OR`."""

    op: str
    left: Expression
    right: Expression

    def sql(self, names: Names) -> str:
        return f"({self.left.sql(names)} {self.op} {self.right.sql(names)})"


@dataclass(frozen=True)
class Not(Expression):
    operand: Expression

    def sql(self, names: Names) -> str:
        return f"(NOT {self.operand.sql(names)})"


@dataclass(frozen=True)
class IsNull(Expression):
    operand: Expression

    def sql(self, names: Names) -> str:
        return f"({self.operand.sql(names)} IS NULL)"


@dataclass(frozen=True)
class IsNotNull(Expression):
    operand: Expression

    def sql(self, names: Names) -> str:
        return f"({self.operand.sql(names)} IS NOT NULL)"


@dataclass(frozen=True)
class Between(Expression):
    value: Expression
    lower: Expression
    upper: Expression

    def sql(self, names: Names) -> str:
        bounds = f"{self.lower.sql(names)} AND {self.upper.sql(names)}"
        return f"({self.value.sql(names)} BETWEEN {bounds})"


@dataclass(frozen=True)
class InList(Expression):
    value: Expression
    items: tuple[Expression, ...]

    def sql(self, names: Names) -> str:
        return f"({self.value.sql(names)} IN ({listed(self.items, names)}))"


@dataclass(frozen=True)
class Like(Expression):
    value: Expression
    pattern: Expression
    escape: str | None = None

    def sql(self, names: Names) -> str:
        escape = f" ESCAPE {string(self.escape)}" if self.escape is not None else ""
        return f"({self.value.sql(names)} LIKE {self.pattern.sql(names)}{escape})"


@dataclass(frozen=True)
class When(Node):
    condition: Expression
    result: Expression

    def sql(self, names: Names) -> str:
        return f"WHEN {self.condition.sql(names)} THEN {self.result.sql(names)}"


@dataclass(frozen=True)
class SearchedCase(Expression):
    whens: tuple[When, ...]
    default: Expression | None = None

    def sql(self, names: Names) -> str:
        return _case(["CASE"], self.whens, self.default, names)


@dataclass(frozen=True)
class SimpleCase(Expression):
    operand: Expression
    whens: tuple[When, ...]
    default: Expression | None = None

    def sql(self, names: Names) -> str:
        return _case(["CASE", self.operand.sql(names)], self.whens, self.default, names)


def _case(
    parts: list[str], whens: tuple[When, ...], default: Expression | None, names: Names
) -> str:
    parts += [when.sql(names) for when in whens]
    if default is not None:
        parts += ["ELSE", default.sql(names)]
    return f"({' '.join(parts)} END)"


@dataclass(frozen=True)
class Cast(Expression):
    """A cast; typed literals such as `DATE '2024-02-29'` are casts of their text."""

    operand: Expression
    type: SqlType

    def sql(self, names: Names) -> str:
        return f"CAST({self.operand.sql(names)} AS {type_text(self.type, names)})"


@dataclass(frozen=True)
class AtTimeZone(Expression):
    operand: Expression
    zone: str

    def sql(self, names: Names) -> str:
        return f"({base_text(self.operand, names)} AT TIME ZONE {string(self.zone)})"


@dataclass(frozen=True)
class Subscript(Expression):
    base: Expression
    index: Expression

    def sql(self, names: Names) -> str:
        return f"{base_text(self.base, names)}[{self.index.sql(names)}]"


@dataclass(frozen=True)
class Dereference(Expression):
    """A field of a struct: `base->field`."""

    base: Expression
    field: str

    def sql(self, names: Names) -> str:
        return f"{base_text(self.base, names)}->{names(self.field)}"


def base_text(node: Expression, names: Names) -> str:
    """What a subscript, a field or a time zone is taken of."""
    text = node.sql(names)
    if names is quoted:
        if isinstance(node, Sign):
            return f"({text})"
        if isinstance(node, ColumnRef | LambdaVar) and text in _AMBIGUOUS:
            return quote(text)
    return text


@dataclass(frozen=True)
class CreateArray(Expression):
    items: tuple[Expression, ...]

    def sql(self, names: Names) -> str:
        return f"ARRAY[{listed(self.items, names)}]"


@dataclass(frozen=True)
class CreateMap(Expression):
    entries: tuple[tuple[Expression, Expression], ...]

    def sql(self, names: Names) -> str:
        entries = (f"{key.sql(names)}:={value.sql(names)}" for key, value in self.entries)
        return f"MAP({', '.join(entries)})"


@dataclass(frozen=True)
class CreateStruct(Expression):
    fields: tuple[tuple[str, Expression], ...]

    def sql(self, names: Names) -> str:
        fields = (f"{names(name)}:={value.sql(names)}" for name, value in self.fields)
        return f"STRUCT({', '.join(fields)})"


@dataclass(frozen=True)
class Call(Expression):
    """A function applied to arguments. `a || b` is a call of CONCAT; `f(*)` has no arguments."""

    name: str
    args: tuple[Expression, ...] = ()

    def sql(self, names: Names) -> str:
        args = "*" if self.name == "COUNT" and not self.args else listed(self.args, names)
        name = names(self.name)
        # MAP() and STRUCT() without arguments are constructors.
        return f"{quote(name) if name in _AMBIGUOUS and names is quoted else name}({args})"


@dataclass(frozen=True)
class Lambda(Expression):
    """An argument of a function that is itself a function of `params`."""

    params: tuple[str, ...]
    body: Expression

    def sql(self, names: Names) -> str:
        return f"({', '.join(map(names, self.params))}) => {self.body.sql(names)}"


@dataclass(frozen=True)
class LambdaVar(Expression):
    """A parameter of an enclosing lambda."""

    name: str

    def sql(self, names: Names) -> str:
        return names(self.name)


class TimeUnit(Enum):
    """Units of time a duration may be written in; the value is its milliseconds."""

    MILLISECONDS = 1
    SECONDS = 1_000
    MINUTES = 60_000
    HOURS = 3_600_000
    DAYS = MILLIS_PER_DAY


@dataclass(frozen=True)
class IntervalUnit(Expression):
    """A unit of time as an argument of a function, as in `TIMESTAMPADD(DAYS, 1, ts)`."""

    unit: TimeUnit

    def sql(self, names: Names) -> str:
        return self.unit.name


def rewrite(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with `change` applied to each part of it, innermost first."""
    updates = {}
    for name in FIELD_NAMES[type(expression)]:
        old = getattr(expression, name)
        new = _rewrite_value(old, change)
        if new is not old:
            updates[name] = new
    return change(dataclasses.replace(expression, **updates) if updates else expression)


def _rewrite_value(value: Any, change: Callable[[Expression], Expression]) -> Any:
    if isinstance(value, Expression):
        return rewrite(value, change)
    if isinstance(value, When):
        condition, result = (
            rewrite(value.condition, change),
            rewrite(value.result, change),
        )
        if condition is value.condition and result is value.result:
            return value
        return dataclasses.replace(value, condition=condition, result=result)
    if isinstance(value, tuple):
        items = tuple(_rewrite_value(item, change) for item in value)
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return value
