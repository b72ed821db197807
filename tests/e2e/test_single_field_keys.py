"""KLIP-3 for keys: a wrapped single key on every way through Kafka and Spark, by its bytes.

Left sources have wrapped keys, those that they are joined with have bare ones: what a query writes
is what its left source says. In two joins it is the other way round.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pytest
from single_fields import Field, Records, Written, written

pytestmark = pytest.mark.heavy

FORMATS = ("JSON", "AVRO")
MINUTE = 60_000
START = 10 * MINUTE
LEFT = {1: (10, 1), 2: (20, 1)}
RIGHT = {1: (100, 5), 3: (300, 5)}


@dataclass(frozen=True)
class Window:
    """What follows the key in the record's key."""

    key: Written
    end: bytes


def key(format_: str, name: str, number: int, wrap: bool = True, type_: str = "INT") -> Written:
    return written(format_, [Field(name, type_, number)], wrap)


def declared(records: Records, format_: str, name: str, wrap: bool, rows, columns: str) -> None:
    """A stream and a table over a topic whose records come from elsewhere."""
    first, second = columns.split()
    pairs = [
        ([Field("K", "INT", k)], [Field(first, "INT", a), Field(second, "INT", b)])
        for k, (a, b) in rows.items()
    ]
    key_of = records.encoder(format_, f"{name}-key", pairs[0][0], wrap)
    value_of = records.encoder(format_, f"{name}-value", pairs[0][1], wrap)
    records.scene.topic(name)
    at = START + (0 if wrap else -MINUTE)
    records.write(name, *((key_of(k), value_of(v)) for k, v in pairs), at=at)
    for kind, word, end in (("STREAM", "KEY", ""), ("TABLE", "PRIMARY KEY", "_TABLE")):
        records.scene.sql(
            f"CREATE {kind} {name}{end} (K INT {word}, {first} INT, {second} INT) WITH "
            f"(KAFKA_TOPIC='{name}', FORMAT='{format_}', WRAP_SINGLE_KEYS={wrap});"
        )


# ------------------------------------------------------------------------------------- queries

WINDOWS = {
    "TUMBLED": "TUMBLING (SIZE 1 MINUTE)",
    "HOPPED": "HOPPING (SIZE 1 MINUTE, ADVANCE BY 1 MINUTE)",
    "SESSIONS": "SESSION (30 SECONDS)",
}
WINDOWED = {"JSON": ("TUMBLED", "SESSIONS"), "AVRO": ("HOPPED", "SESSIONS")}


def queries(f: str) -> dict[str, tuple[str, list[Written]]]:
    """Statements that need no other source, by the sink's name, with the keys that they write."""
    left = f"KEYED_{f}"
    both = [key(f, "K", 1), key(f, "K", 2)]
    made = {
        "COPIED": (f"CREATE STREAM {{}} AS SELECT K, A, B FROM {left}", both),
        "BARED": (
            f"CREATE STREAM {{}} WITH (WRAP_SINGLE_KEYS=false) AS SELECT K, A, B FROM {left}",
            [key(f, "K", 1, False), key(f, "K", 2, False)],
        ),
        "PARTED": (
            f"CREATE STREAM {{}} AS SELECT A, B, K FROM {left} PARTITION BY A",
            [key(f, "A", 10), key(f, "A", 20)],
        ),
        "GROUPED": (
            f"CREATE TABLE {{}} AS SELECT B, COUNT(*) AS N FROM {left} GROUP BY B",
            [key(f, "B", 1)],
        ),
        "REGROUPED": (
            f"CREATE TABLE {{}} AS SELECT B, COUNT(*) AS N FROM {left}_TABLE GROUP BY B",
            [key(f, "B", 1)],
        ),
        "TABLED": (f"CREATE TABLE {{}} AS SELECT K, A, B FROM {left}_TABLE", both),
    }
    for name in WINDOWED[f]:
        window = WINDOWS[name]
        made[name] = (
            f"CREATE TABLE {{}} AS SELECT K, COUNT(*) AS N FROM {left} WINDOW {window} GROUP BY K",
            [Window(k, window_end(name, at)) for at, k in enumerate(both)],
        )
    return {name: (text.format(f"{f}_{name}") + ";", keys) for name, (text, keys) in made.items()}


def window_end(name: str, at: int) -> bytes:
    """After the key comes the window's start; of a session its end and its start."""
    if name != "SESSIONS":
        return struct.pack(">q", START)
    moment = START + 1000 * at
    return struct.pack(">qq", moment, moment)


