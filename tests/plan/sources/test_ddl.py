"""CREATE STREAM and CREATE TABLE over a topic: what a source gets, and what is refused."""

from __future__ import annotations

import pytest

from headrace.model.errors import StatementError
from headrace.model.schema import Namespace
from headrace.model.sources import SourceKind, TimestampColumn, WindowedKey, WindowType
from headrace.model.types import BIGINT, INTEGER, Struct
from headrace.plan.sources.ddl import plan_alter_source
from headrace.sql import ast
from headrace.sql.parser import parse_statement
from plan_catalog import Catalog

JSON = "KAFKA_TOPIC='t', VALUE_FORMAT='JSON'"


def refusal(sql: str, **settings: str) -> str:
    catalog = Catalog(settings={name.replace("_", "."): value for name, value in settings.items()})
    with pytest.raises(StatementError) as caught:
        catalog.run(sql)
    return caught.value.message


# ------------------------------------------------------------------------------------ accepted


def test_a_stream():
    catalog = Catalog()
    catalog.run(
        "CREATE STREAM s (k BIGINT KEY, v INT, h ARRAY<STRUCT<key STRING, value BYTES>> HEADERS) "
        "WITH (KAFKA_TOPIC='t', KEY_FORMAT='KAFKA', VALUE_FORMAT='delimited', VALUE_DELIMITER='|');"
    )
    source = catalog.known["S"]
    assert source.kind is SourceKind.STREAM
    assert source.topic == "t"
    assert [(c.name, c.namespace) for c in source.schema] == [
        ("K", Namespace.KEY),
        ("V", Namespace.VALUE),
        ("H", Namespace.HEADERS),
    ]
    assert (source.key.format, source.value.format) == ("KAFKA", "DELIMITED")
    assert source.value.property("delimiter") == "|"
    assert not source.read_only


def test_a_windowed_table_with_its_own_time():
    catalog = Catalog()
    catalog.run(
        "CREATE SOURCE TABLE t (k INT PRIMARY KEY, ts STRING) WITH (KAFKA_TOPIC='t', "
        "FORMAT='JSON', WINDOW_TYPE='tumbling', WINDOW_SIZE='2 Minutes', TIMESTAMP='ts', "
        "TIMESTAMP_FORMAT='yyyy-MM-dd''T''HH:mm[:ss]');"
    )
    source = catalog.known["T"]
    assert source.window == WindowedKey(WindowType.TUMBLING, 120_000)
    assert source.timestamp == TimestampColumn("TS", "yyyy-MM-dd'T'HH:mm[:ss]")
    assert source.read_only


def test_custom_types_are_what_they_stand_for():
    catalog = Catalog(types={"ADDRESS": Struct(())})
    catalog.run(f"CREATE STREAM s (a address, b ARRAY<address>) WITH ({JSON});")
    assert str(catalog.known["S"].schema) == "`A` STRUCT< >, `B` ARRAY<STRUCT< >>"
    assert "Cannot resolve unknown type: MINE" in refusal(
        f"CREATE STREAM s (a mine) WITH ({JSON});"
    )


@pytest.mark.parametrize(
    ("settings", "formats"),
    [
        ({"ksql.persistence.default.format.value": "JSON"}, ("KAFKA", "JSON")),
        (
            {
                "ksql.persistence.default.format.key": "json",
                "ksql.persistence.default.format.value": "delimited",
            },
            ("JSON", "DELIMITED"),
        ),
    ],
)
def test_formats_by_default(settings: dict[str, str], formats: tuple[str, str]):
    catalog = Catalog(settings=settings)
    catalog.run("CREATE STREAM s (k INT KEY, v INT) WITH (KAFKA_TOPIC='t');")
    source = catalog.known["S"]
    assert (source.key.format, source.value.format) == formats


def test_an_avro_key_has_a_name_of_its_own():
    catalog = Catalog()
    catalog.run("CREATE STREAM my_orders (k INT KEY, v INT) WITH (KAFKA_TOPIC='t', FORMAT='AVRO');")
    source = catalog.known["MY_ORDERS"]
    assert source.key.property("fullSchemaName") == "io.confluent.ksql.avro_schemas.MyOrdersKey"


