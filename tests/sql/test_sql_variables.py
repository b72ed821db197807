"""What `${variables}` may stand for, and where."""

from __future__ import annotations

import pytest

from headrace.model.errors import ParseError
from headrace.sql.variables import substitute, substitute_text

VARIABLES = {
    "name": "orders",
    "Quoted": "`my stream`",
    "ident": "`Orders`",
    "number": "3",
    "negative": "-1.5e3",
    "flag": "true",
    "text": "'it's'",
    "env": "qa",
    "quote": "a'b",
    "nested": "topic_${env}",
    "loop": "${loop}",
    "list": "a, b WHERE c",
    "condition": "1) OR (1 = 1",
}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("DESCRIBE ${name};", "DESCRIBE orders;"),
        ("DESCRIBE ${NAME} EXTENDED;", "DESCRIBE orders EXTENDED;"),
        ("SELECT * FROM ${ident};", "SELECT * FROM `Orders`;"),
        ("SELECT ${name} AS ${env} FROM s;", "SELECT orders AS qa FROM s;"),
        ("SELECT ${name}.a FROM ${name};", "SELECT orders.a FROM orders;"),
        (
            "INSERT INTO s VALUES (${number}, ${negative}, ${flag}, ${text});",
            "INSERT INTO s VALUES (3, -1.5e3, true, 'it''s');",
        ),
        (
            "CREATE STREAM s WITH (kafka_topic='t_${env}', partitions=${number});",
            "CREATE STREAM s WITH (kafka_topic='t_qa', partitions=3);",
        ),
        ("SELECT '${quote}' FROM s;", "SELECT 'a''b' FROM s;"),
        ("SELECT '${unknown} $${env} ${x:-y}' FROM s;", "SELECT '${unknown} ${env} y' FROM s;"),
        ("DEFINE a = '${nested}';", "DEFINE a = 'topic_qa';"),
        ("SET 'a' = '${env}'; -- ${env}", "SET 'a' = 'qa'; -- ${env}"),
        ("PRINT ${name} LIMIT 1;", "PRINT orders LIMIT 1;"),
        ("SHOW TABLES;", "SHOW TABLES;"),
        ("", ""),
    ],
)
def test_substitution(sql: str, expected: str):
    assert substitute(sql, VARIABLES) == expected


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "INSERT INTO ${list} VALUES (1);",
            "Illegal argument at Line: 1, Col: 13. Identifier names cannot start with '@' and may "
            "only contain alphanumeric values and '_'. Got: 'a, b WHERE c'",
        ),
        (
            "SELECT * FROM s WHERE id = ${condition};",
            "Illegal argument at Line: 1, Col: 28. Got: '1) OR (1 = 1'",
        ),
        ("DESCRIBE ${quoted};", "Got: '`my stream`'"),
        ("DESCRIBE ${number};", "Got: '3'"),
        ("DESCRIBE ${unknown};", "Got: '${unknown}'"),
        ("CREATE STREAM s WITH (partitions=${name});", "Got: 'orders'"),
        ("SELECT * FROM s LIMIT ${number};", "Syntax Error"),
        ("DEFINE a = '${loop}';", "Infinite loop in property interpolation of loop"),
    ],
)
def test_refusals(sql: str, message: str):
    with pytest.raises(ParseError) as caught:
        substitute(sql, VARIABLES)
    assert message in caught.value.message


def test_any_text():
    assert substitute_text("run ${script}.sql", {"SCRIPT": "setup"}) == "run setup.sql"


def test_values_of_values_cannot_grow_without_end():
    """Each doubles the one before: thirty of them would be a gigabyte."""
    doubling = {f"v{i}": f"${{v{i + 1}}}${{v{i + 1}}}" for i in range(40)}
    with pytest.raises(ParseError, match="more than 4194304 characters"):
        substitute_text("${v0}", {**doubling, "v40": "x"})
    assert substitute_text("${v0}", {**doubling, "v40": ""}) == ""
    chain = {f"v{i}": f"${{v{i + 1}}}" for i in range(50_000)}
    with pytest.raises(ParseError, match="Infinite loop"):
        substitute_text("${v0}", chain)
