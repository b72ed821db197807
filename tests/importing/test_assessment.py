"""What moves from ksqlDB as it is, what differs and how, what cannot move and why."""

from __future__ import annotations

import pytest

from headrace.importing.assessment import (
    Assessment,
    Item,
    Surroundings,
    Verdict,
    Wishes,
    assess,
)
from headrace.importing.commands import read_command
from headrace.importing.existing import Existing
from headrace.importing.recorded import History, Recorded
from headrace.importing.translation import comparable
from headrace.sql.parser import parse_statement
from ksqldb_shop import shop
from recorded_ksqldb import RecordedKsqlDb


def history(db: RecordedKsqlDb) -> History:
    entries = [
        read_command(
            record.key, record.value, f"offset {i}", service_id=db.service_id, offset=i, at=1000 + i
        )
        for i, record in enumerate(db.records())
    ]
    return History("the command topic", tuple(entries))


def script(*statements: str, **session: object) -> History:
    named = {k.replace("__", "."): v for k, v in session.items()}
    entries = (Recorded(text, f"line {i}", session=named) for i, text in enumerate(statements))
    return History("a script", tuple(entries))


def only(assessment: Assessment, title: str) -> Item:
    (item,) = [i for i in assessment.items if i.title.partition(" (")[0] == title]
    return item


SOURCE = "CREATE STREAM s (k INT KEY, a INT, b STRING) WITH (kafka_topic='s', value_format='JSON');"
BARE = (
    "CREATE STREAM bare (v INT) WITH (kafka_topic='bare', value_format='JSON', "
    "wrap_single_value=false);"
)


def test_a_whole_ksqldb() -> None:
    """Twelve sources in four formats, two types, and queries of all kinds; what was dropped,
    replaced or terminated on the way is left out."""
    found = assess(history(shop()))
    assert not found.of(Verdict.CANNOT)
    kinds = [item.title.split()[0] for item in found.of(Verdict.AS_IS, Verdict.DIFFERS)]
    assert (kinds.count("type"), len(kinds)) == (2, 26)
    queries = [item for item in found.items if item.group is not None]
    assert len(queries) == 12
    assert [why for _, why in found.left_out] == [
        "it was dropped later",
        "it was replaced later",
        "its query was terminated later",
    ]
    big = only(found, "stream BIG")
    assert big.title == "stream BIG (query CSAS_BIG_17)"
    assert "OR REPLACE" not in big.text and "CITY" in big.text
    assert "CLEANUP_POLICY" not in big.text and "PARTITIONS=1" in big.text
    assert [i.title for i in found.of(Verdict.THERE)] == ["stream KSQL_PROCESSING_LOG"]


def test_statements_that_need_no_change_stay_as_they_were_written() -> None:
    found = assess(script(SOURCE, "CREATE STREAM o AS SELECT k, a, b FROM s;"))
    assert [item.text for item in found.items] == [
        SOURCE,
        "CREATE STREAM o AS SELECT k, a, b FROM s;",
    ]


def test_outputs_of_a_parallel_run_go_to_topics_with_a_suffix() -> None:
    found = assess(history(shop()), Wishes(suffix="_HR"))
    assert "KAFKA_TOPIC='BIG_HR'" in only(found, "stream BIG").text
    assert "KAFKA_TOPIC='shop_orders'" in only(found, "stream ORDERS").text
    archive = only(found, "stream ARCHIVE")  # two queries insert into it
    assert "KAFKA_TOPIC='shop_archive_HR'" in archive.text
    assert "what others write to 'shop_archive' is not in it" in archive.notes[0]


def test_a_parallel_run_of_a_source_over_a_querys_topic() -> None:
    found = assess(
        script(
            SOURCE,
            "CREATE STREAM o AS SELECT * FROM s;",
            "CREATE STREAM again (a INT) WITH (kafka_topic='O', value_format='JSON');",
        ),
        Wishes(suffix="2"),
    )
    assert "KAFKA_TOPIC='O2'" in only(found, "stream O").text
    again = only(found, "stream AGAIN").text
    assert "KAFKA_TOPIC='O2'" in again and "PARTITIONS=1" in again


