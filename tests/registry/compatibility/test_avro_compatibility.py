"""Avro schemas: what is one, how it is written, and who can read whom."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from headrace.registry.compatibility.avro import incompatibilities
from headrace.schemas.avro import (
    AvroSchemaError,
    canonical,
    normal,
    parse,
)


def record(*fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)} | more


def field(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_} | more


def kinds(reader: Any, writer: Any) -> list[tuple[str, str]]:
    found = incompatibilities(parse(json.dumps(reader))[0], parse(json.dumps(writer))[0])
    return [(incompatibility.kind, incompatibility.path) for incompatibility in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"type": "string"}', '"string"'),
        ("string", '"string"'),
        ('{"type": {"type": "int"}}', '"int"'),
        (
            '{"type": "bytes", "logicalType": "decimal", "precision": 4}',
            '{"type":"bytes","logicalType":"decimal","precision":4}',
        ),
        (
            '{"fields": [{"type": ["null", "a.b.R"], "name": "f", "default": null, "x": 1}],'
            ' "namespace": "a.b", "x": 2, "doc": "d", "aliases": ["O", "c.P"], "name": "R",'
            ' "type": "record"}',
            '{"type":"record","name":"R","namespace":"a.b","doc":"d","fields":[{"name":"f",'
            '"type":["null","R"],"default":null,"x":1}],"x":2,"aliases":["O","c.P"]}',
        ),
        (
            '{"type":"record","name":"x.R","fields":[{"name":"e","type":{"type":"enum","name":"E",'
            '"symbols":["A"],"default":"A"}},{"name":"f","type":{"type":"fixed","name":"y.F",'
            '"size":2}},{"name":"g","type":"E","order":"ignore","aliases":["h"]}]}',
            '{"type":"record","name":"R","namespace":"x","fields":[{"name":"e","type":{"type":'
            '"enum","name":"E","symbols":["A"],"default":"A"}},{"name":"f","type":{"type":"fixed",'
            '"name":"F","namespace":"y","size":2}},{"name":"g","type":"E","order":"ignore",'
            '"aliases":["h"]}]}',
        ),
        ('{"type":"map","values":{"type":"array","items":"long"}}',) * 2,
    ],
)
def test_canonical_text(text: str, expected: str) -> None:
    written = canonical(parse(text)[0])
    assert written == expected
    assert canonical(parse(written)[0]) == written


def test_normal_text_sorts_properties() -> None:
    one, other = '{"type":"int","b":1,"a":2}', '{"type":"int","a":2,"b":1}'
    assert canonical(parse(one)[0]) != canonical(parse(other)[0])
    assert normal(parse(one)[0]) == normal(parse(other)[0])


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("{", "not JSON"),
        ("12", "not yet supported"),
        ("null", "not yet supported"),
        ('"Foo"', 'Undefined name: "Foo"'),
        ("{}", "No type"),
        ('{"type":"array"}', "No items"),
        ('{"type":"map"}', "No values"),
        ('{"type":"record","name":"R"}', "Record has no fields"),
        ('{"type":"record","fields":[]}', "No name in schema"),
        ('{"type":"record","name":"1R","fields":[]}', "Illegal character in: 1R"),
        ('{"type":"record","name":"a-b.R","fields":[]}', "Illegal character in: a-b"),
        ('{"type":"record","name":"R","fields":[1]}', "Field is not an object"),
        ('{"type":"record","name":"R","fields":[{"name":"a b","type":"int"}]}', "Illegal"),
        ('{"type":"enum","name":"E","symbols":["A","A"]}', "Duplicate enum symbol"),
        ('{"type":"enum","name":"E","symbols":["A"],"default":"B"}', "The Enum Default: B"),
        ('{"type":"enum","name":"E"}', "Enum has no symbols"),
        ('{"type":"fixed","name":"F","size":-1}', "Invalid or no size"),
        ('["int","int"]', "Duplicate in union: int"),
        ('[["int"]]', "Nested union"),
        (json.dumps(record(field("x", "int"), field("x", "int"))), "Duplicate field x"),
        (json.dumps(record(field("x", "int", default="s"))), "Invalid default for field x"),
        (json.dumps(record(field("x", "int", default=2**31))), "Invalid default for field x"),
        (json.dumps(record(field("x", "int", order="up"))), "Unknown order"),
        (json.dumps([record(), record()]), "Can't redefine: R"),
        ('{"type":"record","name":"int","fields":[]}', "may not be named after primitives"),
        ("[" * 100_000, "nested too deeply"),
        ('{"type":"array","items":' * 5000 + '"int"' + "}" * 5000, "nested too deeply"),
    ],
)
def test_what_is_not_a_schema(declaration: str, message: str) -> None:
    with pytest.raises(AvroSchemaError, match=message):
        parse(declaration)


A, B = field("a", "int"), field("b", "string")
B_DEFAULT = field("b", "string", default="")
ENUM = {"type": "enum", "name": "E", "symbols": ["X", "Y"]}
RECURSIVE = record(field("next", ["null", "R"]), field("a", "int"))


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        ("long", "int", []),
        ("int", "long", [("TYPE_MISMATCH", "/")]),
        ("string", "bytes", []),
        ("double", "float", []),
        ("boolean", "int", [("TYPE_MISMATCH", "/")]),
        (record(A, B_DEFAULT), record(A), []),
        (record(A, B), record(A), [("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/1")]),
        (record(A), record(A, B), []),
        (record(field("c", "string", aliases=["b"])), record(A, B), []),
        (record(field("a", "string")), record(A), [("TYPE_MISMATCH", "/fields/0/type")]),
        (record(A, name="S"), record(A), [("NAME_MISMATCH", "/name")]),
        (record(A, name="S", aliases=["R"]), record(A), []),
        (record(A, name="x.R"), record(A, name="y.R"), []),
        (["null", "int"], "int", []),
        ("int", ["null", "int"], [("TYPE_MISMATCH", "/")]),
        (["null", "long"], ["int", "null"], []),
        (["null", "int"], ["null", "string"], [("MISSING_UNION_BRANCH", "/1")]),
        (ENUM, ENUM | {"symbols": ["X"]}, []),
        (ENUM | {"symbols": ["X"]}, ENUM, [("MISSING_ENUM_SYMBOLS", "/symbols")]),
        (ENUM | {"symbols": ["X"], "default": "X"}, ENUM, []),
        (
            {"type": "fixed", "name": "F", "size": 1},
            {"type": "fixed", "name": "F", "size": 2},
            [("FIXED_SIZE_MISMATCH", "/size")],
        ),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, []),
        (
            {"type": "map", "values": "int"},
            {"type": "map", "values": "string"},
            [("TYPE_MISMATCH", "/values")],
        ),
        (RECURSIVE, RECURSIVE, []),
        (
            # Told once, not once more for each way to get there.
            record(field("next", ["null", "R"]), field("a", "string")),
            RECURSIVE,
            [("TYPE_MISMATCH", "/fields/1/type")],
        ),
    ],
)
def test_who_can_read_whom(reader: Any, writer: Any, expected: list[tuple[str, str]]) -> None:
    assert kinds(reader, writer) == expected


def test_many_paths_to_the_same_types_take_no_longer() -> None:
    def layers(leaf: str) -> Any:
        inner: Any = record(field("a", leaf), name="L0")
        for depth in range(1, 40):
            name = inner["name"]
            inner = record(field("a", inner), field("b", name), name=f"L{depth}")
        return inner

    assert kinds(layers("long"), layers("int")) == []


# --- properties: what the rules promise holds for data, as another implementation reads it

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "string", "bytes")
DEFAULTS = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 2,
    "float": 1.5,
    "double": 2.5,
    "string": "s",
    "bytes": "b",
}


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> Any:
    choices = ["primitive", "enum", "fixed"] + (["array", "map", "union", "record"] * (depth > 0))
    match draw(st.sampled_from(choices)):
        case "primitive":
            return draw(st.sampled_from(PRIMITIVES))
        case "enum":
            symbols = draw(st.lists(st.sampled_from("XYZ"), min_size=1, unique=True))
            enum = {"type": "enum", "name": f"E{depth}", "symbols": symbols}
            return enum | ({"default": symbols[0]} if draw(st.booleans()) else {})
        case "fixed":
            return {"type": "fixed", "name": f"F{depth}", "size": draw(st.integers(1, 2))}
        case "array":
            return {"type": "array", "items": draw(schemas(depth=depth - 1))}
        case "map":
            return {"type": "map", "values": draw(schemas(depth=depth - 1))}
        case "union":
            return draw(st.lists(st.sampled_from(PRIMITIVES), min_size=1, unique=True))
        case _:
            names = draw(st.lists(st.sampled_from("abc"), max_size=2, unique=True))
            fields = [draw(fields_(name, depth, n)) for n, name in enumerate(names)]
            return record(*fields, name=f"R{depth}")


@st.composite
def fields_(draw: st.DrawFn, name: str, depth: int, number: int) -> dict[str, Any]:
    # Each field has its own level of names, so that none is defined twice.
    if draw(st.booleans()):
        type_ = draw(st.sampled_from(PRIMITIVES))
        default = {"default": DEFAULTS[type_]} if draw(st.booleans()) else {}
        return field(name, type_, **default)
    return field(name, draw(schemas(depth=0)) if number else draw(schemas(depth=depth - 1)))


@st.composite
def data(draw: st.DrawFn, schema: Any) -> Any:
    match schema:
        case "null":
            return None
        case "boolean":
            return draw(st.booleans())
        case "int" | "long":
            return draw(st.integers(-100, 100))
        case "float" | "double":
            return draw(st.integers(-100, 100)) / 2
        case "string":
            return draw(st.text("xyz", max_size=3))
        case "bytes":
            return draw(st.text("xyz", max_size=3)).encode()
        case list():
            # Tagged, so that the writer takes the branch that was meant.
            branch = draw(st.sampled_from(schema))
            return (branch, draw(data(branch)))
        case {"type": "enum", "symbols": symbols}:
            return draw(st.sampled_from(symbols))
        case {"type": "fixed", "size": size}:
            return b"x" * size
        case {"type": "array", "items": items}:
            return draw(st.lists(data(items), max_size=2))
        case {"type": "map", "values": values}:
            return draw(st.dictionaries(st.sampled_from("kl"), data(values), max_size=2))
        case {"type": "record", "fields": fields}:
            return {f["name"]: draw(data(f["type"])) for f in fields}
    raise AssertionError(schema)


WIDER = {"int": ["long", "double"], "long": ["float"], "float": ["double"], "string": ["bytes"]}


@st.composite
def evolved(draw: st.DrawFn, schema: Any) -> Any:
    """A schema with a change here and there, harmless or not."""
    match schema:
        case str():
            return draw(st.sampled_from([schema, *WIDER.get(schema, []), ["null", schema], "int"]))
        case list():
            return draw(st.permutations(schema + draw(st.sampled_from([[], ["null"], ["long"]]))))
        case {"type": "enum"}:
            return schema | {"symbols": draw(st.sampled_from([schema["symbols"], ["X", "Y", "Z"]]))}
        case {"type": "array", "items": items}:
            return schema | {"items": draw(evolved(items))}
        case {"type": "map", "values": values}:
            return schema | {"values": draw(evolved(values))}
        case {"type": "record", "fields": fields}:
            kept = [f | {"type": draw(evolved(f["type"]))} for f in fields if draw(st.booleans())]
            added = [field("new", "int", default=0)] * draw(st.integers(0, 1))
            return schema | {"fields": [*kept, *added]}
    return schema


@given(schemas())
def test_a_schema_reads_its_own_data(schema: Any) -> None:
    assume(_valid(schema))
    assert kinds(schema, schema) == []
    assert json.loads(canonical(parse(json.dumps(schema))[0])) == schema


@settings(max_examples=300, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.data())
def test_what_is_called_readable_can_be_read(drawn: st.DataObject) -> None:
    writer = drawn.draw(schemas())
    reader = drawn.draw(evolved(writer))
    assume(_valid(reader) and _valid(writer))
    assume(not kinds(reader, writer))
    value = drawn.draw(data(writer))
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(writer), value)
    stream.seek(0)
    fastavro.schemaless_reader(stream, fastavro.parse_schema(writer), fastavro.parse_schema(reader))


@given(schemas(), schemas(), schemas())
def test_readability_of_equal_records_is_transitive_without_defaults(
    a: Any, b: Any, c: Any
) -> None:
    assume(all(_valid(s) and "default" not in json.dumps(s) for s in (a, b, c)))
    # Between strings and bytes promotion goes both ways; numbers only widen.
    if not kinds(a, b) and not kinds(b, c):
        assert kinds(a, c) == []


def _valid(schema: Any) -> bool:
    try:
        parse(json.dumps(schema))
    except AvroSchemaError:
        return False
    return True
