"""Sends assessed statements to a server: all in one request, which the server checks whole before
it runs the first of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headrace.client import Client, ClientError, ConnectionFailed, StatementFailed
from headrace.importing.assessment import Item
from headrace.model.errors import HeadraceError
from headrace.sql.tree import string

Json = Mapping[str, Any]
_AGAIN = "Run the same command again: it sends what the server does not have."


def apply(client: Client, items: Sequence[Item]) -> list[str]:
    """What the server says of each statement. Queries that ksqlDB had paused are paused."""
    if not items:
        return []
    try:
        answers = [a for a in client.execute(script(items)) if "commandStatus" in a]
        _pause(client, items, answers)
    except StatementFailed as error:
        made = len([e for e in error.entities if "commandStatus" in e])
        done = f"{made} statements before it were done. {_AGAIN}" if made else "Nothing was done."
        raise HeadraceError(
            f"The server refused a statement: {error}\nStatement: {error.statement}\n{done}"
        ) from None
    except ConnectionFailed as error:
        raise HeadraceError(f"{error} What it has taken counts. {_AGAIN}") from None
    except ClientError as error:
        raise HeadraceError(f"The server refused the import: {error}") from None
    return [_answer_text(item, answer) for item, answer in zip(items, answers, strict=False)]


def script(items: Sequence[Item]) -> str:
    """The statements, each under its settings."""
    return "\n".join(_lines(items))


def _lines(items: Sequence[Item]) -> Iterator[str]:
    held: Mapping[str, str] = {}
    for item in items:
        for name in held.keys() - item.settings.keys():
            yield f"UNSET {string(name)};"
        for name, value in item.settings.items():
            if held.get(name) != value:
                yield f"SET {string(name)}={string(value)};"
        held = item.settings
        yield item.text if item.text.rstrip().endswith(";") else item.text + ";"


def _pause(client: Client, items: Sequence[Item], answers: Sequence[Json]) -> None:
    for item, answer in zip(items, answers, strict=False):
        query_id = answer["commandStatus"].get("queryId")
        if item.paused and query_id is not None:
            client.execute(f"PAUSE {query_id};")


def _answer_text(item: Item, answer: Json) -> str:
    return f"{item.title}: {answer['commandStatus']['message']}"
