"""Answers of a running server: pull queries, insert streams, PRINT."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from headrace.client import Client, ClientError

pytestmark = pytest.mark.heavy

PATIENCE = 90.0


@pytest.fixture(scope="module")
def client(server):
    with Client(server.url, properties={"auto.offset.reset": "earliest"}) as client:
        yield client


@pytest.fixture(scope="module")
def tables(client):
    """SALES: three rows of two keys; TOTALS and HOURLY over it."""
    client.execute(
        """
        CREATE STREAM SALES (ID STRING KEY, AMOUNT INT, SHOP STRUCT<CITY STRING>)
            WITH (KAFKA_TOPIC='sales', PARTITIONS=2, VALUE_FORMAT='JSON');
        CREATE TABLE TOTALS AS
            SELECT ID, COUNT(*) AS N, SUM(AMOUNT) AS TOTAL, LATEST_BY_OFFSET(SHOP) AS SHOP
            FROM SALES GROUP BY ID;
        CREATE TABLE HOURLY AS
            SELECT ID, COUNT(*) AS N FROM SALES WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY ID;
        INSERT INTO SALES (ROWTIME, ID, AMOUNT, SHOP) VALUES (1000, 'a', 5, STRUCT(CITY := 'Rome'));
        INSERT INTO SALES (ROWTIME, ID, AMOUNT) VALUES (2000, 'ab', 1);
        INSERT INTO SALES (ROWTIME, ID, AMOUNT) VALUES (3600000, 'a', 6);
        """
    )
    until(lambda: pull(client, "SELECT ID FROM TOTALS;"), lambda rows: len(rows) == 2)
    until(lambda: pull(client, "SELECT ID FROM HOURLY;"), lambda rows: len(rows) == 3)
    until(lambda: pull(client, "SELECT N FROM TOTALS WHERE ID = 'a';"), lambda r: r == [(2,)])


def pull(client: Client, text: str, **properties: object) -> list[tuple[object, ...]]:
    named = {k.replace("__", "."): v for k, v in properties.items()}
    return [tuple(row) for row in client.pull(text, properties=named)]


def until(look: Callable[[], object], good: Callable[..., bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not good(seen := look()):
        assert time.monotonic() < deadline, seen
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT ID, N, TOTAL FROM TOTALS WHERE ID = 'a';", [("a", 2, 11)]),
        ("SELECT ID, N, TOTAL FROM TOTALS WHERE ID = 'ab';", [("ab", 1, 1)]),
        ("SELECT ID, N, TOTAL FROM TOTALS WHERE ID = 'it''s not there';", []),
        ("SELECT ID FROM TOTALS WHERE ID IN ('ab', 'x', 'a', 'ab');", [("ab",), ("a",)]),
        ("SELECT ID FROM TOTALS WHERE ID > 'a';", [("ab",)]),
        ("SELECT ID FROM TOTALS WHERE ID <= 'a';", [("a",)]),
        ("SELECT ID FROM TOTALS;", [("a",), ("ab",)]),
        ("SELECT ID FROM TOTALS LIMIT 1;", [("a",)]),
        ("SELECT ID FROM TOTALS WHERE N > 1 AND ID IS NOT NULL;", [("a",)]),
        ("SELECT ID, ROWTIME FROM TOTALS WHERE ID = 'ab';", [("ab", 2000)]),
        ("SELECT UCASE(ID) AS U, N * 2 AS M FROM TOTALS WHERE LEN(ID) = 2;", [("AB", 2)]),
        ("SELECT ID, SHOP->CITY FROM TOTALS WHERE SHOP->CITY = 'Rome';", [("a", "Rome")]),
        ("SELECT * FROM HOURLY WHERE ID = 'ab';", [("ab", 0, 3600000, 1)]),
        (
            "SELECT ID, WINDOWSTART, N FROM HOURLY WHERE ID = 'a';",
            [("a", 0, 1), ("a", 3600000, 1)],
        ),
        ("SELECT WINDOWSTART FROM HOURLY WHERE ID = 'a' AND WINDOWSTART > 0;", [(3600000,)]),
        ("SELECT WINDOWSTART FROM HOURLY WHERE ID = 'a' AND WINDOWEND <= 3600000;", [(0,)]),
        ("SELECT ID, AMOUNT FROM SALES WHERE AMOUNT < 2;", [("ab", 1)]),
        ("SELECT ID FROM SALES LIMIT 0;", []),
    ],
)
def test_pull(tables, client, query, rows):
    assert pull(client, query) == rows
    assert pull(client, query) == rows  # again: perhaps by another way


@pytest.mark.parametrize(
    ("query", "properties", "message"),
    [
        (
            "SELECT * FROM TOTALS WHERE N = 1;",
            {"ksql__query__pull__table__scan__enabled": False},
            "WHERE clause missing key column for disjunct",
        ),
        (
            "SELECT * FROM SALES;",
            {"ksql__query__pull__stream__enabled": False},
            "Pull queries on streams are disabled.",
        ),
        ("SELECT * FROM TOTALS WHERE ID = 5;", {}, "Cannot compare"),
    ],
)
def test_pull_refused(tables, client, query, properties, message):
    with pytest.raises(ClientError, match=message):
        pull(client, query, **properties)


def test_a_table_of_others_is_not_at_hand_unless_it_is_said(client):
    client.execute(
        "CREATE TABLE RAW (ID STRING PRIMARY KEY, V INT) "
        "WITH (KAFKA_TOPIC='raw', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )
    with pytest.raises(ClientError, match="The `RAW` table isn't queryable"):
        pull(client, "SELECT * FROM RAW;")
    client.execute(
        "CREATE SOURCE TABLE HELD (ID STRING PRIMARY KEY, V INT) "
        "WITH (KAFKA_TOPIC='raw', VALUE_FORMAT='JSON');"
    )
    # What this server writes is seen by whoever asks next.
    for i in range(50):
        client.execute(f"INSERT INTO RAW VALUES ('k', {i});")
        assert pull(client, "SELECT V FROM HELD WHERE ID = 'k';") == [(i,)]
    client.execute("DROP TABLE HELD;")
    with pytest.raises(ClientError, match="HELD does not exist"):
        pull(client, "SELECT V FROM HELD WHERE ID = 'k';")


def test_rows_are_acknowledged_or_refused_one_by_one(client):
    client.execute(
        "CREATE STREAM TAKEN (ID INT KEY, V DECIMAL(4, 2), W INT) "
        "WITH (KAFKA_TOPIC='taken', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )
    given = [{"id": 1, "v": 1.005}, {"v": 2}, {"ID": "3", "V": 3}, {"ID": 4, "V": None, "X": 1}]
    acks = list(client.insert_stream("TAKEN", given))
    assert [a.sequence for a in acks] == [0, 1, 2, 3]
    assert [str(a.error) for a in acks if a.error is not None] == [
        "Key field must be specified: ID",
        "Can't coerce a field of type class java.lang.String into type INTEGER",
    ]
    rows = pull(client, "SELECT ID, CAST(V AS STRING) FROM TAKEN;")
    assert rows == [(1, "1.01"), (4, None)]


def test_print(tables, client):
    with client.print_topic("PRINT sales FROM BEGINNING INTERVAL 2 LIMIT 1;") as lines:
        key, value, line = list(lines)
    assert key == "Key format: KAFKA_STRING"
    assert value == "Value format: JSON or KAFKA_STRING"
    assert line.startswith("rowtime: 1970/01/01 ")
    assert line.endswith((", partition: 0", ", partition: 1"))


def test_print_of_nothing(client):
    with pytest.raises(ClientError, match="Could not find topic 'no-such'"):
        client.print_topic("PRINT 'no-such';")


def test_a_scalable_push_query_tells_of_whole_records(client):
    client.execute(
        """
        CREATE STREAM UNCOOKED (K STRING KEY, V INT, W INT)
            WITH (KAFKA_TOPIC='uncooked', PARTITIONS=1, VALUE_FORMAT='JSON');
        CREATE STREAM COOKED AS SELECT * FROM UNCOOKED;
        """
    )
    own = {"ksql.query.push.v2.enabled": True, "auto.offset.reset": "latest"}
    query = "SELECT K, V FROM COOKED EMIT CHANGES LIMIT 1;"
    with client.stream(query, properties=own) as rows:
        client.execute(
            "INSERT INTO UNCOOKED (V, W) VALUES (1, 1); INSERT INTO UNCOOKED VALUES ('a', 2, 2);"
        )
        assert rows.query_id.startswith("SCALABLE_PUSH_QUERY_")
        assert [tuple(row) for row in rows] == [("a", 2)]