# ------------------------------------------------------------------------------- WITH properties


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (
            "VALUE_FORMAT='JSON'",
            'Failed to prepare statement: Missing required property "KAFKA_TOPIC" which has no '
            "default value.",
        ),
        (
            "KAFKA_TOPIC=' ', VALUE_FORMAT='JSON'",
            "Failed to prepare statement: Invalid value  for property KAFKA_TOPIC: String must be "
            "non-empty",
        ),
        (
            f"{JSON}, COLOUR='x', KEYS='y'",
            "Failed to prepare statement: Invalid config variable(s) in the WITH clause: "
            "COLOUR,KEYS",
        ),
        (
            f"{JSON}, PARTITIONS='many'",
            "Invalid value many for property PARTITIONS: Not a number of type INT",
        ),
        (
            f"{JSON}, PARTITIONS=3000000000",
            "Invalid value 3000000000 for property PARTITIONS: Expected value to be a 32-bit "
            "integer, but it was a java.lang.Long",
        ),
        (f"{JSON}, PARTITIONS=0", "Number of partitions must be larger than 0"),
        (
            f"{JSON}, REPLICAS=true",
            "Invalid value true for property REPLICAS: Expected value to be a 16-bit integer, but "
            "it was a java.lang.Boolean",
        ),
        (
            f"{JSON}, RETENTION_MS='1.5'",
            "Invalid value 1.5 for property RETENTION_MS: Not a number of type LONG",
        ),
        (
            f"{JSON}, WRAP_SINGLE_VALUES='maybe'",
            "Invalid value maybe for property WRAP_SINGLE_VALUES: Expected value to be either true "
            "or false",
        ),
        (
            "KAFKA_TOPIC=1, VALUE_FORMAT='JSON'",
            "Invalid value 1 for property KAFKA_TOPIC: Expected value to be a string, but it was a "
            "java.lang.Integer",
        ),
        (
            f"{JSON}, CLEANUP_POLICY='compact'",
            "Invalid config variable in the WITH clause: CLEANUP_POLICY.\n"
            "The CLEANUP_POLICY config is automatically inferred",
        ),
        (
            "KAFKA_TOPIC='t'",
            "Statement is missing the 'VALUE_FORMAT' property from the WITH clause.",
        ),
        ("KAFKA_TOPIC='t', VALUE_FORMAT='FOO'", "Unknown format: FOO"),
        (
            f"{JSON}, FORMAT='AVRO'",
            "Cannot supply both 'VALUE_FORMAT' and 'FORMAT' properties, as 'FORMAT' sets both key "
            "and value formats.",
        ),
        (
            "KAFKA_TOPIC='t', KEY_FORMAT='KAFKA', FORMAT='JSON'",
            "Cannot supply both 'KEY_FORMAT' and 'FORMAT' properties",
        ),
        (
            f"{JSON}, VALUE_AVRO_SCHEMA_FULL_NAME='a', VALUE_SCHEMA_FULL_NAME='b'",
            "Cannot supply both 'VALUE_AVRO_SCHEMA_FULL_NAME' and 'VALUE_SCHEMA_FULL_NAME'",
        ),
        (
            f"{JSON}, VALUE_SCHEMA_FULL_NAME='b'",
            "JSON does not support the following configs: [fullSchemaName]",
        ),
        (
            "KAFKA_TOPIC='t', VALUE_FORMAT='AVRO', VALUE_SCHEMA_FULL_NAME=' '",
            "fullSchemaName cannot be empty. Format configuration: {fullSchemaName=}",
        ),
        (
            f"{JSON}, VALUE_DELIMITER='|'",
            "JSON does not support the following configs: [delimiter]",
        ),
        (
            f"{JSON}, KEY_DELIMITER='||'",
            "Failed to prepare statement: Configuration KEY_DELIMITER is invalid: Invalid "
            "delimiter value: '||'. Delimiter must be a single character or TAB,SPACE",
        ),
        (
            f"{JSON}, VALUE_SCHEMA_ID=1",
            "VALUE_FORMAT should support schema inference when VALUE_SCHEMA_ID is provided. "
            "Current format is JSON.",
        ),
        (
            f"{JSON}, VALUE_PROTOBUF_NULLABLE_REPRESENTATION='OPTIONAL'",
            "Property VALUE_PROTOBUF_NULLABLE_REPRESENTATION can only be enabled with protobuf "
            "format",
        ),
        (
            f"{JSON}, KEY_PROTOBUF_NULLABLE_REPRESENTATION='X'",
            "Invalid value X for property KEY_PROTOBUF_NULLABLE_REPRESENTATION: String must be one "
            "of: OPTIONAL, WRAPPER, null",
        ),
        (
            f"{JSON}, WINDOW_TYPE='SLIDING'",
            "Invalid value SLIDING for property WINDOW_TYPE: String must be one of: SESSION, "
            "HOPPING, TUMBLING, null",
        ),
        (
            f"{JSON}, WINDOW_TYPE='HOPPING'",
            "HOPPING windows require 'WINDOW_SIZE' to be provided in the WITH clause. For example: "
            "'WINDOW_SIZE'='10 SECONDS'",
        ),
        (
            f"{JSON}, WINDOW_TYPE='SESSION', WINDOW_SIZE='1 SECOND'",
            "'WINDOW_SIZE' should not be set for SESSION windows.",
        ),
        (
            f"{JSON}, WINDOW_SIZE='1 SECOND'",
            "'WINDOW_SIZE' should not be set for SESSION windows.",
        ),
        (
            f"{JSON}, WINDOW_TYPE='HOPPING', WINDOW_SIZE='1 FORTNIGHT'",
            "Configuration WINDOW_SIZE is invalid: Invalid duration: '1 FORTNIGHT'. Unknown time "
            "unit: 'FORTNIGHT'\nSupported time units are: NANOSECONDS, ",
        ),
        (
            f"{JSON}, WINDOW_TYPE='HOPPING', WINDOW_SIZE='SECONDS'",
            "Invalid duration: 'SECONDS'. Expected 2 tokens, got: 1",
        ),
        (
            f"{JSON}, WINDOW_TYPE='HOPPING', WINDOW_SIZE='two SECONDS'",
            "Invalid duration: 'two SECONDS'. Not numeric: 'two'",
        ),
        (
            f"{JSON}, TIMESTAMP='x'",
            "The TIMESTAMP column set in the WITH clause does not exist in the schema: 'X'",
        ),
        (
            f"{JSON}, TIMESTAMP='v'",
            "Timestamp column, `V`, should be LONG(INT64), TIMESTAMP, or a String with a "
            "timestamp_format specified.",
        ),
        (
            f"{JSON}, TIMESTAMP='txt'",
            "A String timestamp field has been specified without also specifying the "
            "timestamp_format",
        ),
        (
            f"{JSON}, TIMESTAMP='k', TIMESTAMP_FORMAT='yyyy'",
            "'TIMESTAMP_FORMAT' set in the WITH clause can only be used when the timestamp column "
            "is of type STRING.",
        ),
        (
            f"{JSON}, TIMESTAMP='txt', TIMESTAMP_FORMAT='yyyy iii'",
            "Failed to prepare statement: Invalid datetime format for config:TIMESTAMP_FORMAT, "
            "reason:Unknown pattern letter: i",
        ),
        (
            f"{JSON}, TIMESTAMP='txt', TIMESTAMP_FORMAT='yyyy''T'",
            "reason:Pattern ends with an incomplete string literal: yyyy'T",
        ),
        (
            f"{JSON}, TIMESTAMP='txt', TIMESTAMP_FORMAT='yy]'",
            "reason:Pattern invalid as it contains ] without previous [",
        ),
    ],
)
def test_properties_are_refused(properties: str, message: str):
    statement = f"CREATE STREAM s (k BIGINT KEY, v INT, txt STRING) WITH ({properties});"
    assert message in refusal(statement)


