"""Records of ksqlDB's command topic: the key names the command, the value is the statement.

The key is a JSON string, `"stream/NAME/create"`. The value is a JSON object: `statement`,
`streamsProperties` (the user's settings), `originalProperties` (the server's), `plan` (since 0.8),
`version` (since 0.13).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headrace.importing.recorded import Recorded, Unreadable, consumer_group
from headrace.model.errors import ParseError
from headrace.model.sources import SourceKind
from headrace.sql import ast
from headrace.sql.parser import parse_statement

# The newest version of a command whose meaning is known.
NEWEST = 18
_UNWRAPPED = frozenset({"UNWRAP_SINGLES", "UNWRAP_SINGLE_VALUES"})
_PREFIXES = {SourceKind.STREAM: "CSAS", SourceKind.TABLE: "CTAS"}


def read_command(
    key: bytes | str | None,
    value: bytes | str | None,
    place: str,
    *,
    service_id: str,
    offset: int,
    at: int | None = None,
) -> Recorded | Unreadable:
    """A command as a statement; `offset` is its number, from which ksqlDB makes query ids."""
    try:
        id_, body = _parsed(key), _parsed(value)
    except ValueError as e:
        return Unreadable(place, f"It is not a command of ksqlDB: {e}.")
    if not isinstance(id_, str) or not isinstance(body, dict):
        return Unreadable(
            place, "It is not a command of ksqlDB: a name and an object are expected."
        )
    statement, version = body.get("statement"), body.get("version") or 0
    if not isinstance(version, int) or version > NEWEST:
        return Unreadable(
            place,
            f"Its version is {version}, and versions up to {NEWEST} are known: a newer ksqlDB "
            f"wrote it, and it may mean more than its statement says. Statement: {statement}",
        )
    if not isinstance(statement, str):
        return Unreadable(place, "It is not a command of ksqlDB: it has no statement.")
    plan = _object(body.get("plan"))
    made, query = _object(plan.get("ddlCommand")), _object(plan.get("queryPlan"))
    query_id = query.get("queryId") or (None if plan else _assumed_id(statement, offset))
    return Recorded(
        statement,
        place,
        _object(body.get("originalProperties")),
        _object(body.get("streamsProperties")),
        query_id,
        query.get("runtimeId") or (consumer_group(service_id, query_id) if query_id else None),
        made.get("schema"),
        _wrapped(_object(made.get("formats"))),
        at,
    )


def _parsed(data: bytes | str | None) -> object:
    if data is None:
        raise ValueError("it has no key or no value")
    return json.loads(data)


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _assumed_id(text: str, offset: int) -> str | None:
    """The id of the query of a command without a plan, as ksqlDB made them then."""
    try:
        statement = parse_statement(text)
    except ParseError:
        return None
    match statement:
        case ast.InsertInto():
            return f"InsertQuery_{offset}"
        case ast.CreateAsSelect(name=name, source_kind=kind):
            return f"{_PREFIXES[kind]}_{name}_{offset}"
    return None


def _wrapped(formats: Mapping[str, Any]) -> bool | None:
    if not formats:
        return None
    features = formats.get("valueFeatures") or formats.get("options") or ()
    return not _UNWRAPPED & set(features)
