"""Properties of any text and any tree: nothing but ParseError escapes, printing loses nothing."""

from __future__ import annotations

import decimal
import string

import parser_cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.model.errors import ParseError
from headrace.model.types import BIGINT, STRING, Array, Field, Map, SqlType, Struct
from headrace.model.types import Decimal as DecimalType
from headrace.sql import ast
from headrace.sql.keywords import KEYWORDS
from headrace.sql.parser import parse, parse_expression, parse_statement
from headrace.sql.printer import format_statement
from headrace.sql.tokens import tokenize

quick = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)

WORDS = [
    token.text for sql in parser_cases.inputs("statements.txt") for token in tokenize(sql).tokens
]
VOCABULARY = sorted({*WORDS, *KEYWORDS, "'s'", "1a", "${v}", "#", ".5", "1e5", "`b`", '"q"'})
STATEMENTS = parser_cases.inputs("statements.txt")


@st.composite
def mutated_statements(draw: st.DrawFn) -> str:
    """A statement some of whose tokens were dropped, replaced, doubled or moved."""
    tokens = [t.text for t in tokenize(draw(st.sampled_from(STATEMENTS))).tokens[:-1]]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(tokens)))
        removed = draw(st.integers(0, 2))
        tokens[at : at + removed] = draw(st.lists(st.sampled_from(VOCABULARY), max_size=2))
    return " ".join(tokens)


def read(text: str) -> list[ast.Statement] | None:
    """The statements of a text, None for a syntax error, empty for another error."""
    try:
        return [parsed.statement for parsed in parse(text)]
    except ParseError as error:
        return None if "Syntax Error" in error.message else []


@quick
@given(mutated_statements())
def test_mutated_statements(text: str):
    statements = read(text)
    for statement in statements or []:
        assert parse_statement(format_statement(statement)) == statement


@quick
@given(st.text(max_size=60) | st.text(alphabet=string.punctuation + "a1 \n", max_size=60))
def test_any_text(text: str):
    read(text)


names = st.sampled_from(["A", "B_1", "lower", "SELECT", "ARRAY", "MAP", "KEY", "1X", "12", "1E5"])
names |= st.text(alphabet="aB`'\" .1", min_size=1, max_size=4)

types: st.SearchStrategy[SqlType] = st.recursive(
    st.sampled_from([BIGINT, STRING, DecimalType(4, 2), ast.TypeRef("Mine")]),
    lambda inner: (
        inner.map(Array)
        | st.builds(Map, inner, inner)
        | st.lists(st.builds(Field, names, inner), max_size=2, unique_by=lambda f: f.name).map(
            lambda fields: Struct(tuple(fields))
        )
    ),
    max_leaves=3,
)

ints = st.integers(-(2**31), 2**31 - 1)
literals: st.SearchStrategy[ast.Expression] = (
    st.just(ast.NullLiteral())
    | st.booleans().map(ast.BooleanLiteral)
    | ints.map(ast.IntegerLiteral)
    | st.integers(2**31, 2**63 - 1).map(ast.LongLiteral)
    | st.floats(allow_nan=False, allow_infinity=False).map(ast.DoubleLiteral)
    | st.decimals(allow_nan=False, allow_infinity=False, places=3).map(ast.DecimalLiteral)
    | st.just(ast.DecimalLiteral(decimal.Decimal("5")))
    | st.text(max_size=5).map(ast.StringLiteral)
)


def composites(inner: st.SearchStrategy[ast.Expression]) -> st.SearchStrategy[ast.Expression]:
    def some(least: int) -> st.SearchStrategy[tuple[ast.Expression, ...]]:
        return st.lists(inner, min_size=least, max_size=3).map(tuple)

    x = ast.LambdaVar("X")
    doubled = ast.Lambda(("X",), ast.Arithmetic("+", x, x))
    whens = st.lists(st.builds(ast.When, inner, inner), min_size=1, max_size=2).map(tuple)
    return st.one_of(
        st.builds(ast.Arithmetic, st.sampled_from("+-*/%"), inner, inner),
        st.builds(ast.Sign, st.sampled_from("+-"), inner),
        st.builds(ast.Comparison, st.sampled_from(["=", "<>", "<="]), inner, inner),
        st.builds(ast.Comparison, st.just("IS DISTINCT FROM"), inner, inner),
        st.builds(ast.Logical, st.sampled_from(["AND", "OR"]), inner, inner),
        st.builds(ast.Not, inner),
        st.builds(ast.IsNull, inner),
        st.builds(ast.IsNotNull, inner),
        st.builds(ast.Between, inner, inner, inner),
        st.builds(ast.InList, inner, some(1)),
        st.builds(ast.Like, inner, inner, st.none() | st.sampled_from("'!x")),
        st.builds(ast.SearchedCase, whens, st.none() | inner),
        st.builds(ast.SimpleCase, inner, whens, st.none() | inner),
        st.builds(ast.Cast, inner, types),
        st.builds(ast.AtTimeZone, inner, st.text(max_size=3)),
        st.builds(ast.Subscript, inner, inner),
        st.builds(ast.Dereference, inner, names),
        st.builds(ast.CreateArray, some(0)),
        st.lists(st.tuples(inner, inner), max_size=2, unique_by=lambda e: e[0]).map(
            lambda entries: ast.CreateMap(tuple(entries))
        ),
        st.lists(st.tuples(names, inner), max_size=2).map(lambda f: ast.CreateStruct(tuple(f))),
        st.builds(ast.Call, names, some(0)),
        st.builds(lambda n, e: ast.Call(n, (e, doubled)), names, inner),
        st.builds(ast.Call, names, st.just((ast.IntervalUnit(ast.TimeUnit.DAYS),))),
    )


expressions = st.recursive(
    literals | st.builds(ast.ColumnRef, st.none() | names, names), composites, max_leaves=8
)


@quick
@given(expressions)
def test_expressions_survive_printing(expression: ast.Expression):
    assert parse_expression(expression.sql(ast.quoted)) == expression
