"""Errors of a request, one class for each kind that a caller may want to handle."""

from __future__ import annotations

from typing import Any


class ClientError(Exception):
    """Any failure of a request."""


class ConnectionFailed(ClientError):
    """The server could not be reached, or the connection to it broke."""


class RequestFailed(ClientError):
    """The server refused a request. `error_code` is ksqlDB's: status × 100 + detail."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message


class Unauthorized(RequestFailed):
    """The server wants other credentials (401), or allows these less (403)."""


class StatementFailed(RequestFailed):
    """A statement failed; `entities` are the answers of those before it in the same request."""

    def __init__(
        self, error_code: int, message: str, statement: str, entities: list[dict[str, Any]]
    ) -> None:
        super().__init__(error_code, message)
        self.statement = statement
        self.entities = entities


class QueryFailed(RequestFailed):
    """A query failed after its first rows."""


class InsertFailed(RequestFailed):
    """A row was refused; `sequence` is its place among the rows sent, from 0."""

    def __init__(self, error_code: int, message: str, sequence: int) -> None:
        super().__init__(error_code, message)
        self.sequence = sequence


def failure(status: int, body: Any) -> RequestFailed:
    """The error for a response with a bad status; `body` is its JSON, or its text."""
    if not isinstance(body, dict) or "error_code" not in body:
        return _classify(status)(status * 100, str(body).strip() or f"HTTP status {status}")
    code, message = int(body["error_code"]), str(body.get("message", ""))
    if body.get("@type") == "statement_error":
        return StatementFailed(
            code, message, body.get("statementText", ""), body.get("entities", [])
        )
    return _classify(status)(code, message)


def _classify(status: int) -> type[RequestFailed]:
    return Unauthorized if status in (401, 403) else RequestFailed
