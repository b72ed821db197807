"""Tests wait for conditions: a sleep is a step of a loop that has a deadline, or has a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
# File and function, and why time has to pass there.
REASONS = {
    # Something has to last for so long.
    "faults/kinds.py::_broker": "how long the broker is away",
    "faults/kinds.py::_frozen_broker": "how long the broker is frozen",
    "faults/kinds.py::_frozen_server": "how long the server is frozen",
    "faults/kinds.py::_pause": "how long the query is paused",
    "spark/sink/test_fencing.py::test_a_process_is_stopped_and_goes_on": "how long it is frozen",
    # It happens at a random moment.
    "e2e/test_exactly_once.py::writes_once": "when the server is killed",
    "e2e/test_state_recovery.py::survives": "when the server is killed",
    "faults/campaign.py::_happen": "when the next fault happens",
    "in_memory_service.py::topics": "others may make topics meanwhile",
    # Something must not happen, or nobody can see that it has.
    "server/test_query_endpoints.py::test_a_client_that_does_not_read_is_not_sent_more": (
        "that no more rows are asked for"
    ),
    "server/test_query_endpoints.py::test_a_query_whose_client_has_left_is_not_started": (
        "when the server knows that the last client has left"
    ),
    "e2e/browser.py::picture": "when the browser has painted; only where pictures are taken",
    # Loops that others end.
    "e2e/test_stalled_batches.py::": "a function that comes to no end, until it is mended",
    "faults/kinds.py::start": "a registry that needs a broker, which may be away",
    "partial_engine.py::ask": "pauses of a statement, which has a time limit of its own",
    "server/test_hostile_inputs.py::_look": "how busy the event loop is, as long as a test lasts",
}


def fixed_sleeps(text: str) -> Iterator[str]:
    """The functions in which a sleep is not a step of a loop that looks at the clock."""
    if "sleep(" in text:
        yield from _below(ast.parse(text), "", None)


def _below(node: ast.AST, function: str, loop: ast.While | None) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _below(child, child.name, None)
        elif isinstance(child, ast.While):
            yield from _below(child, function, child)
        elif _sleeps(child) and not (loop and _looks_at_the_clock(loop)):
            yield function
        else:
            yield from _below(child, function, loop)


def _sleeps(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):  # a program for another process
        return isinstance(node.value, str) and "sleep(" in node.value
    return isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "sleep"


def _looks_at_the_clock(loop: ast.While) -> bool:
    """Whether the loop compares the time with anything, as with a deadline."""
    compared = (n for n in ast.walk(loop) if isinstance(n, ast.Compare))
    return any("monotonic()" in ast.unparse(comparison) for comparison in compared)


def test_no_sleep_has_a_fixed_length() -> None:
    found = {
        f"{file.relative_to(TESTS)}::{function}"
        for file in TESTS.rglob("*.py")
        if file != Path(__file__)
        for function in fixed_sleeps(file.read_text())
    }
    assert found == REASONS.keys()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f():\n  time.sleep(1)", ["f"]),
        ("def f():\n  for _ in range(3):\n    time.sleep(1)", ["f"]),
        ("async def f():\n  await asyncio.sleep(1)", ["f"]),
        ("def f():\n  while not done():\n    sleep(1)", ["f"]),
        ("def f():\n  while True:\n    sleep(1)\n    times.append(monotonic())", ["f"]),
        ("PROGRAM = 'import time; time.sleep(600)'", [""]),
        ("def f():\n  while not done():\n    assert monotonic() < end\n    sleep(1)", []),
        ("def f():\n  while time.monotonic() < end:\n    time.sleep(1)", []),
    ],
)
def test_what_counts_as_a_fixed_sleep(text: str, found: list[str]) -> None:
    assert list(fixed_sleeps(text)) == found
