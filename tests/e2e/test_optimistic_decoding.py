"""Queries with state assume that Spark can read every record, until one comes that it cannot."""

from __future__ import annotations

import json

import pytest

from headrace.spark.internals.arrow_batches import BATCH_BYTES, BYTES_SETTING
from headrace.spark.rows.optimistic import SMALL_BYTES, OptimisticDecoding
from scene import record

pytestmark = pytest.mark.heavy


def test_a_record_that_only_python_can_read_is_counted_like_any_other(scene, server):
    scene.topic("quick")
    scene.sql(
        "CREATE STREAM quick (k STRING KEY, n BIGINT, word STRING) "
        "WITH (kafka_topic='quick', value_format='JSON');"
    )
    query_id = scene.create(
        "CREATE TABLE quick_totals AS SELECT k, COUNT(*) AS c, SUM(n) AS s FROM quick GROUP BY k;"
    )
    query = server.engine.queries.get(query_id)
    scene.write("quick", record({"N": 1, "WORD": "x"}, "a"), record({"N": 2, "WORD": "y"}, "b"))
    become(scene, [("a", 1, 1), ("b", 1, 2)])
    assert query.decoding.native

    # A number in quotes is a number to ksqlDB; a group in the same batch is not touched by it.
    scene.write("quick", record({"N": "10", "WORD": "x"}, "a"), record({"N": 5, "WORD": "y"}, "b"))
    become(scene, [("a", 2, 11), ("b", 2, 7)])
    assert not query.decoding.native
    assert not query.errors

    scene.write("quick", record({"N": 1, "WORD": "x"}, "a"))
    become(scene, [("a", 3, 12), ("b", 2, 7)])


def become(scene, rows):
    scene.wait(
        lambda: sorted(scene.pull("SELECT k, c, s FROM quick_totals;")), lambda seen: seen == rows
    )


def test_a_join_is_planned_again_without_saying_anything_twice(scene, server):
    scene.topic("quick_orders", 2)
    scene.topic("quick_names", 2)
    scene.sql(
        "CREATE STREAM quick_orders (k STRING KEY, n BIGINT) "
        "WITH (kafka_topic='quick_orders', value_format='JSON', wrap_single_values=true);"
        "CREATE TABLE quick_names (k STRING PRIMARY KEY, name STRING) "
        "WITH (kafka_topic='quick_names', value_format='JSON', wrap_single_values=true);"
    )
    scene.write("quick_names", record({"NAME": "Ada"}, "a"), record({"NAME": "Bob"}, "b"))
    query_id = scene.create(
        "CREATE STREAM quick_named AS SELECT o.k AS k, o.n AS n, t.name AS name "
        "FROM quick_orders o JOIN quick_names t ON o.k = t.k;"
    )
    query = server.engine.queries.get(query_id)
    scene.drained(query_id, "quick_names")
    scene.write("quick_orders", record({"N": 1}, "a"), record({"N": 2}, "b"))
    scene.records("QUICK_NAMED", 2)
    assert query.decoding.native

    # In one batch, in both partitions, around one that Spark is not sure of and one that is broken.
    scene.write(
        "quick_orders",
        *(record({"N": n}, key) for n in range(3, 23) for key in ("a", "b")),
        record({"N": "23"}, "a"),
        {"key": b"b", "value": b"{"},
        *(record({"N": n}, key) for n in range(24, 44) for key in ("a", "b")),
    )
    rows = [json.loads(each.value) for each in scene.records("QUICK_NAMED", 2 + 81)]
    assert sorted(row["N"] for row in rows if row["NAME"] == "Ada") == [1, *range(3, 44)]
    assert sorted(row["N"] for row in rows if row["NAME"] == "Bob") == [
        *range(2, 23),
        *range(24, 44),
    ]
    assert not query.decoding.native
    assert not query.errors


@pytest.mark.parametrize("window", ["", "WINDOW TUMBLING (SIZE 1 MINUTE) "], ids=["all", "windows"])
def test_a_row_that_must_be_logged_ends_optimistic_decoding(scene, server, window):
    name = f"QUICK_ROWS_{len(window)}"
    scene.topic(name.lower(), 2)
    scene.sql(
        f"CREATE STREAM {name} (k STRING KEY, n BIGINT) WITH (kafka_topic='{name.lower()}', "
        "value_format='JSON', wrap_single_values=true);"
    )
    query_id = scene.create(
        f"CREATE TABLE {name}_COUNTED AS SELECT k, COUNT(*) AS c FROM {name} {window}GROUP BY k;"
    )
    query = server.engine.queries.get(query_id)
    scene.write(name.lower(), record({"N": 1}, "a", at=1000), record(None, "a", at=1000))
    counted = f"SELECT k, c FROM {name}_COUNTED;"
    scene.wait(lambda: scene.pull(counted), lambda rows: rows == [("a", 1)])
    assert query.decoding.native

    # A record without a group: the log tells of it, once.
    scene.write(name.lower(), record({"N": 2}, at=2000), record({"N": 3}, "a", at=2000))
    scene.wait(lambda: scene.pull(counted), lambda rows: rows == [("a", 2)])
    scene.wait(lambda: query.decoding.native, lambda native: not native)
    (entry,) = scene.log(query_id, 1)
    assert "Group-by column with index 0 resolved to null." in entry.detail["errorMessage"]