@pytest.mark.parametrize("kind", ["STREAM", "TABLE"])
def test_tables_are_kept_for_ever(kind: str):
    key = "KEY" if kind == "STREAM" else "PRIMARY KEY"
    sql = f"CREATE {kind} s (k INT {key}, v INT) WITH ({JSON}, RETENTION_MS=1000);"
    if kind == "STREAM":
        Catalog().run(sql)
    else:
        assert refusal(sql) == (
            "Invalid config variable in the WITH clause: RETENTION_MS. Non-windowed tables do not "
            "support retention."
        )


def test_only_windowed_results_may_pass(catalog: Catalog):
    counted = "AS SELECT id, COUNT(*) c FROM s {} GROUP BY id;"
    with pytest.raises(StatementError, match="Non-windowed tables do not support retention"):
        catalog.run("CREATE TABLE c WITH (RETENTION_MS=1) " + counted.format(""))
    windowed = counted.format("WINDOW TUMBLING (SIZE 1 HOUR)")
    planned = catalog.plan("CREATE TABLE c WITH (RETENTION_MS=1) " + windowed)
    assert planned.topic is not None
    assert planned.topic.retention_ms == 1


def test_properties_of_inserts(catalog: Catalog):
    catalog.run("CREATE STREAM o AS SELECT id, name FROM s;")
    catalog.run("INSERT INTO o WITH (QUERY_ID='mine') SELECT id, name FROM s;")
    with pytest.raises(StatementError, match="Invalid config variable"):
        catalog.run("INSERT INTO o WITH (PARTITIONS=1) SELECT id, name FROM s;")


