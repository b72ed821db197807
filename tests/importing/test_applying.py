"""How statements are sent, and what is said if that fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from headrace.client import Client, ConnectionFailed, RequestFailed, StatementFailed
from headrace.importing.applying import apply, script
from headrace.importing.assessment import Item, Verdict
from headrace.model.errors import HeadraceError


class _Server:
    """Answers each statement with the id of a query."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.asked: list[str] = []
        self._failure = failure

    def execute(self, text: str) -> list[dict[str, Any]]:
        self.asked.append(text)
        if self._failure is not None:
            raise self._failure
        statements = [line for line in text.splitlines() if not line.startswith(("SET", "UNSET"))]
        return [
            {"commandStatus": {"message": f"done {s}", "queryId": f"Q{i}"}}
            for i, s in enumerate(statements)
        ]


def item(text: str, paused: bool = False, **settings: str) -> Item:
    named = {k.replace("__", "."): v for k, v in settings.items()}
    return Item("", text, Verdict.AS_IS, text=text, settings=named, paused=paused)


def send(server: _Server, *items: Item) -> list[str]:
    return apply(cast("Client", server), items)


def test_each_statement_under_its_settings() -> None:
    assert script([item("A;", x="1", y="it's"), item("B", x="2"), item("C;", x="2")]) == (
        "SET 'x'='1';\nSET 'y'='it''s';\nA;\nUNSET 'y';\nSET 'x'='2';\nB;\nC;"
    )


def test_one_request() -> None:
    server = _Server()
    assert send(server, item("A;"), item("B;")) == ["A;: done A;", "B;: done B;"]
    assert server.asked == ["A;\nB;"]
    assert send(server) == [] and len(server.asked) == 1


def test_paused_queries_are_paused() -> None:
    server = _Server()
    send(server, item("A;"), item("B;", paused=True))
    assert server.asked == ["A;\nB;", "PAUSE Q1;"]


_DONE: Mapping[str, Any] = {"commandStatus": {"message": "done"}}


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (StatementFailed(40001, "No.", "B;", []), "Statement: B;\nNothing was done."),
        (
            StatementFailed(50000, "No.", "B;", [dict(_DONE)]),
            "1 statements before it were done. Run the same command again",
        ),
        (ConnectionFailed("It is gone."), "It is gone. What it has taken counts. Run the same"),
        (RequestFailed(40300, "Not you."), "The server refused the import: Not you."),
    ],
)
def test_failures(failure: Exception, told: str) -> None:
    with pytest.raises(HeadraceError) as error:
        send(_Server(failure), item("A;"), item("B;"))
    assert told in str(error.value)
