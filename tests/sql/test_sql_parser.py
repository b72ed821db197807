"""What parses, to what, and what is said about what does not."""

from __future__ import annotations

import time

import parser_cases
import pytest

from headrace.model.errors import ParseError, Position
from headrace.model.types import BIGINT, STRING, Array, Decimal, Field, Map, Struct
from headrace.sql import ast
from headrace.sql.parser import (
    parse,
    parse_column,
    parse_expression,
    parse_statement,
    parse_type,
    split,
)
from headrace.sql.printer import display_expression, format_statement


def concrete(base: type) -> set[type]:
    subclasses = {c for s in base.__subclasses__() for c in concrete(s)}
    return subclasses or {base}


def answer_statement(sql: str, *, tests: bool = False) -> str:
    statement = parse_statement(sql, tests=tests)
    text = format_statement(statement)
    assert parse_statement(text, tests=tests) == statement
    return f"{type(statement).__name__}\n{text}"


def test_statements():
    parser_cases.check("statements.txt", answer_statement)


def test_statements_of_test_files():
    parser_cases.check("test_statements.txt", lambda sql: answer_statement(sql, tests=True))


def test_every_kind_of_statement_has_a_case():
    seen = {type(parse_statement(sql)) for sql in parser_cases.inputs("statements.txt")}
    seen |= {
        type(parse_statement(sql, tests=True)) for sql in parser_cases.inputs("test_statements.txt")
    }
    assert seen == concrete(ast.Statement)


def test_expressions():
    def answer(sql: str) -> str:
        expression = parse_expression(sql)
        text = expression.sql(ast.quoted)
        assert parse_expression(text) == expression
        return f"{text}\n{display_expression(expression)}\n{expression!r}"

    parser_cases.check("expressions.txt", answer)


def test_errors():
    def answer(sql: str) -> str:
        with pytest.raises(ParseError) as caught:
            parse(sql)
        position = caught.value.position
        place = f"{position.line}:{position.column}" if position else "?"
        return f"{caught.value.message}\n[{place}] {caught.value.statement}"

    parser_cases.check("errors.txt", answer)


def test_a_script_gives_each_statement_with_its_exact_text():
    parsed = parse("-- first\nSHOW  TABLES ;\n\nSELECT *\nFROM s; -- last\n")
    assert [p.text for p in parsed] == ["SHOW  TABLES ;", "SELECT *\nFROM s;"]
    assert parsed[1].statement.position == Position(4, 1)
    assert parse(" -- nothing\n") == []


def test_exactly_one_statement():
    with pytest.raises(ParseError, match="Expected exactly one KSQL statement; found 2 instead"):
        parse_statement("SHOW TABLES; SHOW STREAMS;")


def test_split_needs_no_valid_statements():
    script = "--@test: one\nSELECT ';' ;;\n--@test: two\n--@x: y\nFOO 'a\n;"
    assert [(s.text, s.position, s.directives) for s in split(script)] == [
        ("SELECT ';' ;", Position(2, 1), ("--@test: one",)),
        (";", Position(2, 13), ()),
        ("FOO 'a\n;", Position(5, 1), ("--@test: two", "--@x: y")),
    ]
    assert [s.text for s in split("SHOW TABLES; SHOW ")] == ["SHOW TABLES;", "SHOW"]


def test_types():
    assert parse_type("map<string, bigint array>") == Map(STRING, Array(BIGINT))
    assert parse_type("STRUCT<a DECIMAL(3,1), `b` mine>") == Struct(
        (Field("A", Decimal(3, 1)), Field("b", ast.TypeRef("MINE")))
    )
    with pytest.raises(ParseError):
        parse_type("INT INT")


def test_columns():
    assert parse_column("ts") == "TS"
    assert parse_column("s.`ts`") == "ts"
    with pytest.raises(ParseError, match="not column reference: 1 \\+ 2"):
        parse_column("1 + 2")


@pytest.mark.parametrize(
    ("sql", "kind", "position"),
    [
        ("SELECT a FROM s WHERE b =\n 1;", ast.Comparison, Position(1, 25)),
        ("SELECT a FROM s WHERE b IS NULL;", ast.IsNull, Position(1, 25)),
        ("SELECT a FROM s WHERE b NOT IN (1);", ast.InList, Position(1, 25)),
        ("SELECT a\nFROM t JOIN u ON t.x = u.y;", ast.JoinedSource, Position(2, 8)),
        ("SELECT a + f(b[1]) FROM s;", ast.Subscript, Position(1, 14)),
        ("INSERT INTO t SELECT * FROM s;", ast.InsertInto, Position(1, 13)),
        ("CREATE STREAM s (a INT, b INT KEY);", ast.Constraint, Position(1, 31)),
    ],
)
def test_positions(sql: str, kind: type[ast.Node], position: Position):
    found = [node for node in ast.walk(parse_statement(sql)) if isinstance(node, kind)]
    assert found[0].position == position


def test_positions_take_no_part_in_comparisons():
    assert parse_expression("a+b") == parse_expression("a  +  b")


def test_rewrite_changes_the_innermost_first():
    def upper(e: ast.Expression) -> ast.Expression:
        return ast.StringLiteral(e.value.upper()) if isinstance(e, ast.StringLiteral) else e

    before = parse_expression("CASE WHEN a = 'x' THEN MAP('k':='v') ELSE b END")
    after = ast.rewrite(before, upper)
    assert display_expression(after) == "(CASE WHEN (A = 'X') THEN MAP('K':='V') ELSE B END)"
    assert ast.rewrite(before, lambda e: e) is before


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 5000 + "1" + ")" * 5000,
        "NOT " * 5000 + "a",
        "- " * 5000 + "a",
        "a[" * 5000,
        "f(" * 5000,
        "CASE WHEN " * 5000,
        "CAST(a AS " + "ARRAY<" * 5000,
        "+".join(["a"] * 5000),
        "a" + "->b" * 5000,
        "a" + "[1]" * 5000,
    ],
)
def test_nesting_is_bounded(expression: str):
    with pytest.raises(ParseError):
        parse(f"SELECT {expression} FROM s;")


def test_hundreds_of_conditions_are_no_nesting():
    where = " OR ".join(f"id = {n}" for n in range(900))
    query = parse_statement(f"SELECT * FROM s WHERE {where};")
    assert parse_statement(format_statement(query)) == query


def test_large_statements_are_fast():
    column = "CASE WHEN a > {0} AND b LIKE 'x%' THEN TRANSFORM(c, x => x + {0})[1]->f END AS c{0}"
    columns = ",\n".join(column.format(n) for n in range(120))
    for sql in (f"SELECT {columns} FROM s;", f"SELECT {columns} FROM s s s;"):
        begun = time.perf_counter()
        try:
            parse(sql)
        except ParseError as error:
            assert "Syntax Error" in error.message
        assert time.perf_counter() - begun < 1  # about 50 ms where nothing else runs