@pytest.mark.parametrize("window", ["", "WINDOW TUMBLING (SIZE 1 MINUTE) "], ids=["all", "windows"])
def test_a_filter_does_not_hide_what_only_python_can_read(scene, server, window):
    """Spark asks first whether a column that is compared is null, as one it could not read is."""
    name = f"QUICK_FILTER_{len(window)}"
    scene.topic(name.lower())
    scene.sql(
        f"CREATE STREAM {name} (k STRING KEY, n BIGINT) WITH (kafka_topic='{name.lower()}', "
        "value_format='JSON', wrap_single_values=true);"
    )
    query_id = scene.create(
        f"CREATE TABLE {name}_COUNTED AS SELECT k, COUNT(*) AS c FROM {name} {window}"
        "WHERE n > 5 AND k <> 'z' GROUP BY k;"
    )
    query = server.engine.queries.get(query_id)
    scene.write(name.lower(), record({"N": 6}, "a"), record({"N": 5}, "a"))
    counted = f"SELECT k, c FROM {name}_COUNTED;"
    scene.wait(lambda: scene.pull(counted), lambda rows: rows == [("a", 1)])
    assert query.decoding.native

    scene.write(name.lower(), record({"N": "10"}, "a"), record(b"{", "z"), record({"N": 7}, "b"))
    scene.wait(lambda: sorted(scene.pull(counted)), lambda rows: rows == [("a", 2), ("b", 1)])
    assert not query.decoding.native
    (entry,) = scene.log(query_id, 1)
    assert entry.message["deserializationError"] is not None


def test_a_query_without_state_is_not_optimistic(scene, server):
    """It would have written the rows before the one that fails the batch."""
    scene.topic("stateless_numbers")
    scene.sql(
        "CREATE STREAM stateless_numbers (n BIGINT, word STRING) "
        "WITH (kafka_topic='stateless_numbers', value_format='JSON');"
    )
    query_id = scene.create(
        "CREATE STREAM stateless_numbers_out AS SELECT n, word FROM stateless_numbers;"
    )
    scene.write("stateless_numbers", record({"N": 1, "WORD": "x"}), record({"N": "2", "WORD": "y"}))
    assert [json.loads(each.value)["N"] for each in scene.records("STATELESS_NUMBERS_OUT", 2)] == [
        1,
        2,
    ]
    assert server.engine.queries.get(query_id).decoding.native  # nobody took it away


def test_large_rows_are_noticed_before_anything_is_written(scene, server):
    """Rows on their way to Python are not counted by their bytes; too many are noticed."""
    scene.topic("quick_files")
    scene.topic("quick_owners")
    scene.sql(
        "CREATE STREAM quick_files (k STRING KEY, n BIGINT, text STRING) "
        "WITH (kafka_topic='quick_files', value_format='JSON');"
        "CREATE TABLE quick_owners (k STRING PRIMARY KEY, name STRING) "
        "WITH (kafka_topic='quick_owners', value_format='JSON', wrap_single_values=true);"
    )
    scene.write("quick_owners", record({"NAME": "Ada"}, "a"))
    query_id = scene.create(
        "CREATE STREAM quick_owned AS SELECT f.k AS k, f.n AS n, "
        "LEN(f.text) AS length, o.name AS name"
        " FROM quick_files f JOIN quick_owners o ON f.k = o.k;"
    )
    query = server.engine.queries.get(query_id)
    scene.drained(query_id, "quick_owners")
    scene.write("quick_files", record({"N": 0, "TEXT": "x"}, "a"))
    scene.records("QUICK_OWNED", 1)
    assert query.decoding.small_rows
    assert bytes_at_a_time(query) == 2**31 - 1

    scene.sql(f"PAUSE {query_id};")
    size = 10_000
    count = SMALL_BYTES // size + 10
    files = [record({"N": n, "TEXT": "x" * size}, "a") for n in range(1, count + 1)]
    scene.write("quick_files", *files)
    scene.sql(f"RESUME {query_id};")
    rows = [json.loads(each.value) for each in scene.records("QUICK_OWNED", 1 + count)]
    assert [(row["N"], row["LENGTH"]) for row in rows[1:]] == [(n + 1, size) for n in range(count)]
    assert query.decoding == OptimisticDecoding(native=True, small_rows=False)
    assert not query.errors
    assert bytes_at_a_time(query) == BATCH_BYTES


def bytes_at_a_time(query):
    session = query.streaming._jsq.streamingQuery().sparkSessionForStream()
    return int(session.conf().get(BYTES_SETTING).rstrip("b"))
