"""Both codecs of each format say the same: of random rows, and of odd or broken records."""

import json
import re
import struct
from dataclasses import replace
from itertools import product

import pytest
from format_samples import Samples, comparable, outcome

from headrace.formats import FORMATS
from headrace.formats.base import Layout, RegistrySchema
from headrace.formats.wire_format import header
from headrace.model.representation import spark_type
from headrace.model.schema import Column
from headrace.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    Struct,
    base_name,
    walk,
)
from headrace.spark.rows.optimistic import require_native

pytestmark = pytest.mark.heavy
ROWS = 40


def spark_encode(spark, format_, layout, rows):
    from pyspark.sql import types as t

    struct = spark_type(layout.struct)
    schema = t.StructType([t.StructField("i", t.IntegerType()), t.StructField("row", struct)])
    frame = spark.createDataFrame([(i, row) for i, row in enumerate(rows)], schema)
    encoded = format_.spark(layout).encode(frame["row"])
    columns = [encoded.value.alias("data")]
    if encoded.error is not None:
        columns.append(encoded.error.alias("error"))
    found = frame.select("i", *columns).collect()
    return [None if r.data is None else bytes(r.data) for r in sorted(found, key=lambda r: r.i)]


def spark_decode(spark, format_, layout, records):
    pairs = [(i, None if r is None else bytearray(r)) for i, r in enumerate(records)]
    frame = spark.createDataFrame(pairs, "i int, data binary")
    decoded = format_.spark(layout).read(frame, "data", "value", "error").collect()
    return [
        (comparable(None if r.value is None else r.value.asDict(recursive=True)), r.error)
        for r in sorted(decoded, key=lambda r: r.i)
    ]


def spark_decode_natively(spark, format_, layout, records):
    """By their place, the records that need no second look."""
    pairs = [(i, None if r is None else bytearray(r)) for i, r in enumerate(records)]
    frame = spark.createDataFrame(pairs, "i int, data binary")
    read = format_.spark(layout).read_natively(frame, "data", "value", "doubt").collect()
    sure = (r for r in read if not r.doubt and r.value is not None)
    return {r.i: comparable(r.value.asDict(recursive=True)) for r in sure}


def check_codecs(spark, format_, layout, samples, respell=None, with_nulls=True):
    """Encodes and decodes with both codecs, also what is odd or broken."""
    python = format_.python(layout)
    nulls = samples.random.choice([0.0, 0.2]) if with_nulls else 0.0
    rows = [samples.row(layout.columns, nulls) for _ in range(ROWS)]
    written = [python.encode(row) for row in rows]
    by_spark = spark_encode(spark, format_, layout, [*rows, None])
    assert by_spark.pop() is None
    # Java before 19 prints some doubles with a digit too many, and maps have no order.
    exact = not any(base_name(t) in ("DOUBLE", "MAP") for t in walk(layout.struct))
    for row, ours, theirs in zip(rows, written, by_spark, strict=True):
        assert outcome(python.decode, ours) == outcome(python.decode, theirs), row
        if exact:
            assert ours == theirs
    records = [*written, None]
    solid = [r for r in written if r]
    records += [samples.damaged(samples.random.choice(solid)) for _ in range(ROWS) if solid]
    if respell is not None:
        records += [respell(samples.random.choice(solid)) for _ in range(ROWS) if solid]
    found = spark_decode(spark, format_, layout, records)
    for record, result in zip(records, found, strict=True):
        assert result == outcome(python.decode, record), record
    for place, row in spark_decode_natively(spark, format_, layout, records).items():
        if records[place] is not None:
            assert (row, None) == outcome(python.decode, records[place]), records[place]
    return rows, written


@pytest.mark.parametrize("seed", range(8))
def test_json(spark, seed):
    samples = Samples(seed)
    layout = Layout(samples.columns(single=seed % 2 == 1), wrapped=seed % 4 != 3, topic="t")
    rows, written = check_codecs(spark, FORMATS["JSON"], layout, samples, samples.respelled_json)
    python = FORMATS["JSON"].python(layout)
    for row, data in zip(rows, written, strict=True):
        if data is not None:
            assert comparable(python.decode(data)) == comparable(row)


