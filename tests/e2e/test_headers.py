"""Header columns (KLIP-57): each line of its test plan, on Kafka and Spark, over the REST API."""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from dataclasses import replace

import httpx
import pytest

from headrace.client import ClientError
from headrace.formats import FORMATS
from scene import record

pytestmark = pytest.mark.heavy

HEADERS = "ARRAY<STRUCT<key STRING, value BYTES>>"
FORTY_TWO = struct.pack(">i", 42)

EVENTS = [
    record(
        {"ID": 1, "V": 10},
        key="a",
        headers=(("trace", b"t1"), ("n", FORTY_TWO), ("trace", b"t2")),
        at=1000,
    ),
    record({"ID": 2, "V": 20}, key="b", headers=(("trace", None),), at=2000),
    record({"ID": 3, "V": 30}, key="a", at=3000),
    record({"ID": 4, "V": 40}, key="b", headers=(("n", b"seven"), ("trace", b"t2")), at=4000),
]
SAME = [EVENTS[0], EVENTS[2], EVENTS[0]]  # a list of headers comes twice
PEOPLE = [
    record({"NAME": "Ann"}, key="a", headers=(("trace", b"p1"),), at=500),
    record({"NAME": "Bob"}, key="b", headers=(("trace", b"p2"),), at=600),
]


def b64(data: bytes) -> str:
    return b64encode(data).decode()


def listed(event) -> list[dict[str, object]]:
    return [{"KEY": k, "VALUE": None if v is None else b64(v)} for k, v in event["headers"]]


def last(event, key) -> str | None:
    found = [v for k, v in event["headers"] if k == key]
    return b64(found[-1]) if found and found[-1] is not None else None


@pytest.fixture(scope="module")
def sources(scene):
    """Streams and tables with header columns over two topics that have records."""
    scene.topic("events")
    scene.topic("people")
    scene.write("events", *EVENTS)
    scene.write("people", *PEOPLE)
    scene.sql(
        f"""
        CREATE STREAM EVENTS (K STRING KEY, ID INT, V INT, H {HEADERS} HEADERS)
          WITH (kafka_topic='events', value_format='JSON');
        CREATE STREAM TRACED
          (K STRING KEY, ID INT, V INT, TRACE BYTES HEADER('trace'), N BYTES HEADER('n'))
          WITH (kafka_topic='events', value_format='JSON');
        CREATE STREAM PLAIN (K STRING KEY, ID INT, V INT)
          WITH (kafka_topic='events', value_format='JSON');
        CREATE TABLE PEOPLE (K STRING PRIMARY KEY, NAME STRING, TRACE BYTES HEADER('trace'))
          WITH (kafka_topic='people', value_format='JSON', wrap_single_value=true);
        CREATE SOURCE TABLE KNOWN (K STRING PRIMARY KEY, NAME STRING, H {HEADERS} HEADERS)
          WITH (kafka_topic='people', value_format='JSON', wrap_single_value=true);
        """
    )


# ------------------------------------------------- Creating STREAM/TABLE with header columns


def test_creating_streams_and_tables_with_header_columns(scene, sources):
    streams = {s["name"]: s for s in scene.client.streams()}
    tables = {t["name"] for t in scene.client.tables()}
    assert {"EVENTS", "TRACED"} <= set(streams) and {"PEOPLE", "KNOWN"} <= tables


@pytest.mark.parametrize("format", sorted(FORMATS.keys() - {"NONE"}))
def test_creating_streams_with_header_columns_in_any_format(scene, format):
    topic = scene.topic(f"any_{format.lower()}")
    keyless = f"CREATE STREAM ANY_{format} (V STRING, H BYTES HEADER('h'))"
    scene.sql(f"{keyless} WITH (kafka_topic='{topic}', value_format='{format}');")
    fields = scene.client.describe(f"ANY_{format}")["fields"]
    assert [(f["name"], f.get("type"), f.get("headerKey")) for f in fields] == [
        ("V", None, None),
        ("H", "HEADER", "h"),
    ]


