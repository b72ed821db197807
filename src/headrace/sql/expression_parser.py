"""Parses expressions, by operator precedence.

OR < AND < NOT < one predicate < `||` < `+ -` < `* / %` < sign < AT TIME ZONE < `[ ]` and `->`
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import ClassVar

from headrace.model.errors import Position
from headrace.model.types import DATE, TIME, TIMESTAMP, SqlType
from headrace.sql.cursor import at, unquote
from headrace.sql.printer import display_expression
from headrace.sql.tokens import Source
from headrace.sql.tree import (
    Arithmetic,
    AtTimeZone,
    Between,
    BooleanLiteral,
    Call,
    Cast,
    ColumnRef,
    Comparison,
    CreateArray,
    CreateMap,
    CreateStruct,
    DecimalLiteral,
    Dereference,
    Expression,
    InList,
    IntervalUnit,
    IsNotNull,
    IsNull,
    Lambda,
    LambdaVar,
    Like,
    Literal,
    Logical,
    Not,
    NullLiteral,
    SearchedCase,
    Sign,
    SimpleCase,
    StringLiteral,
    Subscript,
    TimeUnit,
    When,
)
from headrace.sql.type_parser import NUMBERS, TypeParser

TIME_UNITS: dict[str, TimeUnit] = {
    name: unit for unit in TimeUnit for name in (unit.name, unit.name.removesuffix("S"))
}

_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
# How tightly binary operators bind; equal ones bind to the left.
_LOGICAL = {"OR": 1, "AND": 2}
_POWER = {"||": 1, "+": 2, "-": 2, "*": 3, "/": 3, "%": 3}
_TYPED_LITERALS: dict[str, SqlType] = {"DATE": DATE, "TIME": TIME, "TIMESTAMP": TIMESTAMP}

Reader = Callable[["ExpressionParser", Position], Expression]
Predicate = Callable[["ExpressionParser", Expression, Position], Expression]


class ExpressionParser(TypeParser):
    def __init__(self, source: Source, *, tests: bool = False, start: int = 0) -> None:
        super().__init__(source, tests=tests, start=start)
        self.qualifiers: list[tuple[str, Position]] = []  # sources that columns were asked of
        self._lambda_params: list[str] = []
        self._item_start = -1  # where the current item of a SELECT begins

    def whole(self) -> object:
        self.expression()
        return self.expect("eof")

    # --------------------------------------------------------------------------------- booleans

    def expression(self) -> Expression:
        self.deeper()
        result = self._logical(1)
        self.shallower()
        return result

    def _logical(self, minimum: int) -> Expression:
        left = self._negation()
        while (power := _LOGICAL.get(self.kind, 0)) >= minimum:
            position = self.position
            op = self.advance().kind
            left = Logical(op, left, self._logical(power + 1), position=position)
        return left

    def _negation(self) -> Expression:
        if self.kind != "NOT":
            return self._predicated()
        self.deeper()
        position = self.position_of(self.advance())
        operand = self._negation()
        self.shallower()
        return Not(operand, position=position)

    def _predicated(self) -> Expression:
        value = self.value()
        if self.kind in _COMPARISONS:
            position = self.position
            op = self.advance().kind
            return Comparison(op, value, self.value(), position=position)
        position = self.position
        negated = self.kind == "NOT"
        if negated:
            self.advance()
            if self.kind not in self._NEGATABLE:
                self.fail()
        predicate = self._PREDICATES.get(self.kind)
        if predicate is None:
            return value
        self.advance()
        result = predicate(self, value, position)
        return Not(result, position=position) if negated else result

    def _is(self, value: Expression, position: Position) -> Expression:
        negated = self.accept("NOT")
        if self.accept("DISTINCT"):
            self.expect("FROM")
            distinct = Comparison("IS DISTINCT FROM", value, self.value(), position=position)
            return Not(distinct, position=position) if negated else distinct
        self.expect("NULL")
        return (IsNotNull if negated else IsNull)(value, position=position)

    def _between(self, value: Expression, position: Position) -> Expression:
        lower = self.value()
        self.expect("AND")
        return Between(value, lower, self.value(), position=position)

    def _in(self, value: Expression, position: Position) -> Expression:
        self.expect("(")
        items = self.listed(self.expression)
        self.expect(")")
        return InList(value, items, position=position)

    def _like(self, value: Expression, position: Position) -> Expression:
        pattern = self.value()
        escape = None
        if self.sees("ESCAPE", "string"):  # ESCAPE alone may be the name of a column
            self.advance()
            where = self.position
            escape = self.string()
            if len(escape) != 1:
                self.reject(
                    f"Optional[{at(where)}]: Expected single character escape but got: {escape}"
                )
        return Like(value, pattern, escape, position=position)

    _PREDICATES: ClassVar[dict[str, Predicate]] = {
        "IS": _is,
        "BETWEEN": _between,
        "IN": _in,
        "LIKE": _like,
    }
    _NEGATABLE = frozenset(_PREDICATES) - {"IS"}

    # ----------------------------------------------------------------------------------- values

    def value(self, minimum: int = 1) -> Expression:
        """A value made by operators that bind at least as tightly as `minimum`."""
        left = self._signed()
        while (power := _POWER.get(self.kind, 0)) >= minimum:
            position = self.position
            op = self.advance().kind
            right = self.value(power + 1)
            if op == "||":
                left = Call("CONCAT", (left, right), position=position)
            else:
                left = Arithmetic(op, left, right, position=position)
        return left

    def _signed(self) -> Expression:
        if self.kind not in ("+", "-") or self.sees_number():
            return self._zoned()
        self.deeper()
        position = self.position
        op = self.advance().kind
        operand = self._signed()
        self.shallower()
        return Sign(op, operand, position=position)

    def _zoned(self) -> Expression:
        position = self.position
        value = self.primary()
        while self.accept("AT"):
            self.expect("TIME", "ZONE")
            value = AtTimeZone(value, self.string(), position=position)
        return value

    # -------------------------------------------------------------------------------- primaries

    def primary(self) -> Expression:
        start, position = self.index, self.position
        value = self._simple_primary(position)
        while True:
            if self.kind == "->":
                if self.peek(1) == "*" and start == self._item_start:
                    return value  # every field of a struct: for SELECT to take
                self.advance()
                value = Dereference(value, self.identifier(), position=position)
            elif self.accept("["):
                self.deeper()
                index = self.value()
                self.shallower()
                self.expect("]")
                value = Subscript(value, index, position=position)
            else:
                return value

    def _simple_primary(self, position: Position) -> Expression:
        kind = self.kind
        if kind in NUMBERS or kind == "-" or (kind in self._LITERALS and not self._sees_named()):
            return self.literal(in_expression=True)
        if kind == "(":
            self.advance()
            inner = self.expression()
            self.expect(")")
            return inner
        special = self._SPECIAL.get(kind)
        if special is not None and special[0] in ("", self.peek(1)):
            return special[1](self, position)
        name = self.identifier()
        following = self.kind
        if following == "string":
            return self._typed_literal(name, position)
        if following == "(":
            return self._call(name, position)
        if following == ".":
            self.advance()
            self.qualifiers.append((name, position))
            return ColumnRef(name, self.identifier(), position=position)
        if name in self._lambda_params:
            return LambdaVar(name, position=position)
        return ColumnRef(None, name, position=position)

    def _sees_named(self) -> bool:
        """Whether a variable here must be a name, by what follows it."""
        return self.kind == "variable" and self.peek(1) in (".", "(", "string")

    def literal(self, *, in_expression: bool = False) -> Literal:
        position, kind = self.position, self.kind
        if self.sees_number():
            return self.number()
        if kind not in self._LITERALS:
            self.fail()
        token = self.advance()
        if kind == "NULL":
            return NullLiteral(position=position)
        if kind in ("TRUE", "FALSE"):
            return BooleanLiteral(kind == "TRUE", position=position)
        if kind == "variable":
            self.use_variable(token, literal=True, may_be_name=in_expression)
            return StringLiteral(token.text, position=position)
        return StringLiteral(unquote(token.text), position=position)

    _LITERALS = frozenset({"NULL", "TRUE", "FALSE", "string", "variable"})

    def _typed_literal(self, name: str, position: Position) -> Expression:
        where = self.position
        text = self.string()
        if name == "DECIMAL":
            try:
                return DecimalLiteral(decimal.Decimal(text), position=position)
            except decimal.InvalidOperation:
                self.reject(f"Invalid numeric literal: {text}", where)
        elif name not in _TYPED_LITERALS:
            self.reject(f"Unknown type: {name}, location:Optional[{at(position)}]", position)
        literal = StringLiteral(text, position=where)
        return Cast(literal, _TYPED_LITERALS.get(name, DATE), position=position)

    def _case(self, position: Position) -> Expression:
        self.expect("CASE")
        operand = None if self.kind == "WHEN" else self.value()
        whens = [self._when()]
        while self.kind == "WHEN":
            whens.append(self._when())
        default = self.expression() if self.accept("ELSE") else None
        self.expect("END")
        if operand is None:
            return SearchedCase(tuple(whens), default, position=position)
        return SimpleCase(operand, tuple(whens), default, position=position)

    def _when(self) -> When:
        position = self.position_of(self.expect("WHEN"))
        condition = self.expression()
        self.expect("THEN")
        return When(condition, self.expression(), position=position)

    def _cast(self, position: Position) -> Expression:
        self.expect("CAST", "(")
        operand = self.expression()
        self.expect("AS")
        type_ = self.type()
        self.expect(")")
        return Cast(operand, type_, position=position)

    def _array(self, position: Position) -> Expression:
        self.expect("ARRAY", "[")
        items = () if self.kind == "]" else self.listed(self.expression)
        self.expect("]")
        return CreateArray(items, position=position)

    def _map(self, position: Position) -> Expression:
        self.expect("MAP", "(")
        if self.accept(")"):
            return CreateMap((), position=position)
        first = self.expression()
        if self.kind != ":=":  # a function that happens to be called MAP
            return self._arguments("MAP", [first], position)
        entries = [(first, self._assigned())]
        while self.accept(","):
            entries.append((self.expression(), self._assigned()))
        self.expect(")")
        seen: dict[Expression, Expression] = {}
        for key, value in entries:
            if key in seen:
                old, new = display_expression(seen[key]), display_expression(value)
                name = display_expression(key)
                self.reject(f"Multiple entries with same key: {name}={old} and {name}={new}")
            seen[key] = value
        return CreateMap(tuple(entries), position=position)

    def _struct_value(self, position: Position) -> Expression:
        if not (self.peek(2) == ")" or (self.sees_name(2) and self.peek(3) == ":=")):
            return self._call(self.identifier(), position)
        self.expect("STRUCT", "(")
        fields: tuple[tuple[str, Expression], ...] = ()
        if self.kind != ")":
            fields = self.listed(lambda: (self.identifier(), self._assigned()))
        self.expect(")")
        return CreateStruct(fields, position=position)

    def _assigned(self) -> Expression:
        self.expect(":=")
        return self.expression()

    # Words that begin something of their own, some only when a symbol follows.
    _SPECIAL: ClassVar[dict[str, tuple[str, Reader]]] = {
        "CASE": ("", _case),
        "CAST": ("", _cast),
        "ARRAY": ("[", _array),
        "MAP": ("(", _map),
        "STRUCT": ("(", _struct_value),
    }

    # ------------------------------------------------------------------------------------ calls

    def _call(self, name: str, position: Position) -> Expression:
        self.expect("(")
        if self.accept("*"):
            self.expect(")")
            return Call(name, position=position)
        if self.accept(")"):
            return Call(name, position=position)
        return self._arguments(name, [self._argument()], position)

    def _arguments(self, name: str, args: list[Expression], position: Position) -> Expression:
        """The arguments after the first: values, then lambdas."""
        while self.accept(","):
            if self._sees_lambda():
                args.append(self._lambda())
            elif isinstance(args[-1], Lambda):
                self._fail_after_lambda()
            else:
                args.append(self._argument())
        self.expect(")")
        return Call(name, tuple(args), position=position)

    def _argument(self) -> Expression:
        # Units that may also be names are columns here.
        if self.kind in TIME_UNITS and not self.sees_name():
            position = self.position
            return IntervalUnit(TIME_UNITS[self.advance().kind], position=position)
        return self.expression()

    def _sees_lambda(self) -> bool:
        if self.sees_name():
            return self.peek(1) == "=>"
        if self.kind != "(" or not self.sees_name(1):
            return False
        ahead = 2
        while self.peek(ahead) == "," and self.sees_name(ahead + 1):
            ahead += 2
        return self.peek(ahead) == ")" and self.peek(ahead + 1) == "=>"

    def _lambda(self) -> Expression:
        position = self.position
        if self.accept("("):
            params = self.listed(self.identifier)
            self.expect(")")
        else:
            params = (self.identifier(),)
        self.expect("=>")
        outer = len(self._lambda_params)
        self._lambda_params.extend(params)
        body = self.expression()
        del self._lambda_params[outer:]
        return Lambda(params, body, position=position)

    def _fail_after_lambda(self) -> None:
        """Only lambdas may follow a lambda: finds the token that shows it is none."""
        if self.accept("("):
            self.identifier()
            while self.accept(","):
                self.identifier()
            self.expect(")")
        else:
            self.identifier()
        self.expect("=>")
