"""Mutated statements, planned as a server plans them: a plan or a user error, and soon.

`HEADRACE_FUZZ=100000 pytest tests/testing/test_statement_fuzz.py` tries as many.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.functions.registry import REGISTRY
from headrace.model.errors import HeadraceError
from headrace.model.settings import Settings
from headrace.sql.keywords import KEYWORDS
from headrace.sql.tokens import tokenize
from headrace.testing.rehearsal import TEST_SETTINGS, PretendedTopics, Rehearsal

EXAMPLES = int(os.environ.get("HEADRACE_FUZZ", "300"))
LONGEST_TEXT = 10_000
MOST_SECONDS = 0.1

WORLD = """
CREATE TYPE PLACE AS STRUCT<CITY STRING, ZIP INT>;
CREATE STREAM S (ID BIGINT KEY, NAME STRING, AMOUNT INT, PRICE DECIMAL(10, 2), MADE TIMESTAMP,
                 TAGS ARRAY<STRING>, SCORES MAP<STRING, DOUBLE>, HOME PLACE)
  WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE TABLE T (ID BIGINT PRIMARY KEY, TITLE STRING, FK BIGINT)
  WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
CREATE STREAM S2 (ID BIGINT KEY, OTHER STRING) WITH (KAFKA_TOPIC='s2', VALUE_FORMAT='JSON');
CREATE TABLE T2 (ID BIGINT PRIMARY KEY, MORE STRING) WITH (KAFKA_TOPIC='t2', VALUE_FORMAT='JSON');
CREATE TABLE W AS SELECT NAME, COUNT(*) AS N FROM S WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY NAME;
"""
STATEMENTS = [
    "CREATE STREAM N (ID INT KEY, A DECIMAL(4, 2), B ARRAY<PLACE>, C TIMESTAMP,"
    " H BYTES HEADER('h')) WITH (KAFKA_TOPIC='n', VALUE_FORMAT='AVRO', TIMESTAMP='C');",
    "CREATE OR REPLACE TABLE T (ID BIGINT PRIMARY KEY, TITLE STRING, FK BIGINT, MORE DATE)"
    " WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');",
    "CREATE STREAM N AS SELECT ID, UCASE(NAME) AS U, AMOUNT * 2 + PRICE AS X, HOME->CITY AS C,"
    " TAGS[1] AS FIRST, TRANSFORM(SCORES, (K, V) => K, (K, V) => V / 2) AS HALVES FROM S"
    " WHERE AMOUNT BETWEEN 1 AND 10 OR NAME LIKE 'a%' ESCAPE '!' PARTITION BY ID EMIT CHANGES;",
    "CREATE STREAM N WITH (KAFKA_TOPIC='n', FORMAT='PROTOBUF') AS SELECT S.ID, NAME, TITLE FROM S"
    " LEFT JOIN T ON S.ID = T.ID WHERE TITLE IS NOT NULL;",
    "CREATE TABLE N AS SELECT NAME, AS_VALUE(NAME) AS V, COUNT(*) AS N, TOPK(AMOUNT, 2) AS TOP,"
    " COLLECT_LIST(PRICE) AS PRICES FROM S WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 1 MINUTE,"
    " GRACE PERIOD 5 MINUTES) GROUP BY NAME HAVING COUNT(*) > 3 EMIT FINAL;",
    "CREATE STREAM N AS SELECT A.ID, B.OTHER FROM S A JOIN S2 B WITHIN 1 HOUR GRACE PERIOD 1 DAY"
    " ON A.ID = B.ID;",
    "CREATE TABLE N AS SELECT L.ID, R.MORE FROM T L JOIN T2 R ON L.FK = R.ID;",
    "INSERT INTO S SELECT ID, NAME, AMOUNT, PRICE, MADE, TAGS, SCORES, HOME FROM S;",
    "INSERT INTO S (ID, NAME, AMOUNT, PRICE, TAGS, HOME) VALUES"
    " (1, 'a', -2, 1.5, ARRAY['x'], STRUCT(CITY := 'c', ZIP := 1));",
    "CREATE STREAM N AS SELECT ID, CASE WHEN AMOUNT IN (1, 2) THEN CAST(PRICE AS STRING) ELSE"
    " CONCAT(NAME, 'x') END AS C, STRUCT(A := ID, B := MAP('k' := TAGS)) AS D,"
    " EXPLODE(TAGS) AS E, MADE AT TIME ZONE 'UTC' AS F FROM S;",
    "ALTER TABLE T ADD COLUMN EXTRA ARRAY<INT>;",
    "DROP TABLE IF EXISTS W DELETE TOPIC;",
    "TERMINATE ALL;",
]
FUNCTIONS = [declaration.name for declaration in REGISTRY.all()]
PIECES = sorted(
    {
        *KEYWORDS,
        *(token.text for sql in STATEMENTS for token in tokenize(sql).tokens[:-1]),
        *("ROWTIME", "WINDOWSTART", "ROWKEY", "1a", ".5", "1e5", "0", "-1", "99999999999999999999"),
        *("''", '"q"', "`b`", "${v}", "#", "NULL", "X => X", "ARRAY[]", "STRUCT(", "(SELECT"),
    }
)


@st.composite
def mutated_statements(draw: st.DrawFn) -> str:
    """A statement some of whose tokens were dropped, replaced or copied, perhaps very often."""
    tokens = [t.text for t in tokenize(draw(st.sampled_from(STATEMENTS))).tokens[:-1]]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(tokens)))
        removed = draw(st.integers(0, 2))
        start = draw(st.integers(0, max(len(tokens) - 1, 0)))
        copied = tokens[start : start + draw(st.integers(1, 6))]
        often = draw(st.sampled_from([1] * 9 + [1000]))
        new: list[str] = draw(
            st.lists(st.sampled_from(PIECES), max_size=2)
            | st.sampled_from(FUNCTIONS).map(lambda name: [name, "("])
            | st.just(copied * often)
        )
        tokens[at : at + removed] = new
    return " ".join(tokens)[: LONGEST_TEXT - 1]


def world() -> Rehearsal:
    made = Rehearsal(PretendedTopics(), Settings(TEST_SETTINGS))
    made.run(WORLD)
    return made


BEGIN = world()


def plan(text: str) -> float:
    """How many seconds it takes to plan, or to say why not."""
    here = replace(BEGIN, changes=list(BEGIN.changes))
    began = time.thread_time()
    try:
        here.run(text)
    except HeadraceError as error:
        str(error)
    return time.thread_time() - began


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES < 1000,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(mutated_statements())
def test_a_plan_or_a_user_error(text: str):
    # Other work on the machine slows a try down, but hardly each of three.
    assert any(plan(text) < MOST_SECONDS for _ in range(3))