def test_creating_streams_with_header_columns_and_an_inferred_schema(scene):
    scene.topic("inferred")
    scene.sql(
        """
        CREATE STREAM WRITER (A INT, B STRING) WITH (kafka_topic='inferred', value_format='AVRO');
        INSERT INTO WRITER (A, B) VALUES (1, 'x');
        """
    )
    scene.sql(
        f"""CREATE STREAM INFERRED (H {HEADERS} HEADERS)
            WITH (kafka_topic='inferred', value_format='AVRO');"""
    )
    names = [f["name"] for f in scene.client.describe("INFERRED")["fields"]]
    assert sorted(names) == ["A", "B", "H"]
    assert scene.push("SELECT A, B, H FROM INFERRED EMIT CHANGES LIMIT 1;", 1) == [(1, "x", [])]


def test_creating_streams_with_header_columns_and_an_inferred_key(scene):
    scene.topic("inferred_key")
    scene.sql(
        """
        CREATE STREAM KEYED_WRITER (K BIGINT KEY, A INT, B STRING)
          WITH (kafka_topic='inferred_key', format='AVRO');
        INSERT INTO KEYED_WRITER (K, A, B) VALUES (7, 1, 'x');
        """
    )
    (written,) = scene.records("inferred_key", 1)
    scene.sql(
        f"""CREATE STREAM INFERRED_KEY (H {HEADERS} HEADERS)
              WITH (kafka_topic='inferred_key', format='AVRO');
            CREATE STREAM INFERRED_TRACE (TRACE BYTES HEADER('trace'))
              WITH (kafka_topic='inferred_key', format='AVRO');
            CREATE TABLE INFERRED_TABLE (TRACE BYTES HEADER('trace'))
              WITH (kafka_topic='inferred_key', format='AVRO');"""
    )
    fields = scene.client.describe("INFERRED_TABLE")["fields"]
    assert {f["name"]: f.get("type") for f in fields} == {
        "ROWKEY": "KEY",
        "A": None,
        "B": None,
        "TRACE": "HEADER",
    }
    event = record(written.value, headers=(("trace", b"t9"),)) | {"key": written.key}
    scene.write("inferred_key", event)
    rows = scene.pull("SELECT ROWKEY, A, B, H FROM INFERRED_KEY;")
    assert rows == [(7, 1, "x", []), (7, 1, "x", listed(event))]
    rows = scene.pull("SELECT ROWKEY, A, B, TRACE FROM INFERRED_TRACE;")
    assert rows == [(7, 1, "x", None), (7, 1, "x", b64(b"t9"))]


REFUSED = [
    (
        "H ARRAY<BYTES> HEADERS",
        "Columns specified with the HEADERS keyword must be typed as "
        "ARRAY<STRUCT<key STRING, value BYTES>>.",
    ),
    ("H STRING HEADER('h')", "Invalid type for HEADER('h') column: expected BYTES, got STRING"),
    (f"A {HEADERS} HEADERS, B {HEADERS} HEADERS", "Schema already contains a HEADERS column."),
    (f"A {HEADERS} HEADERS, B BYTES HEADER('b')", "Schema already contains a HEADERS column."),
    ("A BYTES HEADER('x'), B BYTES HEADER('x')", "Schema already contains a HEADER('x') column."),
]


@pytest.mark.parametrize(("columns", "words"), REFUSED)
def test_creating_sources_with_wrong_header_columns_is_refused(scene, columns, words):
    create = f"CREATE STREAM WRONG (V INT, {columns})"
    told = scene.refused(f"{create} WITH (kafka_topic='events', value_format='JSON');")
    assert words in told
    assert "WRONG" not in [s["name"] for s in scene.client.streams()]


# ------------------------------------- `SELECT * FROM ...` queries include header columns


def test_select_star_includes_header_columns(scene, sources):
    rows = scene.push("SELECT * FROM TRACED EMIT CHANGES LIMIT 4;", 4)
    assert rows == [
        (e["key"].decode(), i, i * 10, last(e, "trace"), last(e, "n"))
        for i, e in enumerate(EVENTS, 1)
    ]


# --------------------------------------------- `DESCRIBE SOURCE ...` includes header columns


def test_describe_includes_header_columns(scene, sources):
    def headers(source):
        fields = scene.client.describe(source)["fields"]
        return [(f["name"], f["headerKey"]) for f in fields if f.get("type") == "HEADER"]

    assert headers("TRACED") == [("TRACE", "trace"), ("N", "n")]
    fields = scene.client.describe("EVENTS")["fields"]
    (all_of_them,) = (f for f in fields if f["name"] == "H")
    assert all_of_them["type"] == "HEADER" and all_of_them.get("headerKey") is None
    assert all_of_them["schema"]["type"] == "ARRAY"