# -------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (f"CREATE STREAM s WITH ({JSON});", "No columns supplied."),
        (
            f"CREATE STREAM s (rowtime BIGINT) WITH ({JSON});",
            "'ROWTIME' is a reserved column name. You cannot use it as a name for a column.",
        ),
        (f"CREATE STREAM s (windowend BIGINT) WITH ({JSON});", "'WINDOWEND' is a reserved column"),
        (f"CREATE STREAM s (a INT, a STRING) WITH ({JSON});", "Duplicate column names: `A`"),
        (
            f"CREATE STREAM s (a INT PRIMARY KEY) WITH ({JSON});",
            "Column `A` is a 'PRIMARY KEY' column: please use 'KEY' for streams.",
        ),
        (
            f"CREATE TABLE t (a INT KEY) WITH ({JSON});",
            "Column `A` is a 'KEY' column: please use 'PRIMARY KEY' for tables.",
        ),
        (
            f"CREATE TABLE t (a INT) WITH ({JSON});",
            "Tables require a PRIMARY KEY. Please define the PRIMARY KEY.",
        ),
        (
            f"CREATE STREAM s (v INT) WITH ({JSON}, WINDOW_TYPE='SESSION');",
            "Windowed sources require a key column.",
        ),
        (
            f"CREATE STREAM s (k MAP<STRING, INT> KEY) WITH ({JSON});",
            "Map keys, including types that contain maps, are not supported",
        ),
        (
            f"CREATE STREAM s (k ARRAY<INT> KEY) WITH ({JSON});",
            "Key format does not support schema.\nformat: KAFKA\n"
            "schema: Persistence{columns=[`K` ARRAY<INTEGER> KEY], features=[]}\n"
            "reason: The 'KAFKA' format does not support type 'ARRAY'",
        ),
        (
            "CREATE STREAM s (b ARRAY<INT>) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='DELIMITED');",
            "Value format does not support schema.\nformat: DELIMITED\n",
        ),
        (
            f"CREATE OR REPLACE SOURCE STREAM s (a INT) WITH ({JSON});",
            "Cannot add stream 'S': CREATE OR REPLACE is not supported on source streams.",
        ),
    ],
)
def test_columns_are_refused(statement: str, message: str):
    assert message in refusal(statement)


# -------------------------------------------------------------------------------------- headers

ALL_HEADERS = "ARRAY<STRUCT<key STRING, value BYTES>> HEADERS"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (f"a {ALL_HEADERS}, b {ALL_HEADERS}", "Schema already contains a HEADERS column."),
        (f"a {ALL_HEADERS}, b BYTES HEADER('x')", "Schema already contains a HEADERS column."),
        (f"b BYTES HEADER('x'), a {ALL_HEADERS}", "Schema already contains a HEADER('x') column."),
        (
            "a BYTES HEADER('x'), b BYTES HEADER('x')",
            "Schema already contains a HEADER('x') column.",
        ),
        (
            "a ARRAY<BYTES> HEADERS",
            "Columns specified with the HEADERS keyword must be typed as "
            "ARRAY<STRUCT<key STRING, value BYTES>>.",
        ),
        ("a STRING HEADER('x')", "Invalid type for HEADER('x') column: expected BYTES, got STRING"),
    ],
)
def test_headers_are_refused(columns: str, message: str):
    assert message in refusal(f"CREATE STREAM s ({columns}, v INT) WITH ({JSON});")
    key = "k INT PRIMARY KEY"
    assert message in refusal(f"CREATE TABLE t ({key}, {columns}, v INT) WITH ({JSON});")


def test_headers_of_different_keys():
    catalog = Catalog()
    catalog.run(f"CREATE STREAM s (a BYTES HEADER('x'), b BYTES HEADER('y'), v INT) WITH ({JSON});")
    assert [c.header_key for c in catalog.known["S"].schema.headers] == ["x", "y"]


