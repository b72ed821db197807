"""Data-driven cases: SQL, a line of dashes, what is expected; cases stand between lines of `=====`.

`REWRITE=1 pytest tests/sql` writes what the code answers into the files, to be read in the diff.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

DIRECTORY = Path(__file__).parent / "cases"
BETWEEN_CASES = "\n=====\n"
BEFORE_EXPECTED = "\n----\n"


def inputs(file: str) -> list[str]:
    """The SQL of every case of a file."""
    text = (DIRECTORY / file).read_text()
    return [case.partition(BEFORE_EXPECTED)[0] for case in text.strip("\n").split(BETWEEN_CASES)]


def check(file: str, answer: Callable[[str], str]) -> None:
    """Compares the answer to each case of a file with what the file expects."""
    path = DIRECTORY / file
    cases = path.read_text().strip("\n").split(BETWEEN_CASES)
    if os.environ.get("REWRITE"):
        answered = (s + BEFORE_EXPECTED + answer(s) for s in inputs(file))
        path.write_text(BETWEEN_CASES.join(answered) + "\n")
        return
    wrong = []
    for case in cases:
        sql, _, expected = case.partition(BEFORE_EXPECTED)
        actual = answer(sql)
        if actual != expected:
            wrong.append(f"{sql}\n--- expected\n{expected}\n--- actual\n{actual}")
    if wrong:
        pytest.fail("\n\n".join(wrong), pytrace=False)
