"""Single fields (KLIP-3) in statements as a server takes them: warnings, replacements, joins.

Nothing is run: where it matters, topics pretend to have records.
"""

from __future__ import annotations

import pytest

from headrace.model.errors import StatementError
from headrace.model.settings import Settings
from headrace.plan.sources.wrapping import is_wrapped
from headrace.testing.rehearsal import PretendedTopics, Rehearsal

KEYS, VALUES = "ksql.persistence.wrap.single.keys", "ksql.persistence.wrap.single.values"


@pytest.fixture
def server() -> Rehearsal:
    return Rehearsal(PretendedTopics(), Settings())


def written(server: Rehearsal, name: str) -> tuple[bool, bool]:
    """Whether keys, and whether values of a source lie in an envelope."""
    source = server.catalog.source(name)
    assert source is not None
    return (
        is_wrapped(source.key, len(source.schema.key)),
        is_wrapped(source.value, len(source.schema.value)),
    )


def warned(server: Rehearsal, sql: str) -> list[str]:
    """The warnings of the last statement."""
    return list(server.run(sql)[-1].warnings)


# ---------------------------------------------------------------- formats without the notion

NO_RECORD = {"DELIMITED": "true", "KAFKA": "true", "PROTOBUF": "false"}


@pytest.mark.parametrize(("format_", "flag"), NO_RECORD.items())
@pytest.mark.parametrize("columns", ["V INT", "V INT, W INT"])
@pytest.mark.parametrize("name", ["WRAP_SINGLE_VALUES", "WRAP_SINGLE_FIELDS"])
def test_a_value_format_without_the_notion(
    server: Rehearsal, format_: str, flag: str, columns: str, name: str
):
    if format_ == "KAFKA":
        columns = "V INT"  # it has no more
    setting = f"VALUE_FORMAT='{format_}', {name}={flag}"
    server.run("CREATE STREAM P (K INT KEY, V INT, W INT) WITH (KAFKA_TOPIC='p', FORMAT='JSON');")
    names = ", ".join(column.split()[0] for column in columns.split(", "))
    for statement in (
        f"CREATE STREAM S (K INT KEY, {columns}) "
        f"WITH (KAFKA_TOPIC='s', KEY_FORMAT='JSON', {setting});",
        f"CREATE STREAM R WITH ({setting}) AS SELECT K, {names} FROM P;",
    ):
        [warning] = warned(server, statement)
        source = statement.split()[2]
        assert f"'{name}' set to '{flag}' has no effect on the values of {source}" in warning
        assert f"format {format_} " in warning
        wraps_keys = name == "WRAP_SINGLE_FIELDS" and flag == "true"
        assert written(server, source)[0] is wraps_keys, "applied to the side that can"


@pytest.mark.parametrize(("format_", "flag"), NO_RECORD.items())
@pytest.mark.parametrize("name", ["WRAP_SINGLE_KEYS", "WRAP_SINGLE_FIELDS"])
def test_a_key_format_without_the_notion(server: Rehearsal, format_: str, flag: str, name: str):
    [warning] = warned(
        server,
        "CREATE TABLE T (K INT PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='t', "
        f"KEY_FORMAT='{format_}', VALUE_FORMAT='JSON', {name}={flag});",
    )
    assert f"'{name}' set to '{flag}' has no effect on the keys of T: format {format_}" in warning
    wraps_values = name == "WRAP_SINGLE_FIELDS" and flag == "true"
    assert written(server, "T") == (format_ == "PROTOBUF", wraps_values)


def test_the_short_hand_works_beside_the_default_key_format(server: Rehearsal):
    sql = "CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', {});"
    [warning] = warned(server, sql.format("WRAP_SINGLE_FIELDS=true"))
    assert "no effect on the keys of S: format KAFKA has no outer record" in warning
    assert written(server, "S") == (False, True)
    # What is inherited is no order, and a format that can follow does.
    assert not warned(server, "CREATE STREAM R AS SELECT * FROM S;")
    assert not warned(server, "CREATE STREAM J WITH (KEY_FORMAT='JSON') AS SELECT * FROM S;")
    assert (written(server, "R"), written(server, "J")) == ((False, True), (True, True))