BARE_TEXTS = (
    b"0 -0 7 -7 00 01 -01 +1 1. .5 0.5 -0.5 -0.0 1e2 1E+2 1e-7 -0e1 1e400 0x1 1_0 12f 12d 1L NaN "
    b"Infinity -Infinity 2147483647 2147483648 -2147483648 999999999 1234567890 999999999999999999 "
    b"9223372036854775807 9223372036854775808 123456789012345678901234567890 0.1234567890123456789 "
    b'true false TRUE True null NULL nul [1] {} {"a":1} "1" "1.5" "true" "null" "" " x'
).split(b" ")
BARE_TEXTS += [
    *(b" 1", b"1 ", b"1\n", b"true\n", b"null\n", b'"a"\n', b"1 2", b"1,2", b'"a" "b"', b'"a","b"'),
    *(b'"a\\nb"', b'"a\nb"', b'"a\x7fb"', b'"a\x01b"', b'"\\u00e5"', b'"\\"', b'"\\""', b'"a"b"'),
    *('"å𝄞"'.encode(), '"\u2028"'.encode(), b'"\xff"', b"\xff", b"", b'"', b'""', "١".encode()),
]
BARE_VALUES = {
    INTEGER: [0, -7, 2**31 - 1, -(2**31)],
    BIGINT: [0, -7, 2**63 - 1, -(2**63)],
    DOUBLE: [0.0, -0.0, 0.5, 1e10, 1e-5, 1e300, float("inf"), float("-inf"), float("nan")],
    BOOLEAN: [True, False],
    STRING: ["", "a b", 'a"b', "a\\b", "a\nb\x01", "\x7f", "å𝄞\u2028"],
}


WRAPPED_TEXTS = [
    *(b'{"V":%b}' % text for text in BARE_TEXTS),
    *(b'{"v": %b}' % text for text in BARE_TEXTS),
    *(b'{"V":1}x', b'{"V":1}\n', b' {"V":1}', b'{"V" :1}', b'{"V":  1}', b'{"V":\t1}', b'{"V":1 }'),
    *(b'{"V":1,"W":2}', b'{"V":1,"V":2}', b'{"v":1,"V":2}', b'{"V":1,"v":2}', b'{"W":1}', b"{}"),
    *(b'{"V":1', b'"V":1}', b"{V:1}", b"{'V':1}", b'[{"V":1}]', b'{"":1}', b'{"\\u0056":1}'),
    *(b'{"V": "  a  "}', b'{"V":"}"}', b'{"V":"","W":""}', b'{"V":"1.5"}', b'{"v": "{}"}'),
]


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("type_", BARE_VALUES, ids=str)
def test_single_json_values(spark, type_, wrapped):
    layout = Layout((Column("V", type_),), wrapped=wrapped, topic="t")
    texts = WRAPPED_TEXTS if wrapped else BARE_TEXTS
    format_ = FORMATS["JSON"]
    python = format_.python(layout)
    found = spark_decode(spark, format_, layout, texts)
    for text, result in zip(texts, found, strict=True):
        assert result == outcome(python.decode, text), text
    natively = spark_decode_natively(spark, format_, layout, texts)
    for place, row in natively.items():
        assert (row, None) == outcome(python.decode, texts[place]), texts[place]
    assert texts.index(b'{"V":null}' if wrapped else b"null") in natively
    rows = [{"V": value} for value in (*BARE_VALUES[type_], None)]
    assert spark_encode(spark, format_, layout, rows) == [python.encode(row) for row in rows]