def test_the_statement_of_a_source_is_printed_with_its_header_columns(scene, sources):
    text = scene.client.describe("TRACED", extended=True)["statement"]
    assert "HEADER('trace')" in text and "HEADER('n')" in text


# ------------------------------------------------- Push and pull queries may select headers


def test_push_queries_may_select_headers(scene, sources):
    rows = scene.push("SELECT ID, H FROM EVENTS EMIT CHANGES LIMIT 4;", 4)
    assert rows == [(i, listed(e)) for i, e in enumerate(EVENTS, 1)]
    rows = scene.push(
        "SELECT ID, FROM_BYTES(TRACE, 'utf8') FROM TRACED WHERE TRACE IS NOT NULL EMIT CHANGES;", 2
    )
    assert rows == [(1, "t2"), (4, "t2")]


def test_pull_queries_on_streams_may_select_headers(scene, sources):
    assert scene.pull("SELECT ID, TRACE FROM TRACED WHERE V > 10;") == [
        (i, last(e, "trace")) for i, e in enumerate(EVENTS, 1) if i > 1
    ]


def test_pull_queries_on_tables_may_select_headers(scene, sources):
    rows = scene.wait(
        lambda: scene.pull("SELECT NAME, H FROM KNOWN WHERE K = 'b';"), lambda rows: rows
    )
    assert rows == [("Bob", listed(PEOPLE[1]))]


def test_pull_queries_on_tables_may_select_everything(scene, sources):
    """Names and rows are in the same order, in each form of an answer."""
    for select, time in (("*", []), ("ROWTIME, *", [600])):
        query = f"SELECT {select} FROM KNOWN WHERE K = 'b';"
        expected = [*time, "b", "Bob", listed(PEOPLE[1])]
        rows = scene.wait(lambda query=query: scene.pull(query), lambda rows: rows)
        assert rows == [tuple(expected)]
        names = ["ROWTIME", "K", "NAME", "H"][1 - len(time) :]
        with scene.client.stream(query) as stream:
            assert [c.name for c in stream.columns] == names
        head, row = httpx.post(f"{scene.url}/query", json={"ksql": query}, timeout=60).json()
        schema = head["header"]["schema"]
        assert [schema.index(f"`{name}`") for name in names] == sorted(
            schema.index(f"`{name}`") for name in names
        )
        assert row == {"row": {"columns": expected}}


# ------------------------------------------------------------------- Tests for new functions


def test_new_functions_in_both_byte_orders(scene, sources):
    values = {
        "INT_FROM_BYTES": struct.pack(">i", -2),
        "BIGINT_FROM_BYTES": struct.pack(">q", 1 << 40),
        "DOUBLE_FROM_BYTES": struct.pack(">d", 2.5),
    }
    calls = [
        f"{name}(TO_BYTES('{data.hex()}', 'hex')), "
        f"{name}(TO_BYTES('{data[::-1].hex()}', 'hex'), 'LITTLE_ENDIAN')"
        for name, data in values.items()
    ]
    calls += [f"{name}(CAST(NULL AS BYTES))" for name in values]
    calls += [f"{name}(TO_BYTES('00', 'hex'))" for name in values]
    ((*both, n1, n2, n3, e1, e2, e3),) = scene.push(
        f"SELECT {', '.join(calls)} FROM PLAIN EMIT CHANGES LIMIT 1;", 1
    )
    assert both == [-2, -2, 1 << 40, 1 << 40, 2.5, 2.5]
    assert (n1, n2, n3, e1, e2, e3) == (None,) * 6


# -------------------------------------------- Inserting values into header columns is blocked


def test_inserting_values_into_header_columns_is_blocked(scene, sources):
    told = scene.refused("INSERT INTO TRACED (K, ID, TRACE) VALUES ('x', 9, TO_BYTES('', 'utf8'));")
    assert "Cannot insert into HEADER columns: TRACE" in told
    told = scene.refused("INSERT INTO EVENTS (K, ID, H) VALUES ('x', 9, ARRAY[]);")
    assert "Cannot insert into HEADER columns: H" in told


