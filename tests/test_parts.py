"""Every heavy test is run by one part of `make test`, or by one of the long campaigns."""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CAMPAIGNS = ["test-kills", "test-faults", "test-soak", "test-cluster"]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Part:
    """What one process of pytest runs: files and folders, and with `-k` some of their tests."""

    paths: tuple[str, ...]
    chosen: str

    @staticmethod
    def of(arguments: list[str]) -> Part:
        chosen = arguments[arguments.index("-k") + 1] if "-k" in arguments else ""
        return Part(tuple(a for a in arguments if a.startswith("tests/")), chosen)

    def runs(self, file: str, test: str) -> bool:
        if not any(file == path or file.startswith(f"{path}/") for path in self.paths):
            return False
        return {"": True, "brief": "brief" in test, "not brief": "brief" not in test}[self.chosen]


@cache
def parts(*targets: str) -> list[Part]:
    """What make would run for these targets."""
    free = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--dry-run", *targets]
    told = subprocess.run(command, cwd=ROOT, env=free, check=True, capture_output=True, text=True)
    return list(_parts(told.stdout))


def _parts(commands: str) -> Iterator[Part]:
    for line in commands.splitlines():
        if "tests/flaky.py run " in line:
            yield Part.of(shlex.split(line.partition("tests/flaky.py run ")[2]))
        elif "pytest" in line and "-m heavy" in line:
            yield Part.of(shlex.split(line))


def heavy_tests(text: str) -> Iterator[str]:
    """The tests of a file that are marked heavy: by themselves, or all because the file is."""
    tree = ast.parse(text if "mark.heavy" in text else "")
    tests = [n for n in tree.body if isinstance(n, FUNCTIONS) and n.name.startswith("test_")]
    marked = [t for t in tests if any(_is_heavy(d) for d in t.decorator_list)]
    decorators = {id(n) for t in marked for d in t.decorator_list for n in ast.walk(d)}
    by_others = any(_is_heavy(n) and id(n) not in decorators for n in ast.walk(tree))
    yield from (test.name for test in (tests if by_others else marked))


def _is_heavy(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) == "pytest.mark.heavy"


@cache
def all_heavy_tests() -> list[tuple[str, str]]:
    """File and function of each."""
    return [
        (file.relative_to(ROOT).as_posix(), test)
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        for test in heavy_tests(file.read_text())
    ]


def test_every_heavy_test_is_in_one_part() -> None:
    everything = parts("test") + parts(*CAMPAIGNS)
    found = {
        f"{file}::{test}": running
        for file, test in all_heavy_tests()
        if len(running := [part for part in everything if part.runs(file, test)]) != 1
    }
    assert len(all_heavy_tests()) > 200 and found == {}


@pytest.mark.parametrize("folder", ["soak", "cluster"])
def test_long_campaigns_are_no_part_of_make_test(folder: str) -> None:
    heavy = [
        (file, test) for file, test in all_heavy_tests() if file.startswith(f"tests/{folder}/")
    ]
    assert heavy and not any(part.runs(*one) for part in parts("test") for one in heavy)


def test_no_part_names_what_is_not_there() -> None:
    named = {path for part in parts("test") + parts(*CAMPAIGNS) for path in part.paths}
    files = {f"{file}/" for file, _ in all_heavy_tests()}
    assert {path for path in named if not any(f.startswith(f"{path}/") for f in files)} == set()


def test_how_heavy_tests_are_found() -> None:
    one = "@pytest.mark.heavy\ndef test_a(): ...\ndef test_b(): ..."
    assert list(heavy_tests(one)) == ["test_a"]
    assert list(heavy_tests(f"pytestmark = pytest.mark.heavy\n{one}")) == ["test_a", "test_b"]
    kills = Part.of(shlex.split("-k 'not brief' tests/e2e/test_exactly_once.py"))
    assert kills.runs("tests/e2e/test_exactly_once.py", "test_many_kills")
    assert not kills.runs("tests/e2e/test_exactly_once.py", "test_a_few_kills_in_brief")
    assert not kills.runs("tests/e2e/test_recovery.py", "test_many_kills")