FEW_FIELDS = [
    *(
        b'{"N":1,"WORD":"x","F":1.5}',
        b'{"n": -7, "word": "a b", "f": 1e2}',
        b'{"N":0,"WORD":"","F":0}',
    ),
    *(b'{"N":1,"WORD":null,"F":null}', b'{"N":null,"WORD":"x","F":1}', b'{"N":1,"WORD":"N":2"}'),
    *(b'{"N":1,"WORD":"N","F":2}', b'{"N":1,"WORD":":","F":2}', b'{"N":1,"WORD":",}","F":2}'),
    *(b'{"n":1,"WORD":"x","F":2}', b'{"n":1,"word":"N","f":2}', b'{"WORD":"x","N":1,"F":2}'),
    *(b'{"N":1,"WORD":"x","F":"2"}', b'{"N":1,"WORD":"x","F":x}', b'{"N":1,"WORD":2,"F":2}'),
    *(b'{"N":1,"WORD":"x","F":2,"G":3}', b'{"N":1,"WORD":"x"}', b'{"N":1,"WORD":"x","F":2'),
    *(
        b'{"N":1,"N":2,"WORD":"x","F":2}',
        b'{"N":1,"WORD":"\xff","F":2}',
        b'{"N":1 ,"WORD":"x","F":2}',
    ),
    *(b'{"N":9999999999999999999,"WORD":"x","F":2}', '{"N":5,"WORD":"å𝄞","F":0.25}'.encode()),
    *(b'{"N":1,"WORD":"\\",\\"N\\":2","F":2}', b'{"N":1,"WORD":"x\\\\","F":2}'),
    *(b'{"N":1.0,"WORD":"1.0","F":2}', b'{"N":true,"WORD":"{}","F":2}', b"{}", b"null", b""),
]


@pytest.mark.parametrize("unread", [(), ("N",), ("WORD",), ("F",), ("WORD", "F"), ("N", "WORD")])
@pytest.mark.parametrize("count", [2, 3])
def test_json_with_few_fields(spark, count, unread):
    columns = (Column("N", BIGINT), Column("WORD", STRING), Column("F", DOUBLE))[:count]
    texts = FEW_FIELDS
    if count == 2:
        texts = [re.sub(rb', ?"[Ff]":[^,}]*', b"", text) for text in texts]
    layout = Layout(columns, topic="t")
    partly = replace(layout, unread=frozenset(unread) & {c.name for c in columns})

    def read(row):
        return row and {name: value for name, value in row.items() if name not in unread}

    found = spark_decode(spark, FORMATS["JSON"], partly, texts)
    natively = spark_decode_natively(spark, FORMATS["JSON"], partly, texts)
    for place, text in enumerate(texts):
        row, error = outcome(FORMATS["JSON"].python(layout).decode, text)
        assert (read(found[place][0]), found[place][1]) == (read(row), error), text
        if place in natively:
            assert (read(natively[place]), None) == (read(row), error), text
    assert 0 in natively


@pytest.mark.parametrize("seed", range(4))
def test_json_that_is_not_read_to_the_last_column(spark, seed):
    """What is read is the same, and so is what is wrong with the rest."""
    samples = Samples(seed)
    texts = tuple(Column(name, STRING) for name in ("NOTE", "WORD"))
    layout = Layout((*texts, *samples.columns(depth=1)), topic="t")
    unread = frozenset(("NOTE", "WORD", layout.columns[-1].name)[seed % 2 :])
    python = FORMATS["JSON"].python(layout)
    records = [python.encode(samples.row(layout.columns, 0.2)) for _ in range(ROWS)]
    records += [samples.damaged(record) for record in records]
    records += [samples.respelled_json(record) for record in records[:ROWS]]
    records += [b'{"WORD":{"a":1},"NOTE":2.50}', b'"WORD"', b"[1]", b"{}", None]
    found = spark_decode(spark, FORMATS["JSON"], replace(layout, unread=unread), records)
    for record, (row, error) in zip(records, found, strict=True):
        expected, reason = outcome(python.decode, record)
        assert error == reason, record
        if expected is not None:
            read = {name for name in expected if name not in unread}
            assert {n: row[n] for n in read} == {n: expected[n] for n in read}, record


