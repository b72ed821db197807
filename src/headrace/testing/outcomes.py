"""The outcome of a case."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headrace.model.errors import HeadraceError, StatementError
from headrace.testing.cases import Case


class Result(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class CaseFailure(Exception):
    """A case did not do what it should; both sides are shown beside each other."""

    def __init__(self, reason: str, expected: str = "", actual: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.expected = expected
        self.actual = actual


@dataclass(frozen=True)
class Outcome:
    case: Case
    result: Result
    reason: str = ""
    expected: str = ""
    actual: str = ""
    seconds: float = 0.0


def error_text(error: HeadraceError) -> str:
    """An error as ksqlDB shows it, with its statement."""
    statement = error.statement if isinstance(error, StatementError) else None
    return f"{error}\nStatement: {statement}" if statement else str(error)
