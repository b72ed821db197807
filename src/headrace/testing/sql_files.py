"""Reads SQL test files: statements and ASSERTs, each case begun by `--@test: name`.

`--@expected.error: class` and `--@expected.message: text` say that the case must fail, and how.
`--@header: name=text` gives the record of the INSERT that follows a header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace.kafka.records import Headers
from headrace.model.errors import HeadraceError, Position
from headrace.sql.parser import split
from headrace.testing.cases import Case, ExpectedError
from headrace.testing.statement_texts import asserts_values, inserts_values

_DIRECTIVE = re.compile(r"--@([A-Za-z.]+)\s*:\s*(.*)")


@dataclass(frozen=True)
class Step:
    """One statement of a case, where it stands in the file, and the headers of its record."""

    text: str
    position: Position
    headers: Headers = ()


@dataclass(frozen=True)
class ScriptCase(Case):
    """Statements in order: what changes, what is inserted, what must be there."""

    steps: tuple[Step, ...] = ()
    folder: Path = Path()

    @property
    def runs_queries(self) -> bool:
        texts = [step.text for step in self.steps]
        return any(inserts_values(text) or asserts_values(text) for text in texts)


def is_sql_tests(text: str) -> bool:
    return any(_directive(line, "test") is not None for line in text.splitlines())


def read_sql_cases(path: Path, file: str) -> Iterator[ScriptCase]:
    name: str | None = None
    directives: list[str] = []
    steps: list[Step] = []

    def case() -> ScriptCase:
        assert name is not None
        return ScriptCase(
            file, name, error=_error(directives), steps=tuple(steps), folder=path.parent
        )

    for statement in split(path.read_text(encoding="utf-8")):
        begins = [d for d in statement.directives if _directive(d, "test") is not None]
        if begins:
            if name is not None:
                yield case()
            name, steps, directives = _directive(begins[-1], "test"), [], []
        if name is None:
            raise HeadraceError(f"{path}: a test must begin with '--@test: name'.")
        directives += statement.directives
        steps.append(Step(statement.text, statement.position, _headers(statement.directives)))
    if name is not None:
        yield case()


def _directive(text: str, kind: str) -> str | None:
    match = _DIRECTIVE.match(text.strip())
    return match[2].strip() if match and match[1].lower() == kind else None


def _headers(directives: Iterable[str]) -> Headers:
    """The headers in their order; one without `=` has no value."""
    given = [text for d in directives if (text := _directive(d, "header")) is not None]
    parts = [text.partition("=") for text in given]
    return tuple((name.strip(), value.encode() if sign else None) for name, sign, value in parts)


def _error(directives: list[str]) -> ExpectedError | None:
    found = {
        kind: text
        for kind in ("expected.error", "expected.message")
        for d in directives
        if (text := _directive(d, kind)) is not None
    }
    if not found:
        return None
    return ExpectedError(found.get("expected.message", ""), found.get("expected.error", ""))