ORDINARY = Layout(
    (
        *(Column("ID", BIGINT), Column("NAME", STRING), Column("PAID", BOOLEAN)),
        *(Column("AMOUNT", DOUBLE), Column("PRICE", Decimal(10, 2)), Column("DAY", DATE)),
        *(Column("AT", TIME), Column("SEEN", TIMESTAMP), Column("N", INTEGER)),
        *(
            Column("RAW", BYTES),
            Column("TAGS", Array(STRING)),
            Column("SIZES", Map(STRING, BIGINT)),
        ),
        Column("SHOP", Struct((Field("CITY", STRING), Field("ZIP", INTEGER)))),
    ),
    topic="t",
)
ORDINARY_RECORD = {
    "id": 2**40,
    "name": 'å 1.5 "x"',
    "paid": True,
    "amount": 12,
    "price": 12.5,
    "day": 19000,
    "at": 3_600_000,
    "seen": 1_700_000_000_000,
    "n": -7,
    "raw": "AAEC",
    "tags": ["1.5", None, 3],
    "sizes": {"a": 1, "b": None},
    "shop": {"city": "Rome", "zip": 184},
    "not a column": {"name": [1, {"id": 2}]},
}


@pytest.mark.parametrize("spelling", [str, str.upper, str.title], ids=["lower", "upper", "title"])
def test_ordinary_json_needs_no_second_look(spark, spelling):
    """In whatever case names are written, numbers for texts included."""

    def respelled(value):
        if isinstance(value, dict) and not value.keys() & {"a"}:  # keys of maps stay as they are
            return {spelling(name): respelled(inner) for name, inner in value.items()}
        return value

    whole = respelled(ORDINARY_RECORD)
    texts = [json.dumps(whole, ensure_ascii=escaped).encode() for escaped in (False, True)]
    texts += [json.dumps({name: value}).encode() for name, value in whole.items()]
    texts += [json.dumps({name: None}).encode() for name in whole]
    texts += [json.dumps(whole, indent=2).encode(), b"\xef\xbb\xbf{}", b' {"id":1} and more']
    expected = [outcome(FORMATS["JSON"].python(ORDINARY).decode, text) for text in texts]
    assert {error for _, error in expected} == {None}
    natively = spark_decode_natively(spark, FORMATS["JSON"], ORDINARY, texts)
    assert natively == {place: row for place, (row, _) in enumerate(expected)}


def _nested(depth):
    return b"[" * depth + b"]" * depth


ODD_TEXTS = [
    *(b'{"ID":"1"}', b'{"ID":1.0}', b'{"ID":9223372036854775808}', b'{"N":2147483648}'),
    *(b'{"ID":1,"ID":2}', b'{"ID":null,"id":2}', b'{"Id":1,"ID":null}', b'{"NAME":1.50}'),
    *(b'{"NAME":-0}', b'{"NAME":{"a":1}}', b'{"NAME":[1]}', b'{"PAID":"true"}', b'{"PAID":1}'),
    *(b'{"AMOUNT":"1"}', b'{"AMOUNT":1e999}', b'{"AMOUNT":NaN}', b'{"PRICE":1.005}'),
    *(b'{"PRICE":1e9}', b'{"PRICE":1e999999999}', b'{"PRICE":1e-999999999}', b'{"PRICE":0e99}'),
    *(b'{"AT":86400001}', b'{"AT":-1}', b'{"RAW":"AAE"}', b'{"RAW":"AA E="}', b'{"RAW":"@@@@"}'),
    *(b'{"TAGS":{}}', b'{"SIZES":[]}', b'{"SIZES":{"a":1,"a":2}}', b'{"SIZES":{"a":"x"}}'),
    *(b'{"SHOP":1}', b'{"SHOP":{"ZIP":"1"}}', b'{"SHOP":{"zip":1,"ZIP":2}}', b'{"SHOP":null}'),
    *('{"ID":1}'.encode("utf-16-le"), '{"ID":1}'.encode("utf-16"), b'{"NAME":"\xed\xa0\x80"}'),
    *(b'{"NAME":"\\ud800"}', b'{"NAME":"\\ud834\\udd1e"}', b'{"NAME":"a\x00"}', b'{"NAME":"\t"}'),
    *(b"[" * 50_000, b'{"x":' * 1000, b'{"x":' * 1001, b'{"ID":1,"x":%s}' % _nested(999)),
    *(
        b'{"ID":1,"x":%s}' % _nested(1000),
        b'{"ID":1} %s' % _nested(2000),
        b'{"ID":1}{',
        b'{"ID":01}',
        b'{"ID":1,}',
        b'{"x":tru,"ID":1}',
    ),
    *(b'{"x":"\\q","ID":1}', b'{"ID":' + b"1" * 2000 + b"}", b"{}", b"null", b"1", b"", b"   "),
    *('{"ıd":1}'.encode(), '{"ŞHOP":1}'.encode(), '{"ſhop":{"CITY":"x"}}'.encode()),
]


