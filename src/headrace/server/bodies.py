"""Request bodies: size limits, parsing, and conversion to the engine's requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, NoReturn, TypeVar

from starlette.requests import Request as HttpRequest

from headrace.model.allowed_callers import media_type
from headrace.model.json_size import MOST_VALUES, has_too_many_values
from headrace.model.requests import Request
from headrace.server.error_responses import (
    BAD_REQUEST,
    BODY_TOO_LARGE,
    NOT_ACCEPTABLE,
    UNSUPPORTED_CONTENT_TYPE,
    ApiError,
)
from headrace.server.response_formats import DELIMITED, JSON, KSQL_JSON
from headrace.server.streams import Services

T = TypeVar("T", bound=Sized)
R = TypeVar("R")
V = TypeVar("V", covariant=True)

# The last two are what curl and other programs say of a body when they are told nothing; ksqlDB's
# own examples rely on it. Not text/plain: a form of any page can send that.
_BODY_TYPES = {
    *(JSON, KSQL_JSON, DELIMITED),
    *("application/x-www-form-urlencoded", "application/octet-stream"),
}
# What is longer is read on a thread: everybody would wait for it on the event loop.
SMALL = 16 * 1024
_ACCEPT_LENGTH = 2048


def check_content_type(request: HttpRequest) -> None:
    header = request.headers.get("content-type", JSON)
    if media_type(header) not in _BODY_TYPES:
        raise ApiError(
            UNSUPPORTED_CONTENT_TYPE, f"Unsupported content type: {header}. Use {KSQL_JSON}."
        )


def too_large(limit: int) -> ApiError:
    return ApiError(BODY_TOO_LARGE, f"The request is larger than the limit of {limit} bytes.")


# What is too large is still read, so far, and thrown away: a client that is busy sending would
# not see the answer otherwise.
_DISCARDED_BYTES = 64 * 1024 * 1024


async def read_body(request: HttpRequest, limit: int) -> bytes:
    announced = request.headers.get("content-length", "")
    length = int(announced) if announced.isdecimal() and len(announced) < 20 else None
    chunks: list[bytes] = []
    size = 0
    more = True
    # With the announced length there, the end of the body need not be waited for.
    while more and size != length and size <= _DISCARDED_BYTES:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ApiError(BAD_REQUEST, "The client left before its request was complete.")
        chunk = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(chunk)
        if size <= limit:
            chunks.append(chunk)
    if size > limit:
        raise too_large(limit)
    return b"".join(chunks)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant)


def parse_json(data: bytes | str) -> object:
    """Strict JSON; numbers with a fraction keep their digits as Decimal."""
    try:
        text = data if isinstance(data, str) else data.decode()
        if has_too_many_values(text):
            raise invalid(f"more than {MOST_VALUES} values")
        value = _DECODER.decode(text)
        if "\\u" in text:  # may spell half a surrogate pair, which no answer could repeat
            json.dumps(value, ensure_ascii=False, default=str).encode()
        return value
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise invalid(reason) from None


def invalid(reason: str) -> ApiError:
    return ApiError(BAD_REQUEST, f"Invalid JSON in request: {reason}")


def parse_object(data: bytes | str) -> dict[str, object]:
    body = parse_json(data or "{}")
    if not isinstance(body, dict):
        raise invalid("expected an object")
    return body


async def read(services: Services, work: Callable[[T], R], data: T) -> R:
    """The result of `work` on a body or text: computed here, or on a thread if it is long."""
    if len(data) <= SMALL:
        return work(data)
    return await services.workers.reading.run(work, data)


async def read_object(request: HttpRequest) -> dict[str, object]:
    services: Services = request.app.state.services
    check_content_type(request)
    data = await read_body(request, services.settings.limits.body_bytes)
    return await read(services, parse_object, data)


@dataclass(frozen=True)
class Member(Generic[V]):
    """A member of a request body: how it is read, and what the API's description says of it."""

    name: str
    type: type[V]
    doc: str
    required: bool = False

    def of(self, body: Mapping[str, object]) -> V | None:
        """The member's value, checked; None where it is missing or null."""
        value = body.get(self.name)
        if value is None:
            if self.required:
                raise invalid(f"Missing required creator property '{self.name}'")
            return None
        if not isinstance(value, self.type) or (self.type is int and isinstance(value, bool)):
            raise invalid(f"'{self.name}' must be {_KINDS[self.type]}")
        return value

    def required_of(self, body: Mapping[str, object]) -> V:
        """The value of a member that is required."""
        value = self.of(body)
        assert value is not None
        return value


_KINDS = {str: "a string", dict: "an object", int: "an integer", list: "an array"}

