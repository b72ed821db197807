"""Columns that a statement leaves to the schema registry are written out."""

from __future__ import annotations

import json

import pytest

from headrace.catalog.catalog import Catalog
from headrace.engine.statements.resolve import Resolved, check_named_schemas, resolve_schema
from headrace.model.errors import StatementError, UnavailableError
from headrace.model.schema import Column, Namespace, Schema
from headrace.model.sources import Serde, Source, SourceKind
from headrace.model.types import BIGINT, INTEGER, STRING, Field, Struct
from headrace.plan.sources.ddl import plan_create_source
from headrace.registry.client import InMemoryRegistry
from headrace.registry.schema import RegisteredSchema, RegistryError
from headrace.sql.parser import parse_statement
from headrace.sql.printer import format_statement

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "item", "type": ["null", "string"]}],
}
SINGLE = {"type": "record", "name": "One", "fields": [{"name": "id", "type": "long"}]}

RESERVED = [{"name": "A", "type": "int"}, {"name": "rowtime", "type": "int"}]

PAIR = {
    "type": "record",
    "name": "Pair",
    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}],
}


@pytest.fixture
def registry() -> InMemoryRegistry:
    made = InMemoryRegistry()
    for subject, schema in {
        "orders-key": "string",
        "orders-value": ORDER,
        "single-value": SINGLE,
        "bare-value": "long",
        "list-value": {"type": "array", "items": "int"},
        "records-key": ORDER,
        "records-value": PAIR,
        "strange-value": {"type": "record", "name": "Empty", "fields": []},
        "reserved-key": {"type": "record", "name": "R", "fields": RESERVED},
        "reserved-value": {"type": "record", "name": "R", "fields": RESERVED},
    }.items():
        made.register(subject, json.dumps(schema))
    return made


def resolved(sql: str, registry: InMemoryRegistry | None, **settings: str) -> str:
    found = resolve_schema(
        parse_statement(sql), {k.replace("_", "."): v for k, v in settings.items()}, registry
    )
    return format_statement(found.statement)


def refusal(sql: str, registry: InMemoryRegistry | None) -> str:
    with pytest.raises(StatementError) as caught:
        resolved(sql, registry)
    return caught.value.message


