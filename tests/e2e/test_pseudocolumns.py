"""ROWTIME and its like as pseudocolumns (KLIP-14), and the times of records."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from headrace.client import ClientError
from scene import record

pytestmark = pytest.mark.heavy

PSEUDO = ("ROWTIME", "ROWPARTITION", "ROWOFFSET")


@pytest.fixture(scope="module")
def sources(scene):
    scene.topic("clicks")
    scene.topic("users")
    scene.write(
        "clicks",
        record({"ID": 1, "MOMENT": 700, "DAY": "1970-01-02"}, key="a", at=100),
        record({"ID": 2, "MOMENT": 800, "DAY": "1970-01-03"}, key="b", at=200),
        record({"ID": 3, "MOMENT": 900, "DAY": "1970-01-04"}, key="a", at=300),
    )
    scene.write(
        "users",
        record({"NAME": "Bob", "N": 2}, key="b", at=50),
        record({"NAME": "Ann", "N": 1}, key="a", at=250),
    )
    scene.sql(
        """
        CREATE STREAM CLICKS (K STRING KEY, ID INT, MOMENT BIGINT, DAY STRING)
          WITH (kafka_topic='clicks', value_format='JSON');
        CREATE TABLE USERS (K STRING PRIMARY KEY, NAME STRING, N INT)
          WITH (kafka_topic='users', value_format='JSON');
        CREATE SOURCE TABLE KNOWN_USERS (K STRING PRIMARY KEY, NAME STRING, N INT)
          WITH (kafka_topic='users', value_format='JSON');
        """
    )


QUERIES = {
    "ALL_CLICKS": "CREATE STREAM ALL_CLICKS AS SELECT * FROM CLICKS;",
    "TIMED": """CREATE STREAM TIMED AS SELECT K, ROWTIME AS T, ROWPARTITION AS P, ROWOFFSET AS O
        FROM CLICKS WHERE ROWTIME >= 200 AND ROWOFFSET < 10;""",
    "BY_TIME": """CREATE STREAM BY_TIME AS SELECT ROWTIME AS T, ID, MOMENT
        FROM CLICKS PARTITION BY ROWTIME;""",
    "LATEST": """CREATE TABLE LATEST AS SELECT K, MAX(ROWTIME) AS T, COUNT(*) AS C
        FROM CLICKS GROUP BY K HAVING MAX(ROWTIME) > 0;""",
    "PER_DAY": """CREATE TABLE PER_DAY AS SELECT ROWTIME / 250 AS PART, COUNT(*) AS C
        FROM CLICKS GROUP BY ROWTIME / 250;""",
    "WINDOWS": """CREATE TABLE WINDOWS AS
        SELECT K, COUNT(*) AS C, WINDOWSTART AS S, WINDOWEND AS E
        FROM CLICKS WINDOW TUMBLING (SIZE 250 MILLISECONDS) GROUP BY K;""",
    "VISITS": """CREATE STREAM VISITS AS SELECT C.K AS K, C.ROWTIME AS CT, U.ROWTIME AS UT, NAME
        FROM CLICKS C JOIN USERS U ON C.K = U.K;""",
    "SET_BY_COLUMN": """CREATE STREAM SET_BY_COLUMN WITH (timestamp='MOMENT') AS
        SELECT * FROM CLICKS;""",
    "QUOTED": "CREATE STREAM QUOTED AS SELECT K, ID, ROWTIME AS `rowtime` FROM CLICKS;",
}


@pytest.fixture(scope="module")
def pipelines(scene, sources):
    ids = {name: scene.create(text) for name, text in QUERIES.items()}
    yield ids
    for query_id in ids.values():
        scene.sql(f"TERMINATE {query_id};")


# ----------------------------------------------------------------------- select star projections


def test_star_does_not_include_rowtime_in_transient_queries(scene, sources):
    with scene.client.stream("SELECT * FROM CLICKS EMIT CHANGES LIMIT 1;") as rows:
        assert [c.name for c in rows.columns] == ["K", "ID", "MOMENT", "DAY"]
        assert len(list(rows)) == 1
    with scene.client.stream("SELECT * FROM CLICKS WHERE ID = 1;") as rows:
        assert [c.name for c in rows.columns] == ["K", "ID", "MOMENT", "DAY"]


def test_star_does_not_include_rowtime_in_joins(scene, sources):
    join = "FROM CLICKS C JOIN USERS U ON C.K = U.K EMIT CHANGES;"
    with scene.client.stream(f"SELECT * {join}") as rows:
        names = [c.name for c in rows.columns]
    assert names == ["C_K", "C_ID", "C_MOMENT", "C_DAY", "U_K", "U_NAME", "U_N"]


def test_star_does_not_include_rowtime_in_persistent_queries(scene, pipelines):
    assert scene.values("ALL_CLICKS", 3)[0] == {"ID": 1, "MOMENT": 700, "DAY": "1970-01-02"}


# ------------------------------------------------------------------ explicit ROWTIME, transient


def test_explicit_rowtime_in_transient_queries_works_and_is_named_as_asked(scene, sources):
    query = "SELECT ROWTIME, *, ROWOFFSET AS O, ROWPARTITION FROM CLICKS EMIT CHANGES LIMIT 3;"
    with scene.client.stream(query) as rows:
        names = [c.name for c in rows.columns]
        first = next(iter(rows))
    assert names == ["ROWTIME", "K", "ID", "MOMENT", "DAY", "O", "ROWPARTITION"]
    assert tuple(first) == (100, "a", 1, 700, "1970-01-02", 0, 0)


def test_explicit_rowtime_in_pull_queries_on_streams(scene, sources):
    rows = scene.pull("SELECT ID, ROWTIME FROM CLICKS WHERE ROWTIME > 100;")
    assert rows == [(2, 200), (3, 300)]


def test_a_pull_query_on_a_stream_has_pseudocolumns_beside_a_star(scene, sources):
    query = "SELECT ROWTIME, *, ROWPARTITION, ROWOFFSET FROM CLICKS WHERE ROWOFFSET > 0;"
    with scene.client.stream(query) as rows:
        names = [c.name for c in rows.columns]
        found = [tuple(row) for row in rows]
    assert names == ["ROWTIME", "K", "ID", "MOMENT", "DAY", "ROWPARTITION", "ROWOFFSET"]
    assert found == [
        (200, "b", 2, 800, "1970-01-03", 0, 1),
        (300, "a", 3, 900, "1970-01-04", 0, 2),
    ]
    assert scene.pull("SELECT ROWTIME, * FROM CLICKS;")[0] == (100, "a", 1, 700, "1970-01-02")


BY_KEY = "WHERE K = 'a'"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        (f"SELECT ROWTIME, * FROM LATEST {BY_KEY};", ["ROWTIME", "K", "T", "C"]),
        (
            f"SELECT L.*, ROWOFFSET, L.ROWPARTITION, ROWTIME AS LAST FROM LATEST L {BY_KEY};",
            ["K", "T", "C", "ROWOFFSET", "ROWPARTITION", "LAST"],
        ),
        # An expression that is left to Spark, over the same rows.
        (
            "SELECT *, ROWTIME, ROWOFFSET + 1 AS NEXT FROM LATEST "
            f"{BY_KEY} AND ROWPARTITION = 0 AND ABS(ROWOFFSET) >= 0;",
            ["K", "T", "C", "ROWTIME", "NEXT"],
        ),
    ],
)
def test_a_pull_query_on_a_table_has_pseudocolumns_beside_a_star(scene, pipelines, query, names):
    """They are those of the record that holds the row, as in a push query on the table."""
    scene.drained(pipelines["LATEST"], "clicks")
    record_of = {r.key: r for r in scene.wait(lambda: scene.all("LATEST"), bool)}[b"a"]
    known = {
        "K": "a",
        "T": 300,
        "C": 2,
        "ROWTIME": 300,
        "LAST": 300,
        "ROWPARTITION": 0,
        "ROWOFFSET": record_of.offset,
        "NEXT": record_of.offset + 1,
    }
    expected = [[known[name] for name in names]]
    for _ in range(2):  # the second time without parsing and planning
        with scene.client.stream(query) as rows:
            assert [c.name for c in rows.columns] == names
            assert [list(row) for row in rows] == expected


def test_pull_queries_on_windows_and_source_tables_have_pseudocolumns_beside_a_star(
    scene, pipelines
):
    found = scene.wait(
        lambda: scene.pull("SELECT ROWTIME, * FROM WINDOWS WHERE K = 'a';"), lambda r: len(r) == 2
    )
    assert sorted(found) == [(100, "a", 0, 250, 1, 0, 250), (300, "a", 250, 500, 1, 250, 500)]
    found = scene.wait(
        lambda: scene.pull("SELECT *, ROWTIME, ROWPARTITION, ROWOFFSET FROM KNOWN_USERS;"),
        lambda rows: len(rows) == 2,
    )
    assert sorted(found) == [("a", "Ann", 1, 250, 0, 1), ("b", "Bob", 2, 50, 0, 0)]


def test_rowtime_in_joins_is_scoped_by_source(scene, sources):
    rows = scene.push(
        "SELECT C.ROWTIME, U.ROWTIME, ID FROM CLICKS C JOIN USERS U ON C.K = U.K EMIT CHANGES;", 2
    )
    # Ann is known from 250 on: the click at 100 finds nobody.
    assert sorted(rows) == [(200, 50, 2), (300, 250, 3)]


# ----------------------------------------------------------------- explicit ROWTIME, persistent


@pytest.mark.parametrize("column", PSEUDO)
def test_persistent_queries_reject_pseudocolumns_without_an_alias(scene, sources, column):
    told = scene.refused(f"CREATE STREAM X AS SELECT K, ID, {column} FROM CLICKS;")
    assert f"Reserved column name in select: `{column}`. Please remove or alias the column." in told
    told = scene.refused(
        f"CREATE STREAM X AS SELECT K, ID, CLICKS.{column} AS {column} FROM CLICKS;"
    )
    assert f"Reserved column name in select: `{column}`" in told


def test_persistent_queries_make_an_aliased_pseudocolumn_a_value_column(scene, pipelines):
    assert scene.values("TIMED", 2) == [{"T": 200, "P": 0, "O": 1}, {"T": 300, "P": 0, "O": 2}]
    fields = scene.client.describe("TIMED")["fields"]
    assert [(f["name"], f["schema"]["type"]) for f in fields] == [
        ("K", "STRING"),
        ("T", "BIGINT"),
        ("P", "INTEGER"),
        ("O", "BIGINT"),
    ]


@pytest.mark.parametrize("name", [*PSEUDO, "WINDOWSTART", "WINDOWEND"])
def test_pseudocolumns_are_reserved_names(scene, name):
    told = scene.refused(
        f"CREATE STREAM X (A INT, {name} BIGINT) WITH (kafka_topic='clicks', value_format='JSON');"
    )
    assert f"'{name}' is a reserved column name." in told


def test_a_reserved_name_does_not_come_in_by_the_fields_of_a_struct(scene):
    scene.topic("nested")
    scene.sql(
        """CREATE STREAM NESTED (K STRING KEY, S STRUCT<A INT, ROWTIME INT>, B INT)
             WITH (kafka_topic='nested', value_format='JSON');"""
    )
    words = r"`ROWTIME` is a reserved column name, and \S+->\* has a field of that name"
    assert re.search(words, scene.refused("CREATE STREAM Y AS SELECT K, S->* FROM NESTED;"))
    for emit in ("", " EMIT CHANGES"):
        with pytest.raises(ClientError, match=words):
            scene.pull(f"SELECT S->* FROM NESTED{emit};")
    scene.write("nested", record({"S": {"A": 1, "ROWTIME": 2}, "B": 3}, key="k", at=77))
    rows = scene.pull("SELECT S->A, S->ROWTIME AS T, ROWTIME FROM NESTED;")
    assert rows == [(1, 2, 77)]


def test_a_quoted_name_in_lower_case_is_not_reserved(scene, pipelines):
    """An alias, a column that is declared, and one that is read are under one rule."""
    assert [v["rowtime"] for v in scene.values("QUOTED", 3)] == [100, 200, 300]
    scene.sql(
        """CREATE STREAM DECLARED (K STRING KEY, ID INT, `rowtime` BIGINT)
             WITH (kafka_topic='QUOTED', value_format='JSON');"""
    )
    for source in ("QUOTED", "DECLARED"):
        rows = scene.pull(f"SELECT `rowtime` + 1 AS NEXT, ROWTIME, * FROM {source} WHERE ID = 2;")
        assert rows == [(201, 200, "b", 2, 200)]


# ------------------------------------------------------------------------------ other API calls


def test_describe_does_not_include_pseudocolumns(scene, pipelines):
    for source in ("CLICKS", "USERS", "ALL_CLICKS", "WINDOWS", "VISITS"):
        names = {f["name"] for f in scene.client.describe(source)["fields"]}
        assert not names & {*PSEUDO, "WINDOWSTART", "WINDOWEND"}


def test_describe_on_the_command_line_does_not_include_pseudocolumns(scene, sources):
    told = scene.headrace("-e", "DESCRIBE CLICKS;")
    assert "DAY" in told.stdout and "ROWTIME" not in told.stdout


def test_explain_has_rowtime_among_the_fields_only_if_it_was_asked_for(scene, pipelines):
    def fields(what):
        told = scene.sql(f"EXPLAIN {what};")[0]["queryDescription"]["fields"]
        return [(f["name"], f["schema"]["type"]) for f in told]

    star = [("K", "STRING"), ("ID", "INTEGER"), ("MOMENT", "BIGINT"), ("DAY", "STRING")]
    for emit in ("", " EMIT CHANGES"):
        assert fields(f"SELECT * FROM CLICKS{emit}") == star
        with_time = fields(f"SELECT ROWTIME, *, ROWPARTITION FROM CLICKS{emit}")
        assert with_time == [("ROWTIME", "BIGINT"), *star, ("ROWPARTITION", "INTEGER")]
    assert fields("SELECT ROWTIME FROM LATEST WHERE K = 'a'") == [("ROWTIME", "BIGINT")]
    assert fields(pipelines["ALL_CLICKS"]) == star
    assert [name for name, _ in fields(pipelines["TIMED"])] == ["K", "T", "P", "O"]
    assert [name for name, _ in fields(pipelines["WINDOWS"])] == ["K", "C", "S", "E"]
    for select in ("K, ID, ROWTIME", "ROWTIME, *"):
        told = scene.refused(f"EXPLAIN CREATE STREAM X AS SELECT {select} FROM CLICKS;")
        assert "Reserved column name in select: `ROWTIME`." in told


# ------------------------------------------------------------ outside of the query's projection


def test_pseudocolumns_are_usable_in_every_other_clause(scene, pipelines):
    by_time = {
        int.from_bytes(r.key, "big"): json.loads(r.value) for r in scene.records("BY_TIME", 3)
    }
    assert {t: v["ID"] for t, v in by_time.items()} == {100: 1, 200: 2, 300: 3}
    latest = scene.wait(
        lambda: scene.pull("SELECT K, T, C FROM LATEST;"),
        lambda rows: sorted(rows) == [("a", 300, 2), ("b", 200, 1)],
    )
    assert len(latest) == 2
    parts = scene.wait(
        lambda: scene.pull("SELECT PART, C FROM PER_DAY;"),
        lambda rows: sorted(rows) == [(0, 2), (1, 1)],
    )
    assert len(parts) == 2


def test_window_bounds_of_windowed_sources(scene, pipelines):
    rows = scene.wait(
        lambda: scene.pull("SELECT K, WINDOWSTART, WINDOWEND, C, S, E FROM WINDOWS;"),
        lambda rows: len(rows) == 3,
    )
    assert sorted(rows) == [
        ("a", 0, 250, 1, 0, 250),
        ("a", 250, 500, 1, 250, 500),
        ("b", 0, 250, 1, 0, 250),
    ]
    pushed = scene.push("SELECT K, WINDOWSTART FROM WINDOWS WHERE WINDOWEND = 500 EMIT CHANGES;", 1)
    assert pushed == [("a", 250)]


def test_a_plan_carries_a_pseudocolumn_only_where_it_is_needed(scene, pipelines):
    def plan(name):
        text = scene.sql(f"EXPLAIN {pipelines[name]};")[0]["queryDescription"]["executionPlan"]
        return [line for line in text.splitlines() if line.strip()]

    assert not any("ROWTIME" in line for line in plan("ALL_CLICKS"))
    sink, *_, read = plan("TIMED")
    schema = read.split("Schema: ")[1].split(" | ")[0]
    assert "`ROWTIME`" in schema and "`ROWOFFSET`" in schema and "`ROWPARTITION`" in schema
    assert "`ID`" not in schema
    assert "ROWTIME" not in sink.split("Schema: ")[1].split(" | ")[0]
    reads = [line for line in plan("LATEST") if "SOURCE" in line]
    assert "ROWOFFSET" not in reads[0]


# ------------------------------------------------------------------------------ joins of tables

ROWS = 3000
JOINED = "FROM TIMED_LEFTS L JOIN TIMED_RIGHTS R ON L.K = R.K"


@pytest.fixture(scope="module")
def tables(scene, seed):
    """Two tables of which two queries make the same join, one of them with both times."""
    chance = random.Random(seed)
    times = {}
    for side in ("timed_lefts", "timed_rights"):
        scene.topic(side)
        times[side] = [chance.randrange(1_500_000_000_000, 1_700_000_000_000) for _ in range(ROWS)]
        scene.write(
            side,
            *(record({"V": i, "W": -i}, key=f"{i}", at=at) for i, at in enumerate(times[side])),
        )
        scene.sql(
            f"""CREATE TABLE {side} (K STRING PRIMARY KEY, V INT, W INT)
                  WITH (kafka_topic='{side}', value_format='JSON');"""
        )
    ids = {
        "PLAIN": scene.create(f"CREATE TABLE PLAIN_PAIRS AS SELECT L.*, R.V {JOINED};"),
        "TIMED": scene.create(
            f"""CREATE TABLE TIMED_PAIRS AS
                  SELECT L.*, R.V, L.ROWTIME AS LT, R.ROWTIME AS RT {JOINED};"""
        ),
    }
    for query_id in ids.values():
        scene.drained(query_id, "timed_lefts", "timed_rights")
    yield ids, times
    for query_id in ids.values():
        scene.sql(f"TERMINATE {query_id};")


def test_all_columns_of_one_side_and_one_of_the_other(scene, tables):
    fields = scene.client.describe("PLAIN_PAIRS")["fields"]
    assert [f["name"] for f in fields] == ["L_K", "L_V", "L_W", "R_V"]
    found = scene.wait(lambda: scene.pull("SELECT * FROM PLAIN_PAIRS;"), lambda r: len(r) == ROWS)
    assert sorted(found) == sorted((f"{i}", i, -i, i) for i in range(ROWS))
    for select in ("L.*, R.V", "L.ROWTIME, R.ROWTIME, L.*, R.V"):
        with scene.client.stream(f"SELECT {select} {JOINED} EMIT CHANGES;") as rows:
            names = [c.name for c in rows.columns]
        times = ["L_ROWTIME", "R_ROWTIME"] if "ROWTIME" in select else []
        assert names == [*times, "L_K", "L_V", "L_W", "R_V"]


def test_a_join_of_tables_has_both_times(scene, tables):
    """Each side's own, whichever side's change made the row; the row's is the later of them."""
    _, times = tables
    lefts, rights = times["timed_lefts"], times["timed_rights"]
    query = "SELECT L_K, LT, RT, ROWTIME FROM TIMED_PAIRS;"
    found = scene.wait(lambda: scene.pull(query), lambda rows: len(rows) == ROWS)
    assert sorted(found) == sorted(
        (f"{i}", left, right, max(left, right))
        for i, (left, right) in enumerate(zip(lefts, rights, strict=True))
    )
    late, later = 1_710_000_000_000, 1_720_000_000_000
    by_key = "SELECT LT, RT, ROWTIME FROM TIMED_PAIRS WHERE L_K = '7';"
    scene.write("timed_lefts", record({"V": 7, "W": 0}, key="7", at=late))
    expected = [(late, rights[7], late)]
    assert scene.wait(lambda: scene.pull(by_key), lambda rows: rows == expected) == expected
    scene.write("timed_rights", record({"V": 8, "W": 0}, key="7", at=later))
    expected = [(late, later, later)]
    assert scene.wait(lambda: scene.pull(by_key), lambda rows: rows == expected) == expected


