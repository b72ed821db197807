"""What every declaration owes its readers, and that none is missing. Needs no JVM."""

from pathlib import Path

import pytest

from headrace.functions.declare import FunctionKind
from headrace.functions.examples import sql
from headrace.functions.registry import REGISTRY

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
    assert all(sql(function.name, e).startswith(function.name) for e in function.examples)
