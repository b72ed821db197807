"""Moments as text."""

from __future__ import annotations

from datetime import UTC, datetime


def iso_moment(milliseconds: int) -> str:
    """ISO 8601 in UTC, as ksqlDB shows when the last message was; `n/a` for 0."""
    if not milliseconds:
        return "n/a"
    when = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
