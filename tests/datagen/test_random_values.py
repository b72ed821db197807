"""Values as the annotations of an Avro schema want them."""

import json
import re
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from headrace.datagen.values import ValueMaker
from headrace.model.errors import HeadraceError
from headrace.schemas import avro


def made(schema, seed, count=200, directory=Path()):
    type_, _ = avro.parse(json.dumps(schema))
    make = ValueMaker(Random(seed), directory).of(type_)
    return [make() for _ in range(count)]


def annotated(kind, /, **annotations):
    return {"type": kind, "arg.properties": annotations}


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ("int", lambda v: -(2**31) <= v < 2**31),
        ("long", lambda v: -(2**63) <= v < 2**63),
        ("double", lambda v: 0 <= v < 1),
        ("string", lambda v: 8 <= len(v) <= 16),
        ("bytes", lambda v: 8 <= len(v) <= 16 and isinstance(v, bytes)),
        ("null", lambda v: v is None),
        (annotated("int", range={"min": -1, "max": 3}), lambda v: v in (-1, 0, 1, 2)),
        (annotated("long", range={"min": 2**62}), lambda v: 2**62 <= v < 2**63),
        (annotated("float", range={"min": 0.1, "max": 0.2}), lambda v: 0.1 <= v <= 0.2),
        (annotated("double", range={"max": -5}), lambda v: v <= -5),
        (annotated("string", length=3), lambda v: len(v) == 3),
        (annotated("bytes", length={"max": 2}), lambda v: len(v) <= 2),
        (annotated("string", length={"min": 20}), lambda v: len(v) >= 20),
        (
            annotated("string", regex="Item_[1-9][0-9]{0,2}"),
            lambda v: re.fullmatch("Item_[1-9][0-9]{0,2}", v),
        ),
        (
            annotated("string", regex="[a-z]*", length={"min": 5, "max": 7}),
            lambda v: re.fullmatch("[a-z]{5,7}", v),
        ),
        (
            annotated("string", prefix="<", length=1, suffix=">"),
            lambda v: re.fullmatch("<.>", v),
        ),
        (annotated("string", kind="uuid"), lambda v: re.fullmatch("[0-9a-f-]{36}", v)),
        (annotated("string", kind="email"), lambda v: v.endswith("@example.com")),
        (
            {"type": "array", "items": "int", "arg.properties": {"length": 2}},
            lambda v: len(v) == 2 and all(isinstance(i, int) for i in v),
        ),
        (
            {
                "type": "map",
                "values": annotated("int", options=[1]),
                "arg.properties": {"length": 4, "keys": {"options": ["a", "b"]}},
            },
            lambda v: v in ({"a": 1}, {"b": 1}, {"a": 1, "b": 1}),
        ),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, lambda v: v in "AB"),
        ({"type": "fixed", "name": "f", "size": 3}, lambda v: len(v) == 3),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            lambda v: abs(v) < 100 and v == v.quantize(Decimal("0.01")),
        ),
        (["null", annotated("int", options=[7])], lambda v: v in (None, 7)),
        (
            [annotated("int", options=[7]), annotated("string", options=["x"])],
            lambda v: v in ({"int": 7, "string": None}, {"int": None, "string": "x"}),
        ),
    ],
)
def test_values_fit(schema, fits, seed):
    for value in made(schema, seed):
        assert fits(value), value


@pytest.mark.parametrize(
    ("schema", "first"),
    [
        (annotated("int", iteration={"start": 0}), [0, 1, 2, 3]),
        (annotated("long", iteration={"start": 1, "step": 10}), [1, 11, 21, 31]),
        (annotated("int", iteration={"start": 0, "restart": 2}), [0, 1, 0, 1]),
        (annotated("int", iteration={"start": 2, "restart": 0}), [2, 1, 2, 1]),
        (annotated("int", iteration={"start": 0, "restart": 3, "initial": 2}), [2, 0, 1, 2]),
        (annotated("double", iteration={"start": 0, "step": 0.5}), [0.0, 0.5, 1.0, 1.5]),
        (annotated("string", iteration={"start": 0}, prefix="n"), ["n0", "n1", "n2", "n3"]),
        (annotated("boolean", iteration={"start": True}), [True, False, True, False]),
        (annotated("boolean", odds=1.0), [True] * 4),
        (annotated("boolean", odds=0.0), [False] * 4),
    ],
)
def test_series(schema, first, seed):
    assert made(schema, seed, 4) == first


def test_fields_of_unions_choose_their_branch(seed):
    def field(**annotations):
        return {
            "type": "record",
            "name": "r",
            "fields": [{"name": "f", "type": ["null", "int"], "arg.properties": annotations}],
        }

    assert {row["f"] for row in made(field(position=0), seed)} == {None}
    assert None not in {row["f"] for row in made(field(distribution={"0": 0, "1": 1}), seed)}


def test_options_of_records_and_of_a_file(seed, tmp_path):
    record = {
        "type": "record",
        "name": "code",
        "fields": [{"name": "n", "type": "int"}, {"name": "text", "type": ["null", "string"]}],
        "arg.properties": {"options": [{"n": 1, "text": "one"}, {"n": 2}]},
    }
    assert {tuple(row.values()) for row in made(record, seed)} == {(1, "one"), (2, None)}
    (tmp_path / "nouns.json").write_text('"river"\n"weir" "lock"')
    of_file = annotated("string", options={"file": "nouns.json", "encoding": "json"})
    assert set(made(of_file, seed, directory=tmp_path)) == {"river", "weir", "lock"}


def test_the_same_seed_makes_the_same_values(seed):
    schema = annotated("string", regex="[a-z]{20}")
    assert made(schema, seed) == made(schema, seed)
    assert made(schema, seed) != made(schema, seed + 1)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (annotated("int", range={"min": 3, "max": 3}), "min below its max"),
        (annotated("int", range={"min": "a"}), "'range.min' must be a number"),
        (annotated("int", range={"max": 2**40}), "both of type int"),
        (annotated("int", options=[]), "at least one element"),
        (annotated("int", options=["x"]), 'the option "x" is not of type int'),
        (annotated("int", options=[True]), "the option true is not of type int"),
        (annotated("int", options=[1], range={"min": 1}), "exclude each other"),
        (annotated("int", ragne={"min": 1}), "knows no 'ragne'; it knows distribution"),
        (annotated("int", iteration={"step": 1}), "must have a start"),
        (annotated("int", iteration={"start": 1, "step": 0}), "lead by its step"),
        (annotated("int", iteration={"start": 1, "restart": 1}), "lead by its step"),
        (annotated("int", iteration={"start": 5, "restart": 1, "step": 1}), "lead by its step"),
        (annotated("bytes", iteration={"start": 1}), "not bytes"),
        (annotated("string", regex="[a"), "'regex' cannot be read"),
        (annotated("string", regex="[ab]", length=2), "hardly a text of 2 to 2"),
        (annotated("string", kind="song"), "must be one of uuid"),
        (annotated("string", length=-1), "0 or more"),
        (annotated("string", length={}), "min, max or both"),
        (annotated("boolean", odds=2), "between 0 and 1"),
        (annotated("string", options={"file": "gone", "encoding": "json"}), "cannot be read"),
        ({"type": "int", "arg.properties": 3}, "must be an object"),
    ],
)
def test_annotations_that_make_no_sense(schema, words, seed, tmp_path):
    with pytest.raises(HeadraceError, match=r"^schema: ") as told:
        made(schema, seed, 1, tmp_path)
    assert words in str(told.value)
