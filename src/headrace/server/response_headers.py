"""Headers that every answer gets, as `response.http.headers.config` says."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.model.errors import HeadraceError


@dataclass(frozen=True)
class Header:
    """`replaces`: an answer that has it already gets this one instead."""

    name: str
    value: str
    replaces: bool


def read_headers(text: str) -> tuple[Header, ...]:
    """`add Name: value, "set Name: value, with commas"`."""
    (entries,) = csv.reader([text], skipinitialspace=True) if text.strip() else [[]]
    return tuple(_header(entry.strip()) for entry in entries if entry.strip())


def _header(entry: str) -> Header:
    action, _, rest = entry.partition(" ")
    name, colon, value = (part.strip() for part in rest.partition(":"))
    if action not in ("add", "set") or not colon or not name.isascii() or not name:
        raise HeadraceError(
            f"response.http.headers.config: '{entry}' is not like 'add Name: value' or "
            "'set Name: value', in quotation marks if the value has commas."
        )
    return Header(name, value, action == "set")


class ResponseHeaders:
    """Middleware that adds them."""

    def __init__(self, app: ASGIApp, headers: Sequence[Header]) -> None:
        self._app = app
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for header in self._headers:
                    if header.replaces:
                        answer[header.name] = header.value
                    else:
                        answer.append(header.name, header.value)
            await send(message)

        await self._app(scope, receive, send_with_headers)
