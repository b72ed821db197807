"""Single fields (KLIP-3), bare or in a record: the proposal's examples, types, nulls and settings.

All on Kafka and Spark, judged by the bytes in the topics.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass

import pytest
from single_fields import Avro, Field, Records, Written, avro_number, plain, written

from scene import Scene

pytestmark = pytest.mark.heavy

FORMATS = ("JSON", "AVRO")


def started(scene: Scene, statements: Iterable[str]) -> list[str]:
    return [scene.create(statement) for statement in statements]


def terminate(scene: Scene, query_ids: Iterable[str]) -> None:
    scene.sql("".join(f"TERMINATE {query_id};" for query_id in query_ids))


# -------------------------------------------------------------------------- the examples A to I

# As the proposal has them. `...` stands for topic and format; G's comma after ID is a slip of the
# pen, and left out.
SOURCES = """
    CREATE STREAM EXPLICIT_SOURCE (ID INT) WITH (WRAP_SINGLE_VALUES=true, ...);
    CREATE STREAM IMPLICIT_SOURCE (ID INT) WITH (...);
    CREATE STREAM MULTI_FIELD_SOURCE (ID INT, NAME STRING) WITH (WRAP_SINGLE_VALUES=false, ...);
"""
ID, NAME = Field("ID", "INT", 10), Field("NAME", "STRING", "bob")


@dataclass(frozen=True)
class Example:
    statement: str
    fields: tuple[Field, ...]
    wrapped: bool  # so it is serialized
    downstream: bool  # so are single fields of queries on it


EXAMPLES = {
    "A": Example("CREATE STREAM A AS SELECT ID FROM EXPLICIT_SOURCE;", (ID,), True, True),
    "B": Example(
        "CREATE STREAM B WITH(WRAP_SINGLE_VALUES=false) AS SELECT ID FROM EXPLICIT_SOURCE;",
        (ID,),
        False,
        False,
    ),
    "C": Example("CREATE STREAM C AS SELECT ID FROM IMPLICIT_SOURCE;", (ID,), False, False),
    "D": Example(
        "CREATE STREAM D WITH(WRAP_SINGLE_VALUES=true) AS SELECT ID FROM IMPLICIT_SOURCE;",
        (ID,),
        True,
        True,
    ),
    "E": Example(
        "CREATE STREAM E AS SELECT ID, NAME FROM MULTI_FIELD_SOURCE;", (ID, NAME), True, False
    ),
    "F": Example(
        "CREATE STREAM F WITH(WRAP_SINGLE_VALUES=true) AS SELECT ID, NAME FROM MULTI_FIELD_SOURCE;",
        (ID, NAME),
        True,
        True,
    ),
    "G": Example("CREATE STREAM G AS SELECT ID FROM MULTI_FIELD_SOURCE;", (ID,), False, False),
    "H": Example(
        "CREATE STREAM H WITH(WRAP_SINGLE_VALUES=true) AS SELECT ID FROM MULTI_FIELD_SOURCE;",
        (ID,),
        True,
        True,
    ),
    # The joined column is the key by now, so that the value has a single field: "if it had only
    # one field it would NOT be wrapped, as the left source is not wrapped".
    "I": Example(
        "CREATE STREAM I AS SELECT I.ID, M.NAME FROM IMPLICIT_SOURCE I JOIN MULTI_FIELD_SOURCE M "
        "ON I.ID = M.ID WITHIN 1 SECOND;",
        (NAME,),
        False,
        False,
    ),
    # With the fields of the proposal's time in its value, it is a record.
    "I_OF_BOTH": Example(
        "CREATE STREAM I_OF_BOTH AS SELECT I.ID AS K, AS_VALUE(I.ID) AS ID, M.NAME AS NAME "
        "FROM IMPLICIT_SOURCE I JOIN MULTI_FIELD_SOURCE M ON I.ID = M.ID WITHIN 1 SECOND;",
        (ID, NAME),
        True,
        False,
    ),
}


@pytest.mark.parametrize("format_", FORMATS)
def test_the_examples_of_the_proposal(records: Records, format_: str):
    scene = records.scene
    forms = {"EXPLICIT_SOURCE": ((ID,), True), "IMPLICIT_SOURCE": ((ID,), False)}
    forms["MULTI_FIELD_SOURCE"] = ((ID, NAME), False)
    for (name, (fields, wrap)), text in zip(forms.items(), SOURCES.split(";"), strict=False):
        topic = scene.topic(f"{name}_{format_}")
        records.write(
            topic, (None, records.encoder(format_, f"{topic}-value", fields, wrap)(fields))
        )
        said = f"KAFKA_TOPIC='{topic}', VALUE_FORMAT='{format_}'"
        scene.sql(text.replace("...", said) + ";")
    ids = started(scene, (example.statement for example in EXAMPLES.values()))
    ids += started(
        scene,
        (
            f"CREATE STREAM BELOW_{name} AS SELECT {'*' if name == 'I' else 'ID'} FROM {name};"
            for name in EXAMPLES
            if name != "I_OF_BOTH"
        ),
    )
    for name, example in EXAMPLES.items():
        (value,) = (r.value for r in scene.records(name, 1))
        assert records.seen(format_, value) == written(format_, example.fields, example.wrapped), (
            name
        )
        if name == "I_OF_BOTH":
            continue
        (value,) = (r.value for r in scene.records(f"BELOW_{name}", 1))
        below = example.fields[:1]
        assert records.seen(format_, value) == written(format_, below, example.downstream), name
    terminate(scene, ids)
    below = [f"DROP STREAM BELOW_{name} DELETE TOPIC;" for name in EXAMPLES if name != "I_OF_BOTH"]
    drops = [*below, *(f"DROP STREAM {name} DELETE TOPIC;" for name in EXAMPLES)]
    scene.sql("".join([*drops, *(f"DROP STREAM {name};" for name in forms)]))


# ------------------------------------------------------------------- every type, read and written


@dataclass(frozen=True)
class Bare:
    """A bare value in both formats. What another program writes in Avro may have another schema."""

    type: str
    json: str
    schema: object
    payload: bytes
    elsewhere: object = None
    elsewhere_payload: bytes = b""


def nullable(type_: object) -> list[object]:
    return ["null", type_]


def optional(**types: object) -> list[dict[str, object]]:
    return [{"name": n, "type": nullable(t), "default": None} for n, t in types.items()]


def avro_text(value: str) -> bytes:
    return avro_number(len(value.encode())) + value.encode()


ONE = avro_number(1)  # of a union: not null; of a block: one item
END = avro_number(0)  # of an array or a map
PAIR = {"type": "record", "name": "Pair", "fields": optional(A="int", B="string")}
ENTRY = {"type": "record", "name": "Entry", "fields": optional(key="string", value="int")}
TYPES = {
    "BOOLEAN": Bare("BOOLEAN", "true", "boolean", b"\1"),
    "INT": Bare("INT", "-10", "int", avro_number(-10)),
    "BIGINT": Bare("BIGINT", "1099511627776", "long", avro_number(1 << 40)),
    "DOUBLE": Bare("DOUBLE", "1.5", "double", struct.pack("<d", 1.5)),
    "DECIMAL": Bare(
        "DECIMAL(6, 2)",
        "12.50",
        {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        avro_number(2) + (1250).to_bytes(2, "big"),
    ),
    "STRING": Bare("STRING", '"Zoë \\"q\\""', "string", avro_text('Zoë "q"')),
    "BYTES": Bare("BYTES", '"Af8="', "bytes", avro_number(2) + b"\x01\xff"),
    "DATE": Bare("DATE", "19723", {"type": "int", "logicalType": "date"}, avro_number(19723)),
    "TIME": Bare(
        "TIME", "3600001", {"type": "int", "logicalType": "time-millis"}, avro_number(3600001)
    ),
    "TIMESTAMP": Bare(
        "TIMESTAMP",
        "1700000000123",
        {"type": "long", "logicalType": "timestamp-millis"},
        avro_number(1700000000123),
    ),
    "ARRAY": Bare(
        "ARRAY<INT>",
        "[1,null,3]",
        {"type": "array", "items": nullable("int")},
        avro_number(3) + ONE + avro_number(1) + END + ONE + avro_number(3) + END,
    ),
    # As Connect writes maps whose keys may be null; Avro's own maps are read as well.
    "MAP": Bare(
        "MAP<STRING, INT>",
        '{"a":7}',
        {"type": "array", "items": ENTRY},
        ONE + ONE + avro_text("a") + ONE + avro_number(7) + END,
        {"type": "map", "values": nullable("int")},
        ONE + avro_text("a") + ONE + avro_number(7) + END,
    ),
    "STRUCT": Bare(
        "STRUCT<A INT, B STRING>",
        '{"A":1,"B":"x"}',
        PAIR,
        ONE + avro_number(1) + ONE + avro_text("x"),
    ),
    "NESTED": Bare(
        "ARRAY<STRUCT<A INT, B STRING>>",
        '[{"A":1,"B":null}]',
        {"type": "array", "items": nullable(PAIR)},
        ONE + ONE + ONE + avro_number(1) + END + END,
    ),
}


def test_every_type_as_a_bare_key_and_value(records: Records):
    """What comes as JSON leaves as Avro and the other way round: both are read and written."""
    scene = records.scene
    queries = []
    for (name, bare), (read, write) in ((t, w) for t in TYPES.items() for w in WAYS):
        topic = scene.topic(f"TYPE_{name}_{read}")
        value = bare.json.encode()
        if read == "AVRO":
            schema, payload = bare.elsewhere or bare.schema, bare.elsewhere_payload or bare.payload
            value = records.register(f"{topic}-value", schema) + payload
            if has_key(name):
                assert records.register(f"{topic}-key", schema) == value[:5]
        records.write(topic, (value if has_key(name) else None, value))
        key = f"K {bare.type} KEY, " if has_key(name) else ""
        form = "FORMAT" if has_key(name) else "VALUE_FORMAT"
        scene.sql(
            f"CREATE STREAM {topic} ({key}V {bare.type}) WITH (KAFKA_TOPIC='{topic}', "
            f"{form}='{read}');"
        )
        queries.append(
            f"CREATE STREAM {topic}_{write} WITH ({form}='{write}') AS SELECT * FROM {topic};"
        )
    ids = started(scene, queries)
    wrong = []
    for (name, bare), (read, write) in ((t, w) for t in TYPES.items() for w in WAYS):
        expected: Written = bare.json.encode()
        if write == "AVRO":
            expected = Avro(plain(bare.schema), bare.payload)
        (found,) = records.read(f"TYPE_{name}_{read}_{write}", 1, write, write)
        if found != (expected if has_key(name) else None, expected):
            wrong.append((name, read, write, found, expected))
    assert not wrong
    terminate(scene, ids)


WAYS = (("JSON", "AVRO"), ("AVRO", "JSON"))


def has_key(name: str) -> bool:
    return name != "MAP"  # no map is a key


# -------------------------------------------------------------- what is bare is not guessed


def test_the_form_is_what_the_source_says_and_not_what_the_data_look_like(records: Records):
    """The proposal rejects deserializers that tell the form from each record."""
    scene = records.scene
    both = ((None, b"10"), (None, b'{"ID":11}'))
    queries = {}
    for wrap, good in ((True, 11), (False, 10)):
        name = f"SAID_{wrap}".upper()
        records.write(scene.topic(name), *both)
        scene.sql(
            f"CREATE STREAM {name} (ID INT) WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON', "
            f"WRAP_SINGLE_VALUES={wrap});"
        )
        queries[scene.create(f"CREATE STREAM {name}_OUT AS SELECT ID FROM {name};")] = name
        expected = written("JSON", [Field("ID", "INT", good)], wrap)
        assert [r.value for r in scene.records(f"{name}_OUT", 1)] == [expected]
    for query_id in queries:
        (entry,) = scene.log(query_id, 1)
        assert "deserialization" in entry.logger or "errorMessage" in entry.detail
    terminate(scene, queries)


# ---------------------------------------------------------------------- null beside tombstone


def bare_nulls(records: Records, topic: str, format_: str) -> None:
    """10 for key 1; a null for key 2; 30 and then no value at all for key 3."""
    if format_ == "JSON":
        values = [b"10", b"null", b"30"]
    else:
        head = records.register(f"{topic}-value", ["null", "int"])
        values = [head + ONE + avro_number(10), head + avro_number(0), head + ONE + avro_number(30)]
    pairs = list(zip((b"1", b"2", b"3"), [*values], strict=True))
    records.write(topic, *pairs, (b"3", None))


def final(records: Records, topic: str, format_: str = "JSON") -> dict[bytes | None, Written]:
    """The table that a topic's records make: the last value of each key, if there is one."""
    rows = {r.key: records.seen(format_, r.value) for r in records.now(topic)}
    return {k: v for k, v in rows.items() if v is not None}