def canonical(sql: str) -> str:
    return format_statement(parse_statement(sql))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "CREATE STREAM s WITH (KAFKA_TOPIC='orders', FORMAT='AVRO');",
            "CREATE STREAM s (ROWKEY STRING KEY, ID INT, ITEM STRING) "
            "WITH (KAFKA_TOPIC='orders', FORMAT='AVRO');",
            id="key and value",
        ),
        pytest.param(
            "CREATE TABLE t (k INT PRIMARY KEY) WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='AVRO');",
            "CREATE TABLE t (K INT PRIMARY KEY, ID INT, ITEM STRING) "
            "WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='AVRO');",
            id="a key is given",
        ),
        pytest.param(
            "CREATE STREAM s (v INT) WITH (KAFKA_TOPIC='orders', KEY_FORMAT='AVRO', "
            "VALUE_FORMAT='JSON');",
            "CREATE STREAM s (ROWKEY STRING KEY, V INT) WITH (KAFKA_TOPIC='orders', "
            "KEY_FORMAT='AVRO', VALUE_FORMAT='JSON');",
            id="a value is given",
        ),
        pytest.param(
            "CREATE STREAM s (h BYTES HEADER('x')) "
            "WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='AVRO');",
            "CREATE STREAM s (H BYTES HEADER('x'), ID INT, ITEM STRING) "
            "WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='AVRO');",
            id="headers are given",
        ),
        pytest.param(
            "CREATE STREAM s (k INT KEY) WITH (KAFKA_TOPIC='new', VALUE_FORMAT='AVRO', "
            "VALUE_SCHEMA_ID=2);",
            "CREATE STREAM s (K INT KEY, `id` INT, `item` STRING) WITH (KAFKA_TOPIC='new', "
            "VALUE_FORMAT='AVRO', VALUE_SCHEMA_ID=2);",
            id="by id, names keep their case",
        ),
        pytest.param(
            "CREATE TABLE t WITH (KAFKA_TOPIC='records', FORMAT='AVRO');",
            "CREATE TABLE t (ID INT PRIMARY KEY, ITEM STRING PRIMARY KEY, A INT, B INT) "
            "WITH (KAFKA_TOPIC='records', FORMAT='AVRO');",
            id="a key of many fields",
        ),
        pytest.param(
            "CREATE TABLE t WITH (KAFKA_TOPIC='records', FORMAT='AVRO', WRAP_SINGLE_KEYS=false);",
            "CREATE TABLE t (ROWKEY STRUCT<ID INT, ITEM STRING> PRIMARY KEY, A INT, B INT) "
            "WITH (KAFKA_TOPIC='records', FORMAT='AVRO', WRAP_SINGLE_KEYS=false);",
            id="unless it is said to be bare",
        ),
        pytest.param(
            "CREATE TABLE t WITH (KAFKA_TOPIC='records', FORMAT='AVRO', WRAP_SINGLE_KEYS=true);",
            "CREATE TABLE t (ID INT PRIMARY KEY, ITEM STRING PRIMARY KEY, A INT, B INT) "
            "WITH (KAFKA_TOPIC='records', FORMAT='AVRO', WRAP_SINGLE_KEYS=true);",
            id="a key that is said to be a record",
        ),
        pytest.param(
            "CREATE STREAM s WITH (KAFKA_TOPIC='single', VALUE_FORMAT='AVRO');",
            "CREATE STREAM s (ID BIGINT) "
            "WITH (KAFKA_TOPIC='single', VALUE_FORMAT='AVRO', WRAP_SINGLE_VALUES=true);",
            id="a record of one field says how it lies",
        ),
        pytest.param(
            "CREATE STREAM s WITH (KAFKA_TOPIC='single', VALUE_FORMAT='AVRO', "
            "WRAP_SINGLE_VALUES=false);",
            "CREATE STREAM s (ROWVAL STRUCT<ID BIGINT>) "
            "WITH (KAFKA_TOPIC='single', VALUE_FORMAT='AVRO', WRAP_SINGLE_VALUES=false);",
            id="a record may be a bare value",
        ),
        pytest.param(
            "CREATE STREAM s WITH (KAFKA_TOPIC='bare', VALUE_FORMAT='AVRO');",
            "CREATE STREAM s (ROWVAL BIGINT) WITH (KAFKA_TOPIC='bare', VALUE_FORMAT='AVRO');",
            id="a bare value",
        ),
        pytest.param(
            "CREATE STREAM s WITH (KAFKA_TOPIC='list', VALUE_FORMAT='AVRO', "
            "WRAP_SINGLE_VALUE=false);",
            "CREATE STREAM s (ROWVAL ARRAY<INT>) WITH (KAFKA_TOPIC='list', VALUE_FORMAT='AVRO', "
            "WRAP_SINGLE_VALUE=false);",
            id="a bare list",
        ),
    ],
)
def test_what_is_left_out(registry: InMemoryRegistry, before: str, after: str):
    assert resolved(before, registry) == canonical(after)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE STREAM s (k INT KEY, v INT) WITH (KAFKA_TOPIC='none', FORMAT='AVRO');",
        "CREATE STREAM s WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON');",
        "CREATE STREAM s AS SELECT * FROM t;",
        "SHOW TABLES;",
    ],
)
def test_nothing_is_left_out(registry: InMemoryRegistry, sql: str):
    statement = parse_statement(sql)
    assert resolve_schema(statement, {}, registry) == Resolved(statement)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "CREATE STREAM s WITH (KAFKA_TOPIC='none', VALUE_FORMAT='AVRO');",
            "Schema for message values on topic 'none' does not exist in the Schema Registry.\n"
            "Subject: none-value\nPossible causes include:\n- The topic itself does not exist\n",
        ),
        (
            "CREATE STREAM s WITH (KAFKA_TOPIC='none', KEY_FORMAT='AVRO', VALUE_FORMAT='JSON', "
            "KEY_SCHEMA_ID=99);",
            "Schema for message keys on topic 'none' does not exist in the Schema Registry.\n"
            "Subject: none-key\nSchema Id: 99\n",
        ),
        (
            "CREATE STREAM s (v INT) WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='AVRO', "
            "VALUE_SCHEMA_ID=2);",
            "Table elements and VALUE_SCHEMA_ID cannot both exist for create statement.",
        ),
        (
            "CREATE STREAM s (k INT KEY) WITH (KAFKA_TOPIC='orders', FORMAT='AVRO', "
            "KEY_SCHEMA_ID=2);",
            "Table elements and KEY_SCHEMA_ID cannot both exist for create statement.",
        ),
        (
            "CREATE STREAM s WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON', VALUE_SCHEMA_ID=2);",
            "VALUE_FORMAT should support schema inference when VALUE_SCHEMA_ID is provided. "
            "Current format is JSON.",
        ),
        (
            "CREATE STREAM s WITH (KAFKA_TOPIC='bare', VALUE_FORMAT='AVRO', "
            "WRAP_SINGLE_VALUE=true);",
            "Unable to verify if the value schema for topic: bare is compatible with ksqlDB.\n"
            "Reason: Schema returned from schema registry is anonymous type. To use this schema "
            "with ksqlDB, set 'WRAP_SINGLE_VALUE=false' in the WITH clause properties.",
        ),
        (
            "CREATE STREAM s WITH (KAFKA_TOPIC='strange', VALUE_FORMAT='AVRO');",
            "Reason: Schema does not include any columns with types that ksqlDB supports.",
        ),
        ("CREATE STREAM s WITH (KAFKA_TOPIC='x', VALUE_FORMAT='FOO');", "Unknown format: FOO"),
    ],
)
def test_refusals(registry: InMemoryRegistry, sql: str, message: str):
    assert message in refusal(sql, registry)