def test_json_that_is_not_in_its_usual_form(spark):
    expected = [outcome(FORMATS["JSON"].python(ORDINARY).decode, text) for text in ODD_TEXTS]
    assert spark_decode(spark, FORMATS["JSON"], ORDINARY, ODD_TEXTS) == expected
    natively = spark_decode_natively(spark, FORMATS["JSON"], ORDINARY, ODD_TEXTS)
    for place, row in natively.items():
        assert (row, None) == expected[place], ODD_TEXTS[place]


def test_columns_whose_names_differ_only_in_case(spark):
    columns = (Column("NAME", STRING), Column("name", STRING), Column("Name", STRING))
    layout = Layout(columns, topic="t")
    names = ("NAME", "name", "Name", "nAME")
    texts = [
        json.dumps({a: 1, b: None if i % 3 == 0 else 2}).encode()
        for i, (a, b) in enumerate(product(names, names))
    ]
    expected = [outcome(FORMATS["JSON"].python(layout).decode, text) for text in texts]
    assert spark_decode(spark, FORMATS["JSON"], layout, texts) == expected
    natively = spark_decode_natively(spark, FORMATS["JSON"], layout, texts)
    for place, row in natively.items():
        assert (row, None) == expected[place], texts[place]


def test_json_texts_that_nobody_reads_are_not_parsed(spark):
    layout = Layout((Column("N", BIGINT), Column("WORD", STRING)), topic="t")
    frame = spark.createDataFrame([(bytearray(b'{"N":1,"WORD":"x"}'),)], "data binary")

    def parsed(unread):
        codec = FORMATS["JSON"].spark(replace(layout, unread=frozenset(unread)))
        plan = optimized(codec.read_natively(frame, "data", "value", "doubt").select("value.N"))
        return re.search("json STRUCT<(.*?)>", plan)[1]

    assert parsed([]) == "N BIGINT, WORD STRING"
    assert parsed(["N", "WORD"]) == "N BIGINT, WORD UNREAD"  # a number may be wrong


def test_json_is_parsed_once_whatever_is_asked_of_it(spark):
    """Spark would parse for a filter, and again for what passes it."""
    layout = Layout((Column("N", BIGINT), Column("WORD", STRING)), topic="t")
    frame = spark.createDataFrame([(bytearray(b'{"N":1,"WORD":"x"}'),)], "data binary")
    read = FORMATS["JSON"].spark(layout).read_natively(frame, "data", "value", "doubt")
    kept = read.where(require_native(~read["doubt"], read["value.N"] > 0))
    plan = optimized(kept.select("value.N", "value.WORD"))
    assert plan.count(".decode(") == 1


def optimized(frame):
    return frame._jdf.queryExecution().optimizedPlan().toString()


@pytest.mark.parametrize("seed", range(4))
def test_delimited(spark, seed):
    samples = Samples(seed)
    delimiter = ["\t", ",", "|", "E"][seed]
    name = {"\t": "TAB"}.get(delimiter, delimiter)
    layout = Layout(
        samples.columns(depth=0),
        wrapped=False,
        topic="t",
        properties=(("delimiter", name),),
    )
    check_codecs(spark, FORMATS["DELIMITED"], layout, samples)


@pytest.mark.parametrize("type_", [INTEGER, BIGINT, DOUBLE, STRING, BYTES], ids=str)
def test_kafka(spark, type_):
    layout = Layout((Column("K", type_),), wrapped=False, topic="t")
    check_codecs(spark, FORMATS["KAFKA"], layout, Samples(1))