def test_inserting_a_selection_into_header_columns_is_blocked(scene, sources):
    told = scene.refused("INSERT INTO TRACED SELECT * FROM TRACED;")
    assert "Cannot insert into TRACED because it has header columns" in told
    told = scene.refused("INSERT INTO TRACED SELECT K, ID, V, N FROM TRACED;")
    assert "which the query selects: N. Select only the others: K, ID, V" in told


def test_inserting_a_selection_into_the_other_columns_works(scene, sources):
    """What is read from there again has no headers: none were written."""
    scene.topic("filled")
    scene.sql(
        f"""
        CREATE STREAM FILLED (K STRING KEY, TRACE BYTES HEADER('trace'), ID INT, V BIGINT)
          WITH (kafka_topic='filled', value_format='JSON');
        CREATE STREAM FILLED_ALL (K STRING KEY, H {HEADERS} HEADERS, ID INT, V BIGINT)
          WITH (kafka_topic='filled', value_format='JSON');
        """
    )
    into = "INSERT INTO FILLED SELECT K, ID, V + 1 AS V FROM TRACED WHERE TRACE IS NOT NULL;"
    with scene.query(into):
        written = scene.records("filled", 2)
    assert [(r.key, json.loads(r.value), r.headers) for r in written] == [
        (EVENTS[i - 1]["key"], {"ID": i, "V": i * 10 + 1}, ()) for i in (1, 4)
    ]
    assert [r.timestamp for r in written] == [1000, 4000]
    rows = scene.pull("SELECT ID, V, TRACE FROM FILLED;")
    assert rows == [(1, 11, None), (4, 41, None)]
    assert scene.pull("SELECT ID, H FROM FILLED_ALL;") == [(1, []), (4, [])]


def test_inserting_rows_into_header_columns_over_the_api_is_blocked(scene, sources):
    acks = scene.client.insert_stream("TRACED", [{"K": "x", "ID": 9, "TRACE": "AA=="}])
    (ack,) = acks
    assert ack.error is not None and "Cannot insert into HEADER columns: TRACE" in str(ack.error)


def test_inserting_into_the_other_columns_works(scene):
    scene.topic("open")
    scene.sql(
        """
        CREATE STREAM OPEN (K STRING KEY, A INT, B INT, H BYTES HEADER('h'))
          WITH (kafka_topic='open', value_format='JSON');
        INSERT INTO OPEN (K, A) VALUES ('k', 1);
        """
    )
    scene.client.insert("OPEN", {"K": "m", "A": 3})
    assert scene.values("open", 2) == [{"A": 1, "B": None}, {"A": 3, "B": None}]
    assert [r.headers for r in scene.records("open", 2)] == [(), ()]
    told = scene.refused("INSERT INTO OPEN VALUES ('l', 2, 3);")
    assert "Cannot insert into HEADER columns: H" in told


# ------------------------ Persistent queries that were created in a previous version can work


def test_queries_of_a_time_before_header_columns_work_unchanged(scene, server, sources):
    """The command log of such a server names no setting about headers."""
    from headrace.catalog.command_log import Command, CommandLog
    from headrace.engine.engine import Engine
    from headrace.model.settings import Settings

    world = replace(server.engine.env, settings=Settings({"ksql.service.id": "older_"}))
    log = CommandLog(world.kafka, world.service_id)
    log.open()
    create = (
        "CREATE STREAM OLD (K STRING KEY, ID INT) WITH (kafka_topic='events', value_format='JSON');"
    )
    log.append(Command("stream/OLD/create", create))
    scene.topic("COPY_OF_OLD")
    select = "CREATE STREAM COPY_OF_OLD AS SELECT * FROM OLD;"
    starts = {"events": {0: 0}}
    log.append(Command("stream/COPY_OF_OLD/create", select, query_id="CSAS_1", starts=starts))
    log.close()
    engine = Engine(world)
    engine.open()
    try:
        assert [v["ID"] for v in scene.values("COPY_OF_OLD", 4)] == [1, 2, 3, 4]
    finally:
        engine.close()


# ------------- Header columns can be used with the (Python) client, migrations and the CLI


def test_header_columns_can_be_used_with_the_client(scene, sources):
    with scene.client.stream("SELECT TRACE FROM TRACED EMIT CHANGES LIMIT 1;") as rows:
        assert [(c.name, c.type) for c in rows.columns] == [("TRACE", "BYTES")]
        assert [row["TRACE"] for row in rows] == [b64(b"t2")]


