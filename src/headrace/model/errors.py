"""Errors that a user caused and a user reads; everything else that is raised is a bug."""

from __future__ import annotations

from dataclasses import dataclass


class HeadraceError(Exception):
    """A failure with a text for a person. `error_code` is ksqlDB's: status × 100 + detail."""

    error_code = 40000

    @property
    def message(self) -> str:
        return str(self)


class StatementError(HeadraceError):
    """A statement that cannot be run as it stands; carries its text once that is known."""

    error_code = 40001

    def __init__(self, message: str, statement: str | None = None) -> None:
        super().__init__(message)
        self.statement = statement


@dataclass(frozen=True)
class Position:
    """Where in a text: `line` from 1, `column` from 1 (ksqlDB counts both so in its messages)."""

    line: int
    column: int


class ParseError(StatementError):
    """Text that is not a statement; says where and what was expected."""

    def __init__(
        self, message: str, position: Position | None = None, statement: str | None = None
    ) -> None:
        super().__init__(message, statement)
        self.position = position


class UnavailableError(HeadraceError):
    """Something outside (broker, registry, Connect) does not answer or refuses."""

    error_code = 50300