@pytest.mark.parametrize("seed", range(6))
def test_avro(spark, seed):
    samples = Samples(seed)
    layout = Layout(
        samples.columns(single=seed % 2 == 1), wrapped=seed % 4 != 3, topic="t", schema_id=300
    )
    rows, written = check_codecs(spark, FORMATS["AVRO"], layout, samples)
    python = FORMATS["AVRO"].python(layout)
    for row, data in zip(rows, written, strict=True):
        if data is not None:
            assert comparable(python.decode(data)) == comparable(row)


def test_avro_of_several_writers(spark):
    """Each record is read by the schema it bears; what Spark cannot read natively too."""
    columns = (
        Column("A", STRING),
        Column("B", BIGINT),
        Column("C", Decimal(4, 1)),
        Column("D", Map(STRING, DOUBLE)),
    )
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
    writers = {
        1: [("a", "int"), ("b", "int"), ("c", decimal), ("d", {"type": "map", "values": "float"})],
        2: [("A", "double"), ("B", ["long", "null"]), ("x", "string")],
        3: [("B", "string")],
        4: [("A", {"type": "enum", "name": "E", "symbols": ["X", "Y"]})],
    }
    schemas = tuple(
        (
            id_,
            RegistrySchema(
                json.dumps(
                    {
                        "type": "record",
                        "name": "R",
                        "fields": [{"name": n, "type": t} for n, t in fields],
                    }
                ),
                "AVRO",
            ),
        )
        for id_, fields in writers.items()
    )
    layout = Layout(columns, topic="t", writers=schemas)
    half = struct.pack("<f", 0.5)
    records = [
        header(1) + b"\x04\x06\x04\x00\x82" + b"\x02\x02k" + half + b"\x00",
        header(1) + b"\x04\x06\x04\x00\x81" + b"\x00",
        header(1) + b"\x04\x06\x04\x00\x82" + (b"\x04" + (b"\x02k" + half) * 2 + b"\x00"),
        header(2) + struct.pack("<d", 1.5) + b"\x00\x08\x02x",
        header(2) + struct.pack("<d", 1.5) + b"\x02\x02x",
        header(3) + b"\x02x",
        header(4) + b"\x02",
        header(4) + b"\x08",
        header(5) + b"\x08",
        b"\x01\x00\x00\x00\x01",
        b"\x00\x00",
        None,
    ]
    avro = FORMATS["AVRO"]
    expected = [outcome(avro.python(layout).decode, r) for r in records]
    assert [e is None for _, e in expected] == [c == "+" for c in "+-+++-+----+"]
    assert spark_decode(spark, avro, layout, records) == expected


BARE_AVRO = {
    "boolean": (BOOLEAN, b"\x01"),
    "int": (INTEGER, b"\x14"),
    "long": (BIGINT, b"\x14"),
    "double": (DOUBLE, struct.pack("<d", 1.5)),
    "string": (STRING, b"\x02x"),
    "bytes": (BYTES, b"\x02x"),
}


@pytest.mark.parametrize("name", BARE_AVRO)
def test_bare_avro_values_that_may_be_null(spark, name):
    """A null of a union is a null, wherever the union has it; the others need no second look."""
    type_, payload = BARE_AVRO[name]
    unions = {1: ["null", name], 2: [name, "null"]}
    writers = tuple((id_, RegistrySchema(json.dumps(u), "AVRO")) for id_, u in unions.items())
    layout = Layout((Column("V", type_),), wrapped=False, topic="t", writers=writers)
    records = [
        header(1) + b"\x02" + payload,
        header(1) + b"\x00",
        header(2) + b"\x00" + payload,
        header(2) + b"\x02",
        None,
    ]
    avro = FORMATS["AVRO"]
    expected = [outcome(avro.python(layout).decode, r) for r in records]
    nulls = [row is not None and row["V"] is None for row, _ in expected]
    assert nulls == [False, True, False, True, False]
    assert spark_decode(spark, avro, layout, records) == expected
    natively = spark_decode_natively(spark, avro, layout, records)
    assert natively == {i: expected[i][0] for i in (0, 2)}