def test_a_schema_of_another_format(registry: InMemoryRegistry):
    registry.register("typed-value", '{"type": "object", "properties": {}}', "JSON")
    message = refusal("CREATE STREAM s WITH (KAFKA_TOPIC='typed', VALUE_FORMAT='AVRO');", registry)
    assert message == (
        "Value schema is not in the expected format. You may want to set VALUE_FORMAT to 'JSON'.\n"
        "topic: typed\nexpected format: AVRO\nactual format from Schema Registry: JSON"
    )


SIDES = {
    "key": ("(v INT)", "KEY_FORMAT='AVRO', VALUE_FORMAT='JSON'", "WRAP_SINGLE_KEYS"),
    "value": ("(k INT KEY)", "VALUE_FORMAT='AVRO'", "WRAP_SINGLE_VALUES"),
}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("setting", ["true", "false"])
@pytest.mark.parametrize(("topic", "wrapped"), [("ones", "true"), ("bares", "false")])
def test_a_schema_wins_over_the_setting_and_says_so(
    registry: InMemoryRegistry, side: str, setting: str, topic: str, wrapped: str
):
    registry.register(f"ones-{side}", json.dumps(SINGLE))
    registry.register(f"bares-{side}", '"long"')
    elements, formats, name = SIDES[side]
    sql = f"CREATE STREAM s {elements} WITH (KAFKA_TOPIC='{topic}', {formats});"
    settings = {f"ksql.persistence.wrap.single.{side}s": setting}
    found = resolve_schema(parse_statement(sql), settings, registry)
    text = format_statement(found.statement)
    column = "ID BIGINT" if topic == "ones" else f"ROW{side.upper()[:3]} BIGINT"
    assert column in text
    if setting == wrapped:
        assert not found.warnings
        assert "WRAP" not in text
        return
    assert f"{name}={wrapped}" in text
    [warning] = found.warnings
    assert f"{name}={wrapped} is taken from it, although " in warning
    assert f"ksql.persistence.wrap.single.{side}s is {setting}" in warning