def test_a_source_without_key_columns(server: Rehearsal):
    sql = "CREATE STREAM {} (V INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', {});"
    assert not warned(server, sql.format("A", "WRAP_SINGLE_FIELDS=true"))
    assert warned(server, sql.format("B", "WRAP_SINGLE_KEYS=true"))
    assert warned(server, sql.format("C", "KEY_FORMAT='NONE', WRAP_SINGLE_KEYS=true"))


@pytest.mark.parametrize(
    "properties",
    [
        "FORMAT='JSON', WRAP_SINGLE_FIELDS=true",
        "FORMAT='JSON', WRAP_SINGLE_FIELDS=false",
        "FORMAT='DELIMITED', WRAP_SINGLE_FIELDS=false",
        "FORMAT='PROTOBUF', WRAP_SINGLE_FIELDS=true",
        "VALUE_FORMAT='JSON', WRAP_SINGLE_FIELDS=false",
        "VALUE_FORMAT='JSON', WRAP_SINGLE_VALUES=true",
    ],
)
def test_what_a_format_can_follow_needs_no_warning(server: Rehearsal, properties: str):
    sql = f"CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', {properties});"
    assert not warned(server, sql)


def test_settings_are_without_effect_silently(server: Rehearsal):
    sql = "CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='DELIMITED');"
    assert not warned(server, f"SET '{KEYS}'='true'; SET '{VALUES}'='true'; {sql}")
    assert written(server, "S") == (False, False)


# ------------------------------------------------------------------------------------- joins


def test_the_setting_does_not_part_windowed_streams_with_keys_that_cannot_follow_it(
    server: Rehearsal,
):
    windowed = (
        "(K INT KEY, V INT) WITH (KAFKA_TOPIC='{}', KEY_FORMAT='{}', VALUE_FORMAT='JSON', "
        "WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 HOUR');"
    )
    for format_ in ("KAFKA", "JSON"):
        server.run(
            f"UNSET '{KEYS}'; CREATE STREAM A_{format_} {windowed.format('a', format_)}"
            f"SET '{KEYS}'='true'; CREATE STREAM B_{format_} {windowed.format('b', format_)}"
        )
    join = (
        "CREATE STREAM {0} AS SELECT A.K, A.V AS X, B.V AS Y FROM A_{0} A JOIN B_{0} B "
        "WITHIN 1 MINUTE ON A.K = B.K;"
    )
    server.run(join.format("KAFKA"))
    with pytest.raises(StatementError, match="repartitioning of windowed sources"):
        server.run(join.format("JSON"))  # keys of two forms do not meet in one partition


# ------------------------------------------------------------------------------ replacements

SOURCE = "STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', FORMAT='JSON'{});"
QUERY = "STREAM R {} AS SELECT K, V FROM S;"


@pytest.fixture
def made(server: Rehearsal) -> Rehearsal:
    """A source and a query's stream with wrapped keys and bare values; both topics have records."""
    server.run(f"CREATE {SOURCE.format(', WRAP_SINGLE_KEYS=true')} CREATE {QUERY.format('')}")
    server.topics.has_records = lambda topic: True
    assert written(server, "S") == written(server, "R") == (True, False)
    return server


def test_a_replacement_keeps_the_recorded_choice(made: Rehearsal):
    made.run(f"SET '{VALUES}'='true'; UNSET '{KEYS}'; CREATE OR REPLACE {SOURCE.format('')}")
    assert written(made, "S") == (True, False)
    made.run(f"CREATE OR REPLACE {SOURCE.format(', WRAP_SINGLE_KEYS=true')}")
    assert written(made, "S") == (True, False)