KSQL = Member("ksql", str, "Statements, each with its semicolon.")
STREAMS_PROPERTIES = Member(
    "streamsProperties", dict, "Settings for this request alone, by their names."
)
SESSION_VARIABLES = Member(
    "sessionVariables", dict, "Values for ${name} in the statements, by their names."
)
COMMAND_SEQUENCE_NUMBER = Member(
    "commandSequenceNumber", int, "Nothing is run before the command of this number is done."
)
SQL = Member("sql", str, "One SELECT or PRINT.", required=True)
PROPERTIES = Member("properties", dict, "Settings for this request alone, by their names.")
REQUEST_PROPERTIES = Member(
    "requestProperties",
    dict,
    "Of these, request.ksql.query.push.continuation.token says where a push query goes on.",
)
QUERY_ID = Member("queryId", str, "The push query that is to end.", required=True)
TARGET = Member("target", str, "The stream or table that takes the rows.", required=True)
DELETE_TOPIC_LIST = Member(
    "deleteTopicList", list, "Topics of queries to delete: names, or patterns."
)
HOST_INFO = Member("hostInfo", str, "The server that sends it: host:port.", required=True)
TIMESTAMP = Member("timestamp", int, "When it was sent, in milliseconds.", required=True)
KSQL_HOST = Member("ksqlHost", str, "The server that sends it: host:port.", required=True)
HOST_STORE_LAGS = Member(
    "hostStoreLags", dict, "How far its stores are behind: stateStoreLags, updateTimeMs.", True
)

STATEMENT_BODY = (
    KSQL,
    STREAMS_PROPERTIES,
    SESSION_VARIABLES,
    COMMAND_SEQUENCE_NUMBER,
    REQUEST_PROPERTIES,
)
# `streamsProperties` is what ksqlDB's example of a request there says.
QUERY_STREAM_BODY = (SQL, PROPERTIES, STREAMS_PROPERTIES, SESSION_VARIABLES, REQUEST_PROPERTIES)
_CONTINUATION = "request.ksql.query.push.continuation.token"


def statement_request(body: Mapping[str, object]) -> Request:
    """The body of `/ksql`, `/query` and `/ws/query`."""
    return Request(
        KSQL.of(body) or "",
        _with_floats(STREAMS_PROPERTIES.of(body) or {}),
        _texts(SESSION_VARIABLES.of(body) or {}),
        COMMAND_SEQUENCE_NUMBER.of(body),
        _continuation(body),
    )


def stream_request(body: Mapping[str, object]) -> Request:
    """The body of `/query-stream`."""
    overrides = {**(STREAMS_PROPERTIES.of(body) or {}), **(PROPERTIES.of(body) or {})}
    return Request(
        SQL.required_of(body),
        _with_floats(overrides),
        _texts(SESSION_VARIABLES.of(body) or {}),
        continuation=_continuation(body),
    )


def _continuation(body: Mapping[str, object]) -> str | None:
    found = (REQUEST_PROPERTIES.of(body) or {}).get(_CONTINUATION)
    if found is not None and not isinstance(found, str):
        raise invalid(f"'{_CONTINUATION}' must be a string")
    return found or None


def _with_floats(properties: Mapping[str, object]) -> dict[str, object]:
    return {k: float(v) if isinstance(v, Decimal) else v for k, v in properties.items()}


def _texts(variables: Mapping[str, object]) -> dict[str, str]:
    return {
        k: v if isinstance(v, str) else json.dumps(v, default=str) for k, v in variables.items()
    }


def negotiate(request: HttpRequest, offers: Iterable[str]) -> str:
    """The offer the client likes best; the first one if it has no preference."""
    offers = list(offers)
    header = request.headers.get("accept", "")[:_ACCEPT_LENGTH]
    if not header:
        return offers[0]
    ranked = sorted(
        (_quality(header, offer), -position, offer) for position, offer in enumerate(offers)
    )
    quality, _, best = ranked[-1]
    if quality == 0:
        raise ApiError(
            NOT_ACCEPTABLE, f"None of the accepted content types is offered: {', '.join(offers)}"
        )
    return best


def _quality(header: str, offer: str) -> float:
    """How much the Accept header wants an offer: the most specific range that covers it."""
    family = offer.partition("/")[0]
    best = (-1, 0.0)
    for part in header.split(","):
        name, *parameters = [p.strip().lower() for p in part.split(";")]
        ranges = {offer: 2, f"{family}/*": 1, "*/*": 0}
        if name in ranges:
            best = max(best, (ranges[name], _weight(parameters)))
    return best[1]


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return min(max(float(parameter[2:]), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0
