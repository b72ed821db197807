"""Pages that say which test shows a promise name tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEEDS = (ROOT / "docs" / "design" / "seeds.md").read_text()
RULES, _, DIFFERENCES = SEEDS.partition("## Differences")
RELIABILITY = (ROOT / "docs" / "reliability.md").read_text()
ROW = re.compile(r"^\| (\d+\.\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


@cache
def functions_of(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / path).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_every_rule_is_listed_once():
    for seed, rules in (("57", 55), ("3", 70), ("14", 27)):
        numbers = [
            int(n.split(".")[1]) for n, _, _ in ROW.findall(RULES) if n.startswith(f"{seed}.")
        ]
        assert numbers == list(range(1, rules + 1))


@pytest.mark.parametrize(("rule", "shown_by"), [(n, by) for n, _, by in ROW.findall(RULES)])
def test_the_tests_that_show_a_rule_exist(rule: str, shown_by: str):
    named = TEST.findall(shown_by)
    assert named, f"{rule} names no test"
    assert re.sub(r"[\s,]", "", TEST.sub("", shown_by)) == "", f"{rule} says more than tests"
    for path, name in named:
        assert name in functions_of(path), f"{rule}: {path}::{name} does not exist"


def test_differences_are_of_rules_and_have_a_reason():
    rules = {n for n, _, _ in ROW.findall(RULES)}
    differences = ROW.findall(DIFFERENCES)
    assert differences
    for rule, what, why in differences:
        assert rule in rules and what and why


def test_the_files_that_show_what_is_promised_exist():
    named = re.findall(r"`([\w/]+\.py)(?:::\w+)?`", RELIABILITY)
    assert len(named) > 20
    for path in named:
        assert (ROOT / "tests" / path).is_file(), path