def test_state_holds_rowtime_only_if_the_query_needs_it(scene, server, tables):
    """The same join of the same rows: the one that uses no ROWTIME writes less state."""
    ids, _ = tables

    def written(query_id):
        checkpoint = server.engine.queries.get(query_id).checkpoint.removeprefix("file://")
        files = [f for f in Path(checkpoint, "state").rglob("*") if f.is_file()]
        return sum(f.stat().st_size for f in files if not f.name.startswith("."))

    sizes = {name: written(query_id) for name, query_id in ids.items()}
    rows = 2 * ROWS
    each = {name: size / rows for name, size in sizes.items()}
    print(f"bytes of state for {rows} rows: {sizes}, for each: {each}")
    # A time in milliseconds is eight bytes; some of them are the same in all times.
    assert sizes["PLAIN"] > 0 and sizes["TIMED"] - sizes["PLAIN"] > 2 * rows


# ---------------------------------------------------------------------------- times of records


def test_stateless_queries_keep_the_time(scene, pipelines):
    assert [r.timestamp for r in scene.records("ALL_CLICKS", 3)] == [100, 200, 300]


def test_aggregates_have_the_latest_time(scene, pipelines):
    scene.drained(pipelines["LATEST"], "clicks")
    last = {r.key: r.timestamp for r in scene.records("LATEST", 2)}
    assert last == {b"a": 300, b"b": 200}


