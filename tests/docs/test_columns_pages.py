"""The statements of the pages about columns: each is planned, or refused if the page says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.model.errors import StatementError
from headrace.plan.pull import plan_pull
from headrace.sql import ast
from headrace.sql.parser import parse_statement, split
from plan_catalog import Catalog

DOCS = Path(__file__).parents[2] / "docs"
# What the pages take for granted.
BEFORE = """
    CREATE STREAM orders (id STRING KEY, customer STRING, amount INT)
      WITH (kafka_topic='o', value_format='JSON');
    CREATE TABLE customers (id STRING PRIMARY KEY, name STRING, city STRING)
      WITH (kafka_topic='c', value_format='JSON');
    CREATE TABLE totals AS SELECT id, COUNT(*) AS n FROM orders GROUP BY id;
"""


def statements(page: str) -> list[str]:
    blocks = re.findall(r"```sql\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    lines = [line for block in blocks for line in re.findall(r"[^;]+;[^\n]*", block)]
    return [line.strip() for line in lines]


@pytest.mark.parametrize("page", ["headers.md", "pseudocolumns.md", "create-source.md"])
def test_what_is_documented_is_planned(page):
    catalog = Catalog()
    catalog.run(BEFORE)
    found = statements(page)
    assert len(found) > 1
    for text in found:
        if "-- refused" in text:
            with pytest.raises(StatementError):
                catalog.run(text)
            continue
        (piece,) = split(text)
        statement = parse_statement(piece.text)
        if isinstance(statement, ast.Query) and statement.emit is None:
            plan_pull(statement, catalog, {})
        else:
            catalog.run(text)


def test_each_form_of_a_column_is_in_the_synopsis():
    """The parser knows no other."""
    page = (DOCS / "create-source.md").read_text()
    for kind in ast.ConstraintKind:
        written = f"{kind.value}('key')" if kind is ast.ConstraintKind.HEADER else kind.value
        assert f" {written}`" in page
