"""Statements that nest as deep as the parser lets them: planned, printed and explained, or refused
with a sentence; from a thread as small as those that serve requests."""

from __future__ import annotations

import threading

import pytest

from headrace.model.errors import HeadraceError
from headrace.plan.explain import explain
from headrace.sql.parser import parse_statement
from headrace.sql.printer import format_statement

DEEP = {
    "brackets": lambda n: "(" * n + "AMOUNT" + ")" * n,
    "signs": lambda n: "- " * n + "AMOUNT",
    "sums": lambda n: "AMOUNT" + " + 1" * n,
    "sums to the right": lambda n: "AMOUNT + (" * n + "1" + ")" * n,
    "calls": lambda n: "ABS(" * n + "AMOUNT" + ")" * n,
    "casts": lambda n: "CAST(" * n + "AMOUNT" + " AS INT)" * n,
    "cases": lambda n: "CASE WHEN AMOUNT = 1 THEN 1 ELSE " * n + "2" + " END" * n,
    "simple cases": lambda n: "CASE AMOUNT WHEN 1 THEN 1 ELSE " * n + "2" + " END" * n,
    "negations": lambda n: "NOT " * n + "(AMOUNT = 1)",
    "conjunctions": lambda n: "AMOUNT = 1" + " AND AMOUNT = 1" * n,
    "comparisons": lambda n: "(" * n + "AMOUNT = 1" + " AND TRUE)" * n,
    "arrays": lambda n: "ARRAY[" * n + "AMOUNT" + "]" * n,
    "maps": lambda n: "MAP('a' := " * n + "AMOUNT" + ")" * n,
    "structs": lambda n: "STRUCT(a := " * n + "AMOUNT" + ")" * n,
    "lambdas": lambda n: "TRANSFORM(TAGS, x => " * n + "'a'" + ")" * n,
    "texts": lambda n: "NAME" + " || NAME" * n,
    "fields": lambda n: "PLACE" + "->CITY" * n,
    "elements": lambda n: "TAGS" + "[1]" * n,
}


def problems_of(work):
    """What it raises besides errors for users, in a thread, whose stack is smaller than ours."""
    problems = []

    def run():
        try:
            work()
        except HeadraceError:
            pass
        except BaseException as problem:
            problems.append(f"{type(problem).__name__}: {problem}")

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return problems


@pytest.mark.parametrize("shape", DEEP)
@pytest.mark.parametrize("depth", [100, 330, 990, 5000])
def test_deep_expressions(catalog, shape, depth):
    text = f"CREATE STREAM X AS SELECT ID, {DEEP[shape](depth)} AS V FROM S;"

    def run():
        statement = parse_statement(text)
        assert parse_statement(format_statement(statement)) == statement
        explain(catalog.plan(text).node, "Q")

    assert problems_of(run) == []


@pytest.mark.parametrize("depth", [100, 990, 5000])
@pytest.mark.parametrize("opening", ["ARRAY<", "MAP<STRING, ", "STRUCT<A "])
def test_deep_types(catalog, opening, depth):
    text = f"CREATE STREAM X (A {opening * depth}INT{'>' * depth}) WITH (KAFKA_TOPIC='x'," + (
        " VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    assert problems_of(lambda: catalog.run(text)) == []