# ---------------------------------------------------------------------------- single values


def test_single_values_are_wrapped_as_in_ksqldb() -> None:
    found = assess(
        script(
            "CREATE STREAM one (v INT) WITH (kafka_topic='one', value_format='JSON');",
            BARE,
            "CREATE STREAM two AS SELECT v FROM one;",
            "CREATE STREAM three AS SELECT v FROM bare;",
        )
    )
    assert {item.settings["ksql.persistence.wrap.single.values"] for item in found.items} == {
        "true"
    }
    assert not any("WRAP" in only(found, f"stream {n}").text for n in ("ONE", "TWO", "THREE"))


def test_single_values_that_a_setting_unwrapped_in_ksqldb() -> None:
    """There the source of a query has no say; here it has, unless the statement says more."""
    one = Recorded("CREATE STREAM one (v INT) WITH (kafka_topic='one', value_format='JSON');", "1")
    setting = {"ksql.persistence.wrap.single.values": "false"}
    two = Recorded("CREATE STREAM two AS SELECT v FROM one;", "2", session=setting)
    found = assess(History("", (one, two)))
    moved = only(found, "stream TWO")
    assert "WRAP_SINGLE_VALUE=false" in moved.text
    assert moved.remarks == ("Its single value stays bare, as ksqlDB has it.",)


def test_what_ksqldb_had_planned_counts() -> None:
    recorded = Recorded(
        "CREATE STREAM one (v INT) WITH (kafka_topic='one', value_format='JSON');",
        "1",
        wrapped=False,
    )
    (item,) = assess(History("", (recorded,))).items
    assert "WRAP_SINGLE_VALUE=false" in item.text


def test_keys_are_never_wrapped() -> None:
    (item,) = assess(script(SOURCE)).items
    assert item.settings["ksql.persistence.wrap.single.keys"] == "false"


# -------------------------------------------------------------------------------- settings


def test_settings_move_with_each_statement() -> None:
    found = assess(
        script(
            SOURCE,
            auto__offset__reset="earliest",
            ksql__streams__processing__guarantee="exactly_once_v2",
            ksql__no__such="x",
        )
    )
    (item,) = found.items
    assert item.settings["ksql.streams.auto.offset.reset"] == "earliest"
    assert item.settings["processing.guarantee"] == "exactly_once_v2"
    (note,) = found.settings
    assert note.startswith("ksql.no.such: ")


def test_settings_of_the_server_move_where_they_change_a_meaning() -> None:
    server = {
        "ksql.persistence.default.format.value": "JSON",
        "ksql.streams.auto.offset.reset": "earliest",
        "ksql.persistence.wrap.single.values": "false",
        "ksql.heartbeat.enable": "true",
        "ksql.query.pull.enable": "false",
    }
    text = "CREATE STREAM s (v INT) WITH (kafka_topic='s');"
    (item,) = assess(History("", (Recorded(text, "1", server),))).items
    assert item.verdict is Verdict.AS_IS
    assert dict(item.settings) == {
        "ksql.streams.auto.offset.reset": "earliest",
        "ksql.persistence.wrap.single.values": "false",
        "ksql.persistence.wrap.single.keys": "false",
        "ksql.persistence.default.format.value": "JSON",
    }


# ----------------------------------------------------------------------------- what cannot


def test_java_functions_are_named_with_how_to_write_them() -> None:
    found = assess(
        script(
            SOURCE,
            "CREATE STREAM g AS SELECT k, GEO_HASH(b, a, 3) h FROM s;",
            "CREATE STREAM h AS SELECT * FROM g;",
            "INSERT INTO g SELECT k, b AS h FROM s;",
        )
    )
    assert only(found, "stream S").verdict is Verdict.AS_IS
    assert "It calls GEO_HASH, which Headrace does not have" in only(found, "stream G").notes[0]
    assert only(found, "stream H").notes == ("It needs stream G, which cannot move.",)
    assert only(found, "insert into G").notes == ("It needs stream G, which cannot move.",)
    (function,) = found.functions
    assert '@udf("(b STRING, a INTEGER, arg3 INTEGER) -> STRING")' in function.stub()
    assert "def geo_hash(b, a, arg3):" in function.stub()


