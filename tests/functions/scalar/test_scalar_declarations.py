"""What every declaration owes its readers, and that none is missing. Needs no JVM."""

from pathlib import Path

import pytest
from sql_examples import argument_of, sql

from headrace.functions.declare.declaration import FunctionKind
from headrace.functions.registry import REGISTRY
from headrace.plan.language.binder import Binder
from headrace.sql.parser import parse_expression

SCALARS = [f for f in REGISTRY.all() if f.kind is FunctionKind.SCALAR and f.path == "internal"]
REFERENCE = Path(__file__).with_name("scalar_reference.txt").read_text().splitlines()


def test_every_overload_of_the_reference_is_there_and_no_other():
    ours = {
        f"{o.signature.identity(f.name)} -> {o.signature.returns}".replace("`", "")
        for f in SCALARS
        for o in f.overloads
    }
    assert ours == set(REFERENCE)


@pytest.mark.parametrize("function", SCALARS, ids=lambda f: f.name)
def test_is_described_and_has_an_example(function):
    assert function.description.endswith(".")
    assert function.examples


@pytest.mark.parametrize(
    ("function", "example"),
    [(f, e) for f in SCALARS for e in f.examples],
    ids=[f"{f.name}-{i}" for f in SCALARS for i, _ in enumerate(f.examples)],
)
def test_an_example_means_the_same_when_written_as_sql(function, example):
    written = Binder(columns={}).bind(parse_expression(sql(function.name, example)))
    meant = REGISTRY.resolve(function.name, [argument_of(a) for a in example.args])
    assert written.signature == meant.signature