def test_header_columns_can_be_used_with_the_command_line(scene):
    scene.topic("typed")
    create = """CREATE STREAM TYPED (K STRING KEY, A INT, B INT, H BYTES HEADER('h'))
        WITH (kafka_topic='typed', value_format='JSON');"""
    made = scene.headrace("-e", create)
    assert made.returncode == 0, made.stderr
    scene.write("typed", record({"A": 1}, key="k", headers=(("h", b"v"),)))

    described = scene.headrace("-e", "DESCRIBE TYPED;")
    assert "BYTES" in described.stdout and "(header('h'))" in described.stdout

    refused = scene.headrace("-e", "INSERT INTO TYPED (A, H) VALUES (1, NULL);")
    assert refused.returncode != 0
    assert "Cannot insert into HEADER columns: H" in refused.stdout + refused.stderr

    query = "SET 'auto.offset.reset'='earliest'; SELECT H FROM TYPED EMIT CHANGES LIMIT 1;"
    selected = scene.headrace("-e", query)
    assert b64(b"v") in selected.stdout, selected.stderr


# ------------------------------------------------------------------ The feature flag, and cost


def test_the_flag_is_the_servers(scene):
    words = "Cannot override property 'ksql.headers.enabled'. It is the server's"
    for statement in ("SET", "ALTER SYSTEM"):
        assert words in scene.refused(f"{statement} 'ksql.headers.enabled'='true';")
    assert words in scene.refused("SHOW STREAMS;", ksql__headers__enabled=True)
    with pytest.raises(ClientError, match="Cannot override property"):
        scene.push("SELECT * FROM PLAIN EMIT CHANGES;", 1, ksql__headers__enabled=True)
    asked = httpx.get(f"{scene.url}/is_valid_property/ksql.headers.enabled", timeout=60)
    assert asked.status_code == 400 and words in asked.json()["message"]
    shell = scene.headrace("-e", "SET 'ksql.headers.enabled'='false'; SHOW STREAMS;")
    assert shell.returncode != 0 and words in shell.stdout + shell.stderr


def test_with_headers_disabled_new_sources_are_refused_and_existing_ones_go_on(
    scene, server, sources
):
    """Existing ones go on after a restart, too, and may be replaced."""
    from headrace.engine.engine import Engine
    from headrace.model.errors import HeadraceError
    from headrace.model.requests import Request
    from headrace.model.settings import Settings

    scene.topic("flagged")
    scene.write("flagged", record({"ID": 4}, key="d"))
    service = {"ksql.service.id": "flagged_"}
    world = replace(server.engine.env, settings=Settings(service))
    first = Engine(world)
    first.open()
    first.execute(
        Request(
            """CREATE STREAM ON_TIME (K STRING KEY, ID INT, V INT, T BYTES HEADER('trace'))
                 WITH (kafka_topic='flagged', value_format='JSON');
               CREATE STREAM STAYS AS SELECT * FROM ON_TIME;""",
            {"auto.offset.reset": "earliest"},
        )
    )
    scene.records("STAYS", 1)
    first.close()

    off = Settings({**service, "ksql.headers.enabled": "false"})
    second = Engine(replace(world, settings=off))
    second.open()
    try:
        scene.write("flagged", record({"ID": 5}, key="e", headers=(("trace", b"t5"),), at=5000))
        assert scene.values("STAYS", 2)[-1] == {"ID": 5, "V": None, "T": b64(b"t5")}
        with pytest.raises(HeadraceError, match="schema with headers columns is disabled"):
            second.execute(
                Request(
                    "CREATE TABLE OFF (K INT PRIMARY KEY, H BYTES HEADER('h')) "
                    "WITH (kafka_topic='events', value_format='JSON');"
                )
            )
        second.execute(
            Request(
                """CREATE OR REPLACE STREAM ON_TIME
                     (K STRING KEY, ID INT, V INT, W INT, T BYTES HEADER('trace'))
                     WITH (kafka_topic='flagged', value_format='JSON');"""
            )
        )
        answer = second.query(Request("SELECT ID, W, T FROM ON_TIME WHERE ID = 5;"))
        assert [row.values for row in answer.next_batch(60)] == [[5, None, b"t5"]]
        scene.write("flagged", record({"ID": 6}, key="f", headers=(("trace", b"t6"),), at=6000))
        assert scene.values("STAYS", 3)[-1] == {"ID": 6, "V": None, "T": b64(b"t6")}
    finally:
        second.close()