# Kind of the left source, type of the join, kind of the right one, the condition; keys.
STREAMS = ("", "{} JOIN", "", "WITHIN 5 MINUTES ON L.K = R.K")
STREAM_TABLE = ("", "{} JOIN", "_TABLE", "ON L.K = R.K")
TABLES = ("_TABLE", "{} JOIN", "_TABLE", "ON L.K = R.K")
FOREIGN = ("_TABLE", "{} JOIN", "_TABLE", "ON L.B = R.K")
JOINS = [
    (STREAMS, "INNER", "JSON", "L.K", [1]),
    (STREAMS, "INNER", "AVRO", "L.K", [1]),
    (STREAMS, "LEFT", "JSON", "L.K", [1, 2]),
    (STREAMS, "RIGHT", "AVRO", "R.K", [1, 3]),
    (STREAMS, "FULL", "JSON", "ROWKEY", [1, 2, 3]),
    (STREAM_TABLE, "INNER", "AVRO", "L.K", [1]),
    (STREAM_TABLE, "LEFT", "JSON", "L.K", [1, 2]),
    (TABLES, "INNER", "JSON", "L.K", [1]),
    (TABLES, "LEFT", "AVRO", "L.K", [1, 2]),
    (TABLES, "RIGHT", "JSON", "R.K", [1, 3]),
    (TABLES, "RIGHT", "AVRO", "R.K", [1, 3]),
    (TABLES, "FULL", "AVRO", "ROWKEY", [1, 2, 3]),
    (FOREIGN, "INNER", "JSON", "L.K", [1, 2]),
    (FOREIGN, "INNER", "AVRO", "L.K", [1, 2]),
    (FOREIGN, "LEFT", "AVRO", "L.K", [1, 2]),
]
# The same with the sources exchanged: bare on the left, wrapped on the right.
EXCHANGED = [(STREAMS, "INNER", "AVRO", "L.K", [1]), (TABLES, "RIGHT", "JSON", "R.K", [1, 2])]


def joins() -> dict[str, tuple[str, str, list[Written]]]:
    made = {}
    for wrap, chosen in ((True, JOINS), (False, EXCHANGED)):
        for at, ((left, join, right, on), type_, f, column, numbers) in enumerate(chosen):
            sources = (f"KEYED_{f}{left} L", f"OTHER_{f}{right} R", "A", "C")
            if not wrap:
                sources = (f"OTHER_{f}{left} L", f"KEYED_{f}{right} R", "C", "A")
            name = f"{f}_JOINED_{at}_{wrap}".upper()
            kind = "TABLE" if left else "STREAM"
            made[name] = (
                f"CREATE {kind} {name} AS SELECT {column} AS K, L.{sources[2]}, R.{sources[3]} "
                f"FROM {sources[0]} {join.format(type_)} {sources[1]} {on};",
                f,
                [key(f, "K", n, wrap) for n in numbers],
            )
    return made


# ------------------------------------------------------------------------------------ the scene


@pytest.fixture(scope="module")
def sources(records: Records) -> None:
    for f in FORMATS:
        declared(records, f, f"KEYED_{f}", True, LEFT, "A B")
        declared(records, f, f"OTHER_{f}", False, RIGHT, "C D")


@pytest.fixture(scope="module")
def sinks(records: Records, sources):
    """All queries but the joins, running: a group of them at once is faster than each alone."""
    ids = []
    for f in FORMATS:
        records.scene.sql(
            f"CREATE STREAM {f}_INTO (K INT KEY, C INT, D INT) WITH (KAFKA_TOPIC='{f}_INTO', "
            f"PARTITIONS=1, FORMAT='{f}', WRAP_SINGLE_KEYS=true);"
        )
        texts = [text for text, _ in queries(f).values()]
        texts.append(f"INSERT INTO {f}_INTO SELECT K, C, D FROM OTHER_{f};")
        ids += [records.scene.create(text) for text in texts]
    yield
    records.scene.sql("".join(f"TERMINATE {id_};" for id_ in ids))


def keys_seen(records: Records, f: str, topic: str, wanted: list[Written], window: int = 0):
    """The different keys of a topic, once there are as many as wanted."""

    def part(data: bytes) -> Written | Window:
        if not window:
            return records.seen(f, data)
        return Window(records.seen(f, data[:-window]), data[-window:])

    def look() -> list[Written | Window]:
        found = {r.key for r in records.now(topic)}
        return sorted(map(part, found), key=repr)

    return records.scene.wait(look, lambda seen: len(seen) >= len(wanted))


@pytest.mark.parametrize("f", FORMATS)
def test_queries_write_the_keys_of_their_source(records: Records, sinks, f: str):
    for name, (text, keys) in queries(f).items():
        window = len(keys[0].end) if isinstance(keys[0], Window) else 0
        seen = keys_seen(records, f, f"{f}_{name}", keys, window)
        assert seen == sorted(keys, key=repr), text