def test_property_and_setting_mean_the_same_for_a_key_of_many_fields(registry: InMemoryRegistry):
    sql = "CREATE TABLE t WITH (KAFKA_TOPIC='records', FORMAT='AVRO'{});"
    by_property = resolved(sql.format(", WRAP_SINGLE_KEYS=true"), registry)
    by_setting = resolved(sql.format(""), registry, ksql_persistence_wrap_single_keys="true")
    assert "(ID INTEGER PRIMARY KEY, ITEM STRING PRIMARY KEY, A INTEGER," in by_property
    assert by_setting == by_property.replace(", WRAP_SINGLE_KEYS=true", "")


def test_what_replaces_a_source_reads_the_schema_as_that_did(registry: InMemoryRegistry):
    value = Serde("AVRO", False)
    schema = Schema([Column("ROWVAL", Struct((Field("ID", BIGINT),)))])
    before = Source("S", SourceKind.STREAM, schema, "single", Serde("KAFKA"), value)
    sql = "CREATE OR REPLACE STREAM s WITH (KAFKA_TOPIC='single', VALUE_FORMAT='AVRO');"
    found = resolve_schema(parse_statement(sql), {}, registry, before)
    assert "(ROWVAL STRUCT<ID BIGINT>)" in format_statement(found.statement)
    assert not found.warnings


def test_no_registry_and_one_that_is_down():
    sql = "CREATE STREAM s WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='AVRO');"
    assert refusal(sql, None) == (
        "Schema registry fetch for topic value request failed for topic: orders\n"
        "Caused by: KSQL is not configured to use a schema registry. To enable it, please set "
        "ksql.schema.registry.url"
    )

    class Down(InMemoryRegistry):
        def latest(self, subject: str) -> RegisteredSchema | None:
            raise UnavailableError("nobody answers")

    assert refusal(sql, Down()).endswith("Caused by: nobody answers")

    class Closed(InMemoryRegistry):
        def latest(self, subject: str) -> RegisteredSchema | None:
            raise RegistryError(401, "it refuses the login")

    told = refusal(sql, Closed())
    assert "You do not have permissions" in told
    assert told.endswith("Caused by: it refuses the login")


def sink(*columns: Column, schema_id: int) -> Source:
    value = Serde("AVRO", True, (("schemaId", str(schema_id)),))
    key = Serde("KAFKA")
    return Source("R", SourceKind.STREAM, Schema(columns), "r", key, value, is_sink=True)


def test_a_sink_must_fit_the_schema_that_it_names(registry: InMemoryRegistry):
    key = Column("K", INTEGER, Namespace.KEY)
    first, second = Column("id", INTEGER), Column("item", STRING)
    check_named_schemas(sink(key, first, second, schema_id=2), registry)
    check_named_schemas(sink(key, first, schema_id=2), registry)
    with pytest.raises(StatementError) as caught:
        check_named_schemas(sink(key, second, first, schema_id=2), registry)
    assert caught.value.message == (
        "The following value columns are changed, missing or reordered: [`item` STRING, "
        "`id` INTEGER]. Schema from schema registry is [`id` INTEGER, `item` STRING]"
    )
    with pytest.raises(StatementError, match="Schema Id: 77"):
        check_named_schemas(sink(first, schema_id=77), registry)


@pytest.mark.parametrize(
    ("columns", "formats"),
    [
        ("(V INT)", "KEY_FORMAT='AVRO', VALUE_FORMAT='JSON', WRAP_SINGLE_KEYS=TRUE"),
        ("(K INT KEY)", "VALUE_FORMAT='AVRO'"),
    ],
)
def test_an_inferred_column_cannot_have_a_reserved_name(registry, columns, formats):
    """What is inferred is declared like what is written, so one rule holds for both."""
    sql = f"CREATE STREAM s {columns} WITH (KAFKA_TOPIC='reserved', {formats}, PARTITIONS=1);"
    statement = resolve_schema(parse_statement(sql), {}, registry).statement
    assert "ROWTIME" in format_statement(statement)
    with pytest.raises(StatementError, match="'ROWTIME' is a reserved column name"):
        plan_create_source(statement, Catalog(), {})