# ====== In persistent queries, which run while the rest is tested

STATELESS = {
    "COPIED": "CREATE STREAM COPIED AS SELECT * FROM TRACED;",
    "LISTED": "CREATE STREAM LISTED AS SELECT * FROM EVENTS;",
    "FUNCTIONS": """CREATE STREAM FUNCTIONS AS SELECT K, ID,
        FROM_BYTES(H[1]->VALUE, 'utf8') AS FIRST, ARRAY_LENGTH(H) AS COUNTED,
        TRANSFORM(H, X => X->KEY) AS NAMES,
        FILTER(H, X => X->KEY = 'trace') AS TRACES,
        REDUCE(H, '', (S, X) => CONCAT(S, X->KEY, ';')) AS REDUCED FROM EVENTS
        WHERE ARRAY_LENGTH(FILTER(H, X => X->KEY = 'nowhere')) = 0;""",
    "FILTERED": """CREATE STREAM FILTERED AS SELECT K, ID, V FROM TRACED
        WHERE FROM_BYTES(TRACE, 'utf8') = 't2';""",
    "NUMBERED": "CREATE STREAM NUMBERED AS SELECT K, ID, INT_FROM_BYTES(N) AS NUMBER FROM TRACED;",
    "CHECKED": "CREATE STREAM CHECKED AS SELECT K, ID, V FROM TRACED WHERE INT_FROM_BYTES(N) = 42;",
    "REKEYED": "CREATE STREAM REKEYED AS SELECT TRACE, ID, V FROM TRACED PARTITION BY TRACE;",
    "REKEYED_BY_ALL": """CREATE STREAM REKEYED_BY_ALL WITH (key_format='JSON') AS
        SELECT H, ID, V FROM SAME PARTITION BY H;""",
    "ALL_PEOPLE": "CREATE TABLE ALL_PEOPLE AS SELECT * FROM PEOPLE;",
}

STATEFUL = {
    "COUNTED_BY_ALL": """CREATE TABLE COUNTED_BY_ALL WITH (key_format='JSON') AS
        SELECT H, COUNT(*) AS C, SUM(V) AS TOTAL FROM SAME GROUP BY H;""",
    "JOINED_THREE": """CREATE STREAM JOINED_THREE AS
        SELECT T.K AS K, T.ID, T.TRACE, P.TRACE, Q.H
        FROM TRACED T JOIN PEOPLE P ON T.K = P.K JOIN KNOWN Q ON T.K = Q.K;""",
    "COUNTED": """CREATE TABLE COUNTED AS SELECT TRACE, COUNT(*) AS C FROM TRACED
        GROUP BY TRACE;""",
    "WINDOWED": """CREATE TABLE WINDOWED WITH (key_format='JSON') AS
        SELECT TRACE, COUNT(*) AS C, LATEST_BY_OFFSET(N) AS N FROM TRACED
        WINDOW TUMBLING (SIZE 3 SECONDS) GROUP BY TRACE HAVING TRACE IS NOT NULL;""",
    "JOINED": """CREATE STREAM JOINED AS SELECT T.K AS K, T.ID, T.TRACE, P.TRACE
        FROM TRACED T JOIN PEOPLE P ON T.K = P.K;""",
    "MATCHED": """CREATE STREAM MATCHED AS SELECT L.TRACE AS KEYED, L.ID, R.ID
        FROM TRACED L JOIN TRACED_TOO R WITHIN 10 SECONDS ON L.TRACE = R.TRACE;""",
    "PAIRED": """CREATE TABLE PAIRED AS SELECT A.K AS K, A.TRACE, B.H
        FROM PEOPLE A JOIN KNOWN B ON A.K = B.K;""",
    "REFERRED": """CREATE TABLE REFERRED AS SELECT A.K AS K, A.TRACE, B.NAME
        FROM PEOPLE A JOIN PEOPLE_BY_TRACE B ON A.TRACE = B.TRACE;""",
}