@pytest.mark.parametrize("format_", FORMATS)
def test_a_bare_null_is_not_a_tombstone(records: Records, format_: str):
    scene = records.scene
    topic = scene.topic(f"NULLS_{format_}")
    bare_nulls(records, topic, format_)
    said = f"KAFKA_TOPIC='{topic}', KEY_FORMAT='JSON', VALUE_FORMAT='{format_}'"
    scene.sql(
        f"""
        CREATE STREAM {topic} (K INT KEY, V INT) WITH ({said});
        CREATE TABLE {topic}_T (K INT PRIMARY KEY, V INT) WITH ({said});
        CREATE SOURCE TABLE {topic}_HELD (K INT PRIMARY KEY, V INT) WITH ({said});
        """
    )
    json_value = "VALUE_FORMAT='JSON'"
    ids = started(
        scene,
        (
            f"CREATE STREAM {topic}_SAME AS SELECT K, V FROM {topic};",
            f"CREATE STREAM {topic}_FULL WITH ({json_value}) AS "
            f"SELECT K, COALESCE(V, -1) AS W FROM {topic};",
            f"CREATE STREAM {topic}_BOXED WITH ({json_value}, WRAP_SINGLE_VALUES=true) AS "
            f"SELECT K, V FROM {topic};",
            f"CREATE TABLE {topic}_FULL_T WITH ({json_value}) AS "
            f"SELECT K, COALESCE(V, -1) AS W FROM {topic}_T;",
            f"CREATE TABLE {topic}_SAME_T WITH ({json_value}) AS SELECT K, V FROM {topic}_T;",
            f"CREATE TABLE {topic}_BOXED_T WITH ({json_value}, WRAP_SINGLE_VALUES=true) AS "
            f"SELECT K, V FROM {topic}_T;",
            f"CREATE TABLE {topic}_COUNTED WITH ({json_value}) AS "
            f"SELECT K, COUNT(*) AS N, COUNT(V) AS M FROM {topic} GROUP BY K;",
            f"CREATE TABLE {topic}_MOST WITH ({json_value}) AS "
            f"SELECT K, MAX(V) AS M FROM {topic} GROUP BY K;",
            f"CREATE TABLE {topic}_MOST_BOXED WITH ({json_value}, WRAP_SINGLE_VALUES=true) AS "
            f"SELECT K, MAX(V) AS M FROM {topic} GROUP BY K;",
            f"CREATE TABLE {topic}_RECOUNTED WITH ({json_value}) AS "
            f"SELECT COALESCE(V, -1) AS G, COUNT(*) AS N FROM {topic}_T GROUP BY COALESCE(V, -1);",
        ),
    )

    def values(name: str, form: str = "JSON") -> list[Written]:
        return [records.seen(form, r.value) for r in scene.records(f"{topic}_{name}", 4)]

    def table(name: str, wanted: dict[bytes, bytes]) -> None:
        scene.wait(lambda: final(records, f"{topic}_{name}"), lambda rows: rows == wanted)

    # In streams. A null that is written bare is no value; in a record it is a null field.
    ten, thirty = (written(format_, [Field("V", "INT", n)], False) for n in (10, 30))
    assert values("SAME", format_) == [ten, None, thirty, None]
    assert values("FULL") == [b"10", b"-1", b"30", None]
    assert values("BOXED") == [b'{"V":10}', b'{"V":null}', b'{"V":30}', None]
    # In tables. A tombstone deletes a row, a null does not, unless it is written bare.
    table("FULL_T", {b"1": b"10", b"2": b"-1"})
    table("SAME_T", {b"1": b"10"})
    table("BOXED_T", {b"1": b'{"V":10}', b"2": b'{"V":null}'})
    assert sorted(scene.pull(f"SELECT K, V FROM {topic}_HELD;")) == [(1, 10), (2, None)]
    # In aggregates. A tombstone of a stream counts for nothing.
    one, none = b'{"N":1,"M":1}', b'{"N":1,"M":0}'
    table("COUNTED", {b"1": one, b"2": none, b"3": one})
    table("MOST", {b"1": b"10", b"3": b"30"})
    table("MOST_BOXED", {b"1": b'{"M":10}', b"2": b'{"M":null}', b"3": b'{"M":30}'})
    scene.wait(
        lambda: {k: v for k, v in final(records, f"{topic}_RECOUNTED").items() if v != b"0"},
        lambda rows: rows == {b"10": b"1", b"-1": b"1"},
    )
    terminate(scene, ids)