def test_functions_as_ksqldb_describes_them() -> None:
    told = {
        "functions": [
            {
                "arguments": [{"name": "point", "type": "STRUCT<X DOUBLE, Y DOUBLE>"}],
                "returnType": "ARRAY<STRING>",
            }
        ],
        "type": "AGGREGATE",
    }
    entries = script(SOURCE, "CREATE TABLE g AS SELECT k, HULL(b) FROM s GROUP BY k;").entries
    (function,) = assess(History("", entries, functions={"HULL": told})).functions
    stub = function.stub()
    assert '@udaf("(point STRUCT<X DOUBLE, Y DOUBLE>) -> ARRAY<STRING>")\nclass Hull:' in stub
    compile(stub, "hull.py", "exec")


def test_statements_that_the_planner_refuses() -> None:
    found = assess(script(SOURCE, "CREATE STREAM o AS SELECT nothing FROM s;"))
    assert "column 'NOTHING' cannot be resolved" in only(found, "stream O").notes[0]


def test_commands_of_a_newer_ksqldb() -> None:
    db = RecordedKsqlDb()
    db.source(
        "STREAM",
        "S",
        "A INT, B INT",
        "`A` INTEGER, `B` INTEGER",
        "KAFKA_TOPIC='s', VALUE_FORMAT='JSON'",
    )
    db.command("stream/`T`/create", "CREATE STREAM T AS SELECT * FROM S;", version=19)
    found = assess(history(db))
    (newer,) = found.of(Verdict.CANNOT)
    assert newer.place == "offset 1"
    assert newer.notes[0].startswith("Its version is 19, and versions up to 18 are known")
    assert only(found, "stream S").verdict is Verdict.AS_IS


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, b"{}"), (b'"stream/S/create"', None), (b"stream", b"{}"), (b'"a/b/c"', b"[1]"),
     (b'"a/b/c"', b"{}"), (b'"a/b/c"', b'{"statement": "x;", "version": "new"}')],
)  # fmt: skip
def test_records_that_are_no_commands(key: bytes | None, value: bytes | None) -> None:
    entry = read_command(key, value, "offset 7", service_id="default_", offset=7)
    found = assess(History("", (entry,)))
    assert [item.title for item in found.of(Verdict.CANNOT)] == ["offset 7"]


def test_columns_that_would_not_be_the_same_as_in_ksqldb() -> None:
    """A source was replaced after a query had read it."""
    db = RecordedKsqlDb()

    def stream(columns: str) -> None:
        schema = ", ".join("`{}` {}".format(*c.split()) for c in columns.split(", "))
        db.source("STREAM", "S", columns, schema, "KAFKA_TOPIC='s', VALUE_FORMAT='JSON'")

    stream("A INTEGER, B INTEGER")
    db.query("STREAM", "O", "SELECT * FROM S", "`A` INTEGER, `B` INTEGER")
    stream("A INTEGER, B INTEGER, C INTEGER")
    found = only(assess(history(db)), "stream O")
    assert found.verdict is Verdict.CANNOT
    assert "Its columns would be `A` INTEGER, `B` INTEGER, `C` INTEGER" in found.notes[0]


def test_columns_in_a_registry_that_is_not_known() -> None:
    found = assess(script("CREATE STREAM s WITH (kafka_topic='s', value_format='AVRO');"))
    assert "Say where the schema registry is" in only(found, "stream S").notes[0]


# ---------------------------------------------------------------------------- present state


def test_a_terminated_query_leaves_its_source() -> None:
    db = RecordedKsqlDb()
    db.source(
        "STREAM",
        "S",
        "K STRING KEY, A INT, B INT",
        "`K` STRING KEY, `A` INTEGER, `B` INTEGER",
        "KAFKA_TOPIC='s', VALUE_FORMAT='JSON'",
    )
    query = db.query(
        "TABLE", "T", "SELECT K, COUNT(*) N FROM S GROUP BY K", "`K` STRING KEY, `N` BIGINT"
    )
    db.terminate(query)
    found = only(assess(history(db)), "table T")
    assert found.verdict is Verdict.DIFFERS and found.group is None
    assert found.text.startswith("CREATE TABLE T (K STRING PRIMARY KEY, N BIGINT) WITH (")
    assert "KAFKA_TOPIC='T'" in found.text and "WRAP_SINGLE_VALUE=true" in found.text