@pytest.fixture(scope="module")
def pipelines(scene, sources):
    """Persistent queries that use header columns in every clause; their ids by sink."""
    scene.topic("by_trace")
    scene.write("by_trace", record({"NAME": "first"}, key="p1"), record({"NAME": "2nd"}, key="p2"))
    scene.topic("same")
    scene.write("same", *SAME)
    scene.sql(
        f"""
        CREATE STREAM SAME (K STRING KEY, ID INT, V INT, H {HEADERS} HEADERS)
          WITH (kafka_topic='same', value_format='JSON');
        CREATE STREAM TRACED_TOO (K STRING KEY, ID INT, V INT, TRACE BYTES HEADER('trace'))
          WITH (kafka_topic='events', value_format='JSON');
        CREATE TABLE PEOPLE_BY_TRACE (TRACE BYTES PRIMARY KEY, NAME STRING)
          WITH (kafka_topic='by_trace', value_format='JSON', wrap_single_value=true);
        """
    )
    ids = {name: scene.create(text) for name, text in (STATELESS | STATEFUL).items()}
    yield ids
    for query_id in ids.values():
        scene.sql(f"TERMINATE {query_id};")


# ------------------------------------- `SELECT * FROM ...` queries include header columns


def test_select_star_into_a_stream_includes_header_columns(scene, pipelines):
    assert scene.values("COPIED", 4) == [
        {"ID": i, "V": i * 10, "TRACE": last(e, "trace"), "N": last(e, "n")}
        for i, e in enumerate(EVENTS, 1)
    ]
    assert scene.values("LISTED", 4) == [
        {"ID": i, "V": i * 10, "H": listed(e)} for i, e in enumerate(EVENTS, 1)
    ]


# ------- Queries can use header columns in joins, UDFs, filters, group by and partition by


def test_queries_can_use_header_columns_in_functions_and_lambdas(scene, pipelines):
    def text(event):
        return event["headers"][0][1].decode() if listed(event) and last_of(event) else None

    def last_of(event):
        return event["headers"][0][1]

    assert scene.values("FUNCTIONS", 4) == [
        {
            "ID": i,
            "FIRST": text(e),
            "COUNTED": len(e["headers"]),
            "NAMES": [k for k, _ in e["headers"]],
            "TRACES": [h for h in listed(e) if h["KEY"] == "trace"],
            "REDUCED": "".join(f"{k};" for k, _ in e["headers"]),
        }
        for i, e in enumerate(EVENTS, 1)
    ]


def test_queries_can_use_header_columns_in_filters(scene, pipelines):
    assert [v["ID"] for v in scene.values("FILTERED", 2)] == [1, 4]


def test_queries_can_use_header_columns_in_partition_by(scene, pipelines):
    keys = [r.key for r in scene.records("REKEYED", 4)]
    assert keys == [b"t2", None, None, b"t2"]


def test_queries_can_use_header_columns_in_group_by(scene, pipelines):
    scene.drained(pipelines["COUNTED"], "events")
    counted = scene.wait(
        lambda: scene.pull("SELECT TRACE, C FROM COUNTED;"), lambda rows: rows == [(b64(b"t2"), 2)]
    )
    assert counted == [(b64(b"t2"), 2)]
    left_out = scene.log(pipelines["COUNTED"], 2)
    assert {e.detail["errorMessage"] for e in left_out} == {
        "Group-by column with index 0 resolved to null. "
        "The source row will be excluded from the table."
    }


def test_the_whole_array_can_be_a_key(scene, pipelines):
    """Each record's list of headers is a value like any other; none is an empty list."""
    written = scene.records("REKEYED_BY_ALL", 3)
    assert [json.loads(r.key) for r in written] == [listed(e) for e in SAME]
    assert [r.headers for r in written] == [(), (), ()]
    scene.drained(pipelines["COUNTED_BY_ALL"], "same")
    rows = scene.wait(
        lambda: scene.pull("SELECT H, C, TOTAL FROM COUNTED_BY_ALL;"), lambda rows: len(rows) == 2
    )
    assert sorted(rows, key=str) == sorted(
        [(listed(SAME[0]), 2, 20), (listed(SAME[1]), 1, 30)], key=str
    )


def test_queries_can_use_header_columns_in_joins_of_many(scene, pipelines):
    joined = sorted(scene.values("JOINED_THREE", 4), key=lambda v: v["ID"])
    person = {p["key"]: p for p in PEOPLE}
    assert joined == [
        {
            "ID": i,
            "T_TRACE": last(e, "trace"),
            "P_TRACE": last(person[e["key"]], "trace"),
            "H": listed(person[e["key"]]),
        }
        for i, e in enumerate(EVENTS, 1)
    ]