# ------------------------------------------------------------------- SET and UNSET, everywhere

VALUES, KEYS = "ksql.persistence.wrap.single.values", "ksql.persistence.wrap.single.keys"


def create(name: str) -> str:
    return (
        f"CREATE STREAM {name} (K INT KEY, V INT) WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, "
        f"FORMAT='JSON'); INSERT INTO {name} (K, V) VALUES (1, 2);"
    )


def pair(scene: Scene, topic: str) -> tuple[bytes | None, bytes | None]:
    (found,) = scene.records(topic, 1)
    return found.key, found.value


BARE, BOXED = (b"1", b"2"), (b'{"K":1}', b'{"V":2}')


def test_set_and_unset_through_the_shell(scene: Scene, tmp_path):
    from terminal import PROMPT, Terminal

    shell = Terminal(scene.url, tmp_path, columns=160)
    try:
        shell.expect_raw(PROMPT, 0, 60)

        def enter(text: str) -> str:
            return "".join(shell.answer(part + ";") for part in text.split(";") if part.strip())

        enter(create("SHELL_0"))
        assert "changed local property" in enter(f"SET '{VALUES}'='true';")
        enter(create("SHELL_1"))
        enter(f"SET '{KEYS}'='true';")
        enter(create("SHELL_2"))
        assert "unset local property" in enter(f"UNSET '{VALUES}';")
        enter(create("SHELL_3"))
        enter(f"UNSET '{KEYS}'; SET 'auto.offset.reset'='earliest';")
        enter(create("SHELL_4"))
        # The setting is for sources over topics: queries take over what their source says.
        enter("CREATE STREAM SHELL_2_NEXT AS SELECT K, V FROM SHELL_2;")
        enter(f"SET '{VALUES}'='true'; CREATE STREAM SHELL_4_NEXT AS SELECT K, V FROM SHELL_4;")
    finally:
        shell.close()
    found = {i: pair(scene, f"SHELL_{i}") for i in range(5)}
    assert found == {
        0: BARE,
        1: (BARE[0], BOXED[1]),
        2: BOXED,
        3: (BOXED[0], BARE[1]),
        4: BARE,
    }
    assert pair(scene, "SHELL_2_NEXT") == BOXED
    assert pair(scene, "SHELL_4_NEXT") == BARE


