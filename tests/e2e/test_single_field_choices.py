"""Single fields (KLIP-3): what the server answers to a choice, and that a topic has one form."""

from __future__ import annotations

import pytest

from scene import Scene

pytestmark = pytest.mark.heavy


def warnings(answer: list[dict]) -> list[str]:
    return [warning["message"] for warning in answer[-1]["warnings"]]


def test_a_property_goes_to_the_side_that_can_follow_it(scene: Scene):
    answer = scene.sql(
        "CREATE STREAM half (k STRING KEY, v INT) WITH (kafka_topic='half', partitions=1, "
        "value_format='JSON', wrap_single_fields=true);"
    )
    [warning] = warnings(answer)
    assert "'WRAP_SINGLE_FIELDS' set to 'true' has no effect on the keys of HALF" in warning
    scene.sql("INSERT INTO half (k, v) VALUES ('a', 1);")
    [only] = scene.records("half", 1)
    assert (only.key, only.value) == (b"a", b'{"V":1}')
    # The default key format is not affected, and a format that can follow inherits the choice.
    with scene.query("CREATE STREAM half_whole WITH (key_format='JSON') AS SELECT * FROM half;"):
        [only] = scene.records("HALF_WHOLE", 1)
    assert (only.key, only.value) == (b'{"K":"a"}', b'{"V":1}')


REPLACED = "STREAM kept (k STRING KEY, v INT) WITH (kafka_topic='kept', value_format='JSON'{});"
COPY = "STREAM kept_copied {} AS SELECT k, v FROM kept{};"
WRAPPED = {"ksql__persistence__wrap__single__values": True}


def test_a_replacement_keeps_the_form_of_the_records(scene: Scene):
    scene.topic("kept")
    scene.sql(f"CREATE {REPLACED.format('')} CREATE {COPY.format('', '')}")
    scene.sql("INSERT INTO kept (k, v) VALUES ('a', 1);")
    assert [r.value for r in scene.records("KEPT_COPIED", 1)] == [b"1"]

    refused = scene.refused(f"CREATE OR REPLACE {REPLACED.format(', wrap_single_values=true')}")
    assert "while its topic 'kept' has records. Leave WRAP_SINGLE_VALUES out" in refused
    refused = scene.refused(
        f"CREATE OR REPLACE {COPY.format('WITH (wrap_single_values=true)', '')}"
    )
    assert "while its topic 'KEPT_COPIED' has records" in refused
    assert "is not upgradeable to several columns" in scene.refused(
        "ALTER STREAM kept ADD COLUMN w INT;"
    )

    scene.sql(f"CREATE OR REPLACE {REPLACED.format('')}", **WRAPPED)
    scene.sql(f"CREATE OR REPLACE {COPY.format('', ' WHERE v > 1')}", **WRAPPED)
    scene.sql("INSERT INTO kept (k, v) VALUES ('b', 2);")
    assert [r.value for r in scene.records("kept", 2)] == [b"1", b"2"]
    assert [r.value for r in scene.records("KEPT_COPIED", 2)] == [b"1", b"2"]


def test_an_empty_topic_takes_another_form(scene: Scene):
    sql = "STREAM fresh (k STRING KEY, v INT) WITH (kafka_topic='fresh', value_format='JSON'{});"
    scene.topic("fresh")
    scene.sql(f"CREATE {sql.format('')}")
    scene.sql(f"CREATE OR REPLACE {sql.format(', wrap_single_values=true')}")
    scene.sql("INSERT INTO fresh (k, v) VALUES ('a', 1);")
    assert [r.value for r in scene.records("fresh", 1)] == [b'{"V":1}']