def test_a_custom_type_may_be_that_of_headers():
    catalog = Catalog()
    headers = f"CREATE STREAM s (h {ALL_HEADERS}, v INT) WITH ({JSON});"
    catalog.run(headers)
    catalog.types["HS"] = catalog.known["S"].schema.headers[0].type
    catalog.types["NUMBER"] = INTEGER
    catalog.run(f"CREATE STREAM s2 (h hs HEADERS, v INT) WITH ({JSON});")
    with pytest.raises(StatementError, match="Invalid type for HEADERS column"):
        catalog.run(f"CREATE STREAM s3 (h number HEADERS, v INT) WITH ({JSON});")


def test_headers_can_be_switched_off():
    settings = {"ksql.headers.enabled": "false"}
    catalog = Catalog()
    catalog.run(f"CREATE STREAM old (h {ALL_HEADERS}, v INT) WITH ({JSON});")
    catalog.settings = settings
    for kind, key in (("STREAM", "KEY"), ("TABLE", "PRIMARY KEY")):
        with pytest.raises(StatementError) as caught:
            catalog.run(f"CREATE {kind} s (k INT {key}, h {ALL_HEADERS}) WITH ({JSON});")
        assert caught.value.message == (
            f"Cannot create {kind} because schema with headers columns is disabled."
        )
    catalog.plan("CREATE STREAM copy AS SELECT * FROM old;")


def test_with_headers_off_a_source_is_replaced_by_one_with_the_header_columns_it_has():
    catalog = Catalog()
    catalog.run(
        f"""CREATE STREAM old (h {ALL_HEADERS}, v INT) WITH ({JSON});
            CREATE STREAM one (x BYTES HEADER('x'), v INT) WITH ({JSON});
            CREATE STREAM none (v INT) WITH ({JSON});"""
    )
    catalog.settings = {"ksql.headers.enabled": "false"}
    catalog.run(f"CREATE OR REPLACE STREAM old (h {ALL_HEADERS}, v INT, w INT) WITH ({JSON});")
    assert [c.name for c in catalog.known["OLD"].schema] == ["H", "V", "W"]
    for statement in (
        f"CREATE OR REPLACE STREAM none (v INT, h {ALL_HEADERS}) WITH ({JSON});",
        f"CREATE OR REPLACE STREAM one (x BYTES HEADER('z'), v INT) WITH ({JSON});",
        f"CREATE OR REPLACE STREAM new (v INT, h {ALL_HEADERS}) WITH ({JSON});",
        f"CREATE STREAM old (h {ALL_HEADERS}, v INT) WITH ({JSON});",
    ):
        with pytest.raises(StatementError, match="schema with headers columns is disabled"):
            catalog.run(statement)


# ---------------------------------------------------------------------------------------- ALTER


def altered(catalog: Catalog, sql: str) -> str:
    statement = parse_statement(sql)
    assert isinstance(statement, ast.AlterSource)
    return str(plan_alter_source(statement, catalog).schema)


def test_columns_are_added(catalog: Catalog):
    assert altered(catalog, "ALTER TABLE t ADD COLUMN more BIGINT, ADD also STRING;").endswith(
        "`FK` BIGINT, `MORE` BIGINT, `ALSO` STRING"
    )


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("ALTER STREAM x ADD a INT;", "Source X does not exist."),
        ("ALTER STREAM t ADD a INT;", "Incompatible data source type is TABLE"),
        ("ALTER TABLE t ADD title INT;", "Cannot add column `TITLE` to schema."),
        ("ALTER TABLE t ADD rowtime INT;", "'ROWTIME' is a reserved column name."),
        ("ALTER STREAM c ADD a INT;", "not supported for CREATE ... AS statements."),
        ("ALTER STREAM r ADD a INT;", "ALTER operations are not supported on source streams."),
        (
            "ALTER STREAM d ADD a ARRAY<INT>;",
            "The 'DELIMITED' format does not support type 'ARRAY'",
        ),
    ],
)
def test_what_cannot_be_altered(catalog: Catalog, sql: str, message: str):
    catalog.run(
        "CREATE STREAM c AS SELECT id, name FROM s;"
        f"CREATE SOURCE STREAM r (v INT) WITH ({JSON});"
        "CREATE STREAM d (v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='DELIMITED');"
    )
    with pytest.raises(StatementError) as caught:
        altered(catalog, sql)
    assert message in caught.value.message


def test_positions_of_keys_are_kept():
    catalog = Catalog()
    catalog.run(f"CREATE STREAM s (a INT, k BIGINT KEY, b INT) WITH ({JSON});")
    assert [c.name for c in catalog.known["S"].schema] == ["A", "K", "B"]
    assert catalog.known["S"].schema.key[0].type == BIGINT