def test_joins_write_the_keys_of_their_left_source(records: Records, sources):
    made = joins()
    ids = [records.scene.create(text) for text, _, _ in made.values()]
    for name, (text, f, keys) in made.items():
        assert keys_seen(records, f, name, keys) == sorted(keys, key=repr), text
    records.scene.sql("".join(f"TERMINATE {id_};" for id_ in ids))


@pytest.mark.parametrize("f", FORMATS)
def test_inserts_write_the_keys_of_their_sink(records: Records, sinks, f: str):
    scene = records.scene
    scene.sql(f"INSERT INTO {f}_INTO (K, C, D) VALUES (7, 8, 9);")
    scene.client.insert(f"{f}_INTO", {"K": 8, "C": 8, "D": 9})
    wanted = [key(f, "K", n) for n in (1, 3, 7, 8)]
    assert keys_seen(records, f, f"{f}_INTO", wanted) == sorted(wanted, key=repr)


# ----------------------------------------------------------------------------- reading them back


@pytest.mark.parametrize("f", FORMATS)
def test_rows_are_found_by_their_wrapped_keys(records: Records, sinks, f: str):
    scene = records.scene

    def pulled(text: str, wanted: list[tuple[object, ...]]) -> None:
        scene.wait(lambda: sorted(scene.pull(text)), lambda rows: rows == wanted)

    pulled(f"SELECT * FROM {f}_TABLED WHERE K = 2;", [(2, 20, 1)])
    pulled(f"SELECT * FROM {f}_TABLED WHERE K IN (1, 2, 3);", [(1, 10, 1), (2, 20, 1)])
    pulled(f"SELECT * FROM {f}_GROUPED WHERE B = 1;", [(1, 2)])
    pulled(f"SELECT K, A FROM {f}_COPIED WHERE K = 1;", [(1, 10)])
    for name in WINDOWED[f]:
        begin = START + (1000 if name == "SESSIONS" else 0)
        columns = f"SELECT K, WINDOWSTART, N FROM {f}_{name}"
        pulled(f"{columns} WHERE K = 2;", [(2, begin, 1)])
        pulled(f"{columns} WHERE K = 2 AND WINDOWSTART = {begin};", [(2, begin, 1)])
        pulled(f"{columns} WHERE K = 2 AND WINDOWSTART > {begin};", [])


@pytest.mark.parametrize(
    ("f", "topic", "format_", "shown"),
    [
        ("JSON", "JSON_COPIED", "JSON", '{"K":1}'),
        ("AVRO", "AVRO_COPIED", "AVRO", '{"K": 1}'),
        ("JSON", "JSON_TUMBLED", "TUMBLING(JSON)", f'[{{"K":1}}@{START}/-]'),
        ("AVRO", "AVRO_SESSIONS", "SESSION(AVRO)", f'[{{"K": 1}}@{START}/{START}]'),
    ],
)
def test_print_shows_wrapped_keys(records: Records, sinks, f, topic, format_, shown):
    wanted = queries(f)[topic.removeprefix(f"{f}_")][1]
    keys_seen(records, f, topic, wanted, len(getattr(wanted[0], "end", b"")))
    with records.scene.client.print_topic(f"PRINT '{topic}' FROM BEGINNING LIMIT 2;") as printed:
        lines = list(printed)
    (formats,) = (line for line in lines if line.startswith("Key format: "))
    assert format_ in formats.removeprefix("Key format: ").split(" or ")
    assert any(f"key: {shown}, value: " in line for line in lines), lines


@pytest.mark.parametrize("said", ["", ", WRAP_SINGLE_KEYS=true"], ids=["inferred", "said"])
@pytest.mark.parametrize(
    ("name", "column", "keys"),
    [("COPIED", "K", {1, 2}), ("PARTED", "A", {10, 20}), ("INTO", "K", {1, 3})],
)
def test_the_registered_key_is_a_record_and_is_read_back(
    records: Records, sinks, name: str, column: str, keys: set[int], said: str
):
    scene, topic, back = records.scene, f"AVRO_{name}", f"BACK_{name}_{bool(said)}".upper()
    schema = records.registered(f"{topic}-key")
    assert schema["type"] == "record"
    assert [(f["name"], f["type"]) for f in schema["fields"]] == [(column, ["null", "int"])]
    scene.sql(f"CREATE STREAM {back} WITH (KAFKA_TOPIC='{topic}', FORMAT='AVRO'{said});")
    fields = scene.client.describe(back)["fields"]
    assert [f["name"] for f in fields if f.get("type") == "KEY"] == [column]
    read = f"SELECT {column} FROM {back};"
    scene.wait(lambda: scene.pull(read), lambda rows: keys <= {row[0] for row in rows})