def test_a_table_of_everything_includes_header_columns(scene, pipelines):
    """They are columns of its value, and of what a pull query finds there."""
    fields = scene.client.describe("ALL_PEOPLE")["fields"]
    assert [(f["name"], f.get("type")) for f in fields] == [
        ("K", "KEY"),
        ("NAME", None),
        ("TRACE", None),
    ]
    assert [r.headers for r in scene.records("ALL_PEOPLE", 2)] == [(), ()]
    rows = scene.wait(lambda: scene.pull("SELECT * FROM ALL_PEOPLE;"), lambda rows: len(rows) == 2)
    assert sorted(rows) == [("a", "Ann", b64(b"p1")), ("b", "Bob", b64(b"p2"))]


def test_queries_can_use_header_columns_in_windows_and_having(scene, pipelines):
    rows = scene.wait(
        lambda: scene.pull("SELECT TRACE, WINDOWSTART, C, N FROM WINDOWED;"),
        lambda rows: len(rows) == 2,
    )
    t2 = b64(b"t2")
    assert rows == [(t2, 0, 1, b64(FORTY_TWO)), (t2, 3000, 1, b64(b"seven"))]


def test_queries_can_use_header_columns_in_joins(scene, pipelines):
    joined = sorted(scene.values("JOINED", 4), key=lambda v: v["ID"])
    assert joined == [
        {
            "ID": i,
            "T_TRACE": last(e, "trace"),
            "P_TRACE": b64(b"p1" if e["key"] == b"a" else b"p2"),
        }
        for i, e in enumerate(EVENTS, 1)
    ]
    matched = scene.records("MATCHED", 4)
    assert {r.key for r in matched} == {b"t2"}
    pairs = sorted((v["L_ID"], v["R_ID"]) for v in (json.loads(r.value) for r in matched))
    assert pairs == [(1, 1), (1, 4), (4, 1), (4, 4)]
    paired = scene.values("PAIRED", 2)
    assert sorted(paired, key=str) == sorted(
        ({"TRACE": last(p, "trace"), "H": listed(p)} for p in PEOPLE), key=str
    )
    referred = scene.wait(
        lambda: scene.pull("SELECT * FROM REFERRED;"), lambda rows: len(rows) == 2
    )
    assert sorted(referred) == [("a", b64(b"p1"), "first"), ("b", b64(b"p2"), "2nd")]


# ------------------------------------------------------------------- Tests for new functions


def test_new_functions_read_numbers_of_exact_length(scene, pipelines):
    """A function that fails gives null in the projection, skips the record in a predicate, and
    makes one entry in the processing log each."""
    assert [v["NUMBER"] for v in scene.values("NUMBERED", 4)] == [42, None, None, None]
    assert [v["ID"] for v in scene.values("CHECKED", 1)] == [1]
    (projected,) = scene.log(pipelines["NUMBERED"], 1)
    assert projected.logger == f"processing.{pipelines['NUMBERED']}.Project"
    assert projected.detail["errorMessage"] == (
        "Error computing expression INT_FROM_BYTES(N) for column NUMBER with index 1"
    )
    (filtered,) = scene.log(pipelines["CHECKED"], 1)
    assert filtered.detail["errorMessage"].startswith("Error evaluating predicate (INT_FROM_BYTES")
    assert filtered.detail["cause"] == projected.detail["cause"]


# -------------------------------------- Sink topic headers are unaffected by these changes


@pytest.mark.parametrize(
    "sink", ["COPIED", "LISTED", "FUNCTIONS", "REKEYED", "JOINED", "JOINED_THREE"]
)
def test_sink_topic_headers_are_unaffected(scene, pipelines, sink):
    assert [r.headers for r in scene.records(sink, 4)] == [()] * 4


# ------------------------------------------------------------------ The feature flag, and cost


def test_a_query_without_header_columns_does_not_read_headers(scene, server, pipelines):
    """Spark's source is asked for headers only where a header column is used."""
    with scene.query("CREATE STREAM UNUSED AS SELECT K, ID, V FROM TRACED;") as unused:
        scene.records("UNUSED", 4)
        plans = {
            name: server.engine.queries.get(query_id).spark_plan()
            for name, query_id in (("used", pipelines["COPIED"]), ("unused", unused))
        }
    assert "headers" in plans["used"] and "headers" not in plans["unused"]