def test_joins_have_the_later_time_of_both_sides(scene, pipelines):
    visits = {r.key: r for r in scene.records("VISITS", 2)}
    assert {k: r.timestamp for k, r in visits.items()} == {b"a": 300, b"b": 200}
    assert json.loads(visits[b"a"].value) == {"CT": 300, "UT": 250, "NAME": "Ann"}


def test_the_timestamp_property_of_a_sink(scene, pipelines):
    assert [r.timestamp for r in scene.records("SET_BY_COLUMN", 3)] == [700, 800, 900]


def test_the_timestamp_property_of_a_source(scene, sources):
    scene.sql(
        """
        CREATE STREAM AT_COLUMN (K STRING KEY, ID INT, MOMENT BIGINT)
          WITH (kafka_topic='clicks', value_format='JSON', timestamp='MOMENT');
        CREATE STREAM BY_TEXT (K STRING KEY, ID INT, DAY STRING)
          WITH (kafka_topic='clicks', value_format='JSON', timestamp='DAY',
                timestamp_format='yyyy-MM-dd');
        """
    )
    times = scene.push("SELECT ROWTIME FROM AT_COLUMN EMIT CHANGES LIMIT 3;", 3)
    assert times == [(700,), (800,), (900,)]
    day = 86_400_000
    times = scene.pull("SELECT ROWTIME FROM BY_TEXT;")
    assert times == [(day,), (2 * day,), (3 * day,)]


def test_insert_values_may_set_rowtime(scene):
    scene.topic("inserted")
    scene.sql(
        """
        CREATE STREAM INSERTED (K STRING KEY, A INT, B INT)
          WITH (kafka_topic='inserted', value_format='JSON');
        INSERT INTO INSERTED (K, A, ROWTIME) VALUES ('k', 1, 1234);
        INSERT INTO INSERTED (ROWTIME, K, A) VALUES (0, 'l', 2);
        INSERT INTO INSERTED (K, A) VALUES ('m', 3);
        """
    )
    first, second, third = (r.timestamp for r in scene.records("inserted", 3))
    assert (first, second) == (1234, 1)  # Kafka's client takes 0 for now: the earliest time is 1
    assert third > 1_700_000_000_000
    for column in ("ROWPARTITION", "ROWOFFSET"):
        told = scene.refused(f"INSERT INTO INSERTED (K, {column}) VALUES ('k', 1);")
        assert f"Inserting into column `{column}` is not allowed." in told