@pytest.mark.parametrize("format_", ["AVRO", "JSON_SR"])
def test_schemas_win_over_the_settings(scene: Scene, format_: str):
    """A record with one field and a bare value, as key and as value, each against its setting."""
    name = f"shapes_{format_.lower()}"
    scene.sql(
        f"CREATE STREAM {name} (k STRING KEY, v INT) WITH (kafka_topic='{name}', partitions=1, "
        f"format='{format_}', wrap_single_keys=true, wrap_single_values=false);"
    )
    scene.sql(f"INSERT INTO {name} (k, v) VALUES ('a', 1);")
    sql = f"CREATE STREAM {name}_read WITH (kafka_topic='{name}', format='{format_}');"
    told = warnings(scene.sql(sql, **WRAPPED))
    assert len(told) == 2
    assert "WRAP_SINGLE_KEYS=true is taken from it" in told[0]
    assert "WRAP_SINGLE_VALUES=false is taken from it" in told[1]
    select = f"SELECT k, rowval FROM {name}_read EMIT CHANGES LIMIT 1;"
    assert scene.push(select, 1) == [("a", 1)]
    with scene.query(
        f"CREATE STREAM {name}_out WITH (format='JSON') AS SELECT * FROM {name}_read;"
    ):
        [only] = scene.records(f"{name}_OUT".upper(), 1)
    assert (only.key, only.value) == (b'{"K":"a"}', b"1")


def test_a_key_of_many_fields_is_inferred_by_setting_and_property_alike(scene: Scene):
    scene.sql(
        "CREATE STREAM pairs (a STRING KEY, b INT KEY, v INT, w INT) "
        "WITH (kafka_topic='pairs', partitions=1, format='AVRO');"
    )
    scene.sql("INSERT INTO pairs (a, b, v, w) VALUES ('x', 1, 2, 3);")
    sql = "CREATE STREAM {} WITH (kafka_topic='pairs', format='AVRO'{});"
    scene.sql(sql.format("by_property", ", wrap_single_keys=true"))
    scene.sql(sql.format("by_setting", ""), ksql__persistence__wrap__single__keys=True)
    for source in ("by_property", "by_setting"):
        rows = scene.push(f"SELECT a, b, v, w FROM {source} EMIT CHANGES LIMIT 1;", 1)
        assert rows == [("x", 1, 2, 3)]


def test_windowed_streams_join_whatever_the_setting_was(scene: Scene):
    for name in ("lefts_w", "rights_w"):
        scene.topic(name)
        scene.sql(
            f"CREATE STREAM {name} (k STRING KEY, v INT) WITH (kafka_topic='{name}', "
            "value_format='JSON', window_type='TUMBLING', window_size='1 HOUR');",
            ksql__persistence__wrap__single__keys=name == "rights_w",
        )
        window = (0).to_bytes(8, "big")
        scene.write(name, {"key": b"a" + window, "value": b"7", "timestamp": 1})
    with scene.query(
        "CREATE STREAM both_w AS SELECT l.k, l.v AS x, r.v AS y FROM lefts_w l "
        "JOIN rights_w r WITHIN 1 MINUTE ON l.k = r.k;"
    ):
        assert scene.values("BOTH_W", 1) == [{"X": 7, "Y": 7}]


def test_bare_values_that_are_null_leave_no_rows_in_a_join_of_tables(scene: Scene):
    for name in ("lefts_b", "rights_b"):
        scene.topic(name)
        scene.sql(
            f"CREATE TABLE {name} (k STRING PRIMARY KEY, v STRING) WITH (kafka_topic='{name}', "
            "value_format='JSON', wrap_single_value=false);"
        )
        scene.write(name, {"key": b"a", "value": b'"x"'}, {"key": b"b", "value": b'"y"'})
    select = "SELECT * FROM both_b;"
    with scene.query(
        "CREATE TABLE both_b AS SELECT l.k, l.v AS x, r.v AS y FROM lefts_b l "
        "JOIN rights_b r ON l.k = r.k;"
    ):
        rows = scene.wait(lambda: scene.pull(select), lambda rows: len(rows) == 2)
        assert sorted(rows) == [("a", "x", "x"), ("b", "y", "y")]
        scene.write("lefts_b", {"key": b"a", "value": None})
        scene.write("rights_b", {"key": b"b", "value": None}, {"key": b"a", "value": None})
        assert scene.wait(lambda: scene.pull(select), lambda rows: not rows) == []
