"""ROWTIME and its like as pseudocolumns (KLIP-14), and the times of records."""

from __future__ import annotations

import json

import pytest
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


# ------------------------------------------------------------------------------ other API calls


def test_describe_does_not_include_pseudocolumns(scene, pipelines):
    for source in ("CLICKS", "USERS", "ALL_CLICKS", "WINDOWS", "VISITS"):
        names = {f["name"] for f in scene.client.describe(source)["fields"]}
        assert not names & {*PSEUDO, "WINDOWSTART", "WINDOWEND"}


def test_describe_on_the_command_line_does_not_include_pseudocolumns(scene, sources):
    told = scene.headrace("-e", "DESCRIBE CLICKS;")
    assert "DAY" in told.stdout and "ROWTIME" not in told.stdout


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
    assert (first, second) == (1234, 0) and third > 1_700_000_000_000
    for column in ("ROWPARTITION", "ROWOFFSET"):
        told = scene.refused(f"INSERT INTO INSERTED (K, {column}) VALUES ('k', 1);")
        assert f"Inserting into column `{column}` is not allowed." in told