def test_a_replaced_query_keeps_the_recorded_choice(made: Rehearsal):
    made.run(
        "CREATE STREAM Q WITH (WRAP_SINGLE_VALUES=true) AS SELECT K, V FROM S;"
        "CREATE OR REPLACE STREAM Q AS SELECT K, V FROM S WHERE V > 1;"
    )
    assert written(made, "Q") == (True, True)
    made.run(f"CREATE OR REPLACE {QUERY.format('WITH (WRAP_SINGLE_VALUES=false)')}")
    assert written(made, "R") == (True, False)


def test_a_replacement_of_the_released_name_stays_not_inherited(server: Rehearsal):
    sql = "STREAM S (V INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON'{});"
    server.run(
        f"CREATE {sql.format(', WRAP_SINGLE_VALUE=true')} CREATE OR REPLACE {sql.format('')}"
        "CREATE STREAM R AS SELECT * FROM S;"
    )
    assert (written(server, "S")[1], written(server, "R")[1]) == (True, False)


@pytest.mark.parametrize(
    ("replacement", "told"),
    [
        (SOURCE.format(", WRAP_SINGLE_VALUES=true"), ("values", "as bare values", "true")),
        (SOURCE.format(", WRAP_SINGLE_VALUE=true"), ("values", "as bare values", "true")),
        (SOURCE.format(", WRAP_SINGLE_KEYS=false"), ("keys", "in records", "false")),
        (SOURCE.format(", WRAP_SINGLE_FIELDS=false"), ("keys", "in records", "false")),
        (QUERY.format("WITH (WRAP_SINGLE_VALUES=true)"), ("values", "as bare values", "true")),
        (QUERY.format("WITH (WRAP_SINGLE_FIELDS=false)"), ("keys", "in records", "false")),
    ],
)
def test_a_property_that_says_otherwise(
    made: Rehearsal, replacement: str, told: tuple[str, str, str]
):
    before = made.catalog
    with pytest.raises(StatementError) as caught:
        made.run(f"CREATE OR REPLACE {replacement}")
    side, form, flag = told
    name, topic = replacement.split()[1], "s" if " S " in replacement else "R"
    prop = f"WRAP_SINGLE_{side.upper()}"
    assert caught.value.message == (
        f"Cannot upgrade data source: DataSource '`{name}`' has single {side} {form}, which is not "
        f"upgradeable to {prop}={flag} while its topic '{topic}' has records. Leave {prop} out to "
        f"keep what is there, or write the records anew: CREATE STREAM <another name> WITH "
        f"({prop}={flag}) AS SELECT * FROM `{name}`;"
    )
    assert made.catalog == before

    made.topics.has_records = lambda topic: False
    made.run(f"CREATE OR REPLACE {replacement}")
    assert written(made, name)[0 if side == "keys" else 1] is (flag == "true")


def test_a_format_without_the_notion_has_nothing_to_keep(server: Rehearsal):
    sql = "STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='DELIMITED'{});"
    server.run(f"CREATE {sql.format('')}")
    server.topics.has_records = lambda topic: True
    assert len(warned(server, f"CREATE OR REPLACE {sql.format(', WRAP_SINGLE_FIELDS=true')}")) == 2


@pytest.mark.parametrize(
    "change",
    [
        "CREATE OR REPLACE STREAM S (K INT KEY, V INT, W INT) "
        "WITH (KAFKA_TOPIC='s', FORMAT='JSON');",
        "ALTER STREAM S ADD COLUMN W INT;",
        "CREATE OR REPLACE STREAM R AS SELECT K, V, V + 1 AS W FROM S;",
    ],
)
def test_a_bare_value_gains_no_columns_while_there_are_records(made: Rehearsal, change: str):
    with pytest.raises(
        StatementError, match="is a bare value, which is not upgradeable to several"
    ):
        made.run(change)
    made.topics.has_records = lambda topic: False
    made.run(change)


def test_a_wrapped_value_gains_columns_at_any_time(made: Rehearsal):
    made.run(
        "CREATE STREAM W (V INT) "
        "WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', WRAP_SINGLE_VALUES=true);"
        "ALTER STREAM W ADD COLUMN X INT;"
    )
    assert written(made, "W")[1]