@pytest.mark.parametrize("seed", range(6))
def test_json_sr(spark, seed):
    samples = Samples(seed)
    layout = Layout(
        samples.columns(single=seed % 2 == 1), wrapped=seed % 4 != 3, topic="t", schema_id=300
    )

    def respell(data: bytes) -> bytes:
        return data[:5] + samples.respelled_json(data[5:])

    rows, written = check_codecs(spark, FORMATS["JSON_SR"], layout, samples, respell)
    python = FORMATS["JSON_SR"].python(layout)
    for row, data in zip(rows, written, strict=True):
        if data is not None:
            assert comparable(python.decode(data)) == comparable(row)


def test_json_sr_of_several_writers(spark):
    """Fields as their writers name them; null where the schema forbids it is an error."""
    columns = (Column("A", BIGINT), Column("B", STRING), Column("C", Array(DOUBLE)))
    number, text = {"type": "integer"}, {"type": "string"}
    numbers = {"type": "array", "items": {"type": "number"}}
    objects = {
        1: {"a": number, "B": text, "c": numbers},
        2: {"A": {"oneOf": [{"type": "null"}, number]}, "b": text},
        3: {"A": text},
    }
    writers = tuple(
        (id_, RegistrySchema(json.dumps({"type": "object", "properties": p}), "JSON"))
        for id_, p in objects.items()
    )
    layout = Layout(columns, topic="t", writers=writers)
    records = [
        header(1) + b'{"a":1,"B":"x","c":[1,2.5]}',
        header(1) + b'{"a":1,"B":"x"}',
        header(1) + b'{"a":null,"B":"x","c":[]}',
        header(1) + b'{"a":1,"B":"x","c":[1,null]}',
        header(1) + b'{"A":1,"B":5,"c":[]}',
        header(2) + b'{"A":null,"b":"x","c":[1]}',
        header(3) + b'{"A":"x"}',
        header(4) + b"{}",
        header(1),
        b'{"a":1}',
    ]
    json_sr = FORMATS["JSON_SR"]
    expected = [outcome(json_sr.python(layout).decode, r) for r in records]
    assert [e is None for _, e in expected] == [c == "+" for c in "++--++----"]
    assert spark_decode(spark, json_sr, layout, records) == expected


@pytest.mark.parametrize("name", ["PROTOBUF", "PROTOBUF_NOSR"])
@pytest.mark.parametrize("seed", range(3))
def test_protobuf(spark, name, seed):
    samples = Samples(seed)
    nullable = ["optional", "wrapper", "none"][seed]
    # Arrays in arrays cannot be held, so one level of nesting it is.
    layout = Layout(
        samples.columns(depth=1),
        topic="t",
        schema_id=300,
        properties=(("nullableRepresentation", nullable),),
    )
    rows, written = check_codecs(spark, FORMATS[name], layout, samples, with_nulls=False)
    python = FORMATS[name].python(layout)
    for row, data in zip(rows, written, strict=True):
        assert comparable(python.decode(data)) == comparable(row)


@pytest.mark.parametrize("name", ["JSON", "DELIMITED", "AVRO", "JSON_SR", "PROTOBUF"])
def test_bad_records_among_good_ones(spark, name):
    """Every good record comes through as it was; every bad one has an error, and none is lost."""
    format_, samples = FORMATS[name], Samples(7)
    columns = (Column("ID", BIGINT), Column("NAME", STRING), Column("SUM", DOUBLE))
    layout = Layout(columns, wrapped=format_.wrapped(3, None), topic="t", schema_id=7)
    python = format_.python(layout)
    good = [python.encode({"ID": i, "NAME": f"n{i}", "SUM": i / 4}) for i in range(4000)]
    bad = []
    while len(bad) < 400:  # some damage leaves a record that can still be read
        record = samples.damaged(samples.random.choice(good))
        if outcome(python.decode, record)[1] is not None:
            bad.append(record)
    records = [*good, *bad]
    samples.random.shuffle(records)
    found = spark_decode(spark, format_, layout, records)
    assert sum(error is not None for _, error in found) == len(bad)
    assert sum(value is not None for value, _ in found) == len(good)
    assert found == [outcome(python.decode, r) for r in records]