def test_set_and_unset_through_the_rest_api(scene: Scene):
    scene.sql(
        f"{create('REST_0')} SET '{VALUES}'='true'; SET '{KEYS}'='true'; {create('REST_1')}"
        f"UNSET '{KEYS}'; {create('REST_2')} UNSET '{VALUES}'; {create('REST_3')}"
    )
    scene.sql(create("REST_4"))  # what a request sets ends with it
    named = {
        "ksql__persistence__wrap__single__values": "true",
        "ksql__persistence__wrap__single__keys": True,
    }
    scene.sql(create("REST_5"), **named)
    assert {i: pair(scene, f"REST_{i}") for i in range(6)} == {
        0: BARE,
        1: BOXED,
        2: (BARE[0], BOXED[1]),
        3: BARE,
        4: BARE,
        5: BOXED,
    }
    told = scene.refused(create("REST_6"), ksql__persistence__wrap__single__values="perhaps")
    assert VALUES in told, told


def test_the_settings_are_listed_with_their_values(scene: Scene):
    (listed,) = scene.sql("SHOW PROPERTIES;", ksql__persistence__wrap__single__keys="true")
    found = {p["name"]: p["value"] for p in listed["properties"]}
    assert {name: json.loads(str(found[name]).lower()) for name in (VALUES, KEYS)} == {
        VALUES: False,
        KEYS: True,
    }
