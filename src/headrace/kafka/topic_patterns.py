"""Matches topic names against users' regular expressions, with a time limit.

Python lets nothing else run while it matches, and cannot be told to stop. So another process does
it, which can.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Iterable

from headrace.model.errors import HeadraceError

SECONDS = 10.0
MOST_PATTERNS = 1000
LONGEST_PATTERN = 1000

_PROGRAM = """
import json, re, sys
patterns, names = json.load(sys.stdin)
try:
    found = {name for p in patterns for name in names if name == p or re.fullmatch(p, name)}
    print(json.dumps(sorted(found)))
except re.error as error:
    print(json.dumps(str(error.pattern)))
"""


def matching(patterns: Collection[str], names: Iterable[str], seconds: float = SECONDS) -> set[str]:
    """The names that one of the patterns matches completely; raises for an invalid pattern."""
    if len(patterns) > MOST_PATTERNS or any(len(p) > LONGEST_PATTERN for p in patterns):
        raise HeadraceError(
            f"At most {MOST_PATTERNS} patterns of {LONGEST_PATTERN} characters can be given."
        )
    if not patterns:
        return set()
    try:
        answer = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _PROGRAM],
            input=json.dumps([list(patterns), list(names)]),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise HeadraceError(
            f"The patterns take longer than {seconds:.0f} s to match: name the topics instead."
        ) from None
    found = json.loads(answer.stdout)
    if isinstance(found, str):
        raise HeadraceError(f"Invalid pattern: {found}")
    return set(found)