def test_paused_queries() -> None:
    db = RecordedKsqlDb()
    db.source(
        "STREAM",
        "S",
        "A INT, B INT",
        "`A` INTEGER, `B` INTEGER",
        "KAFKA_TOPIC='s', VALUE_FORMAT='JSON'",
    )
    query = db.query("STREAM", "O", "SELECT * FROM S", "`A` INTEGER, `B` INTEGER")
    db.command(f"pause/{query}/execute", f"PAUSE {query};")
    assert only(assess(history(db)), "stream O").paused
    db.command("resume/ALL/execute", "RESUME ALL;")
    assert not only(assess(history(db)), "stream O").paused


def test_a_terminated_cluster_has_nothing() -> None:
    db = shop()
    db.command("cluster/TerminateCluster/terminate", "TERMINATE CLUSTER;")
    assert assess(history(db)).items == ()


def test_altered_sources() -> None:
    found = assess(
        script(SOURCE, "CREATE STREAM o AS SELECT * FROM s;", "ALTER STREAM s ADD COLUMN c INT;")
    )
    assert [item.title for item in found.items] == ["stream S", "stream O", "columns of stream S"]


def test_statements_are_ordered_by_what_they_need() -> None:
    """A query was replaced by one that reads what was made after it."""
    found = assess(
        script(
            SOURCE,
            "CREATE STREAM a AS SELECT k, a FROM s;",
            "CREATE STREAM b AS SELECT k, a FROM s;",
            "CREATE OR REPLACE STREAM a AS SELECT k, a FROM b;",
        )
    )
    assert [item.title for item in found.items] == ["stream S", "stream B", "stream A"]


def test_statements_of_scripts_that_leave_nothing_behind() -> None:
    found = assess(
        script(
            SOURCE,
            "INSERT INTO s (a) VALUES (1);",
            "SELECT * FROM s EMIT CHANGES;",
            "SHOW STREAMS;",
            "CREATE SINK CONNECTOR c WITH ('connector.class'='x');",
        )
    )
    assert [why.split(",")[0] for _, why in found.left_out] == [
        "it wrote a record",
        "it only asks",
        "it only asks",
        "connectors run in Kafka Connect",
    ]


# ------------------------------------------------------------------------- what is there


def test_what_the_server_has_is_not_made_again() -> None:
    insert = "INSERT INTO s SELECT k, a, b FROM s;"
    whole = script(
        "CREATE TYPE t AS ARRAY<INT>;",
        SOURCE,
        "CREATE STREAM o AS SELECT * FROM s;",
        insert,
        insert,
        "ALTER STREAM s ADD COLUMN c INT;",
    )
    first = assess(whole)
    texts = {item.title.split()[-1]: item.text for item in first.items}
    existing = Existing(
        {name: comparable(parse_statement(texts[name])) for name in ("S", "O")},
        [comparable(parse_statement(insert))],
        {
            "T": {
                "type": "ARRAY",
                "fields": None,
                "memberSchema": {"type": "INTEGER", "fields": None, "memberSchema": None},
            }
        },
    )
    second = assess(whole, surroundings=Surroundings(existing=existing))
    assert [item.title for item in second.of(Verdict.AS_IS)] == ["insert into S"]
    assert not second.of(Verdict.CANNOT)


def test_a_source_that_is_another_one_on_the_server() -> None:
    other = "CREATE STREAM s (x INT) WITH (kafka_topic='other', value_format='JSON');"
    existing = Existing({"S": parse_statement(other)})
    found = assess(script(SOURCE), surroundings=Surroundings(existing=existing))
    assert found.items[0].notes[0].startswith("The server has another S: CREATE STREAM S (X")
