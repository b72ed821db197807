"""Confluent's REST API over a registry: routes and response forms."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from headrace.model.errors import UnavailableError
from headrace.model.json_size import MOST_VALUES, has_too_many_values
from headrace.registry import schema as refusals
from headrace.registry.core import SchemaRegistry
from headrace.registry.languages import LANGUAGES
from headrace.registry.schema import (
    Reference,
    RegisteredSchema,
    RegistryError,
    Schema,
    schema_type,
)

LOG = logging.getLogger("headrace.registry")
_MOST_DIGITS = 18
Row = TypeVar("Row")
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True)
class Request:
    """A request that has found its handler: path parameters, query, and the body if any."""

    registry: SchemaRegistry
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes = b""

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() == "true"

    def number(self, name: str, default: int) -> int:
        try:
            return int(self.query.get(name, default))
        except ValueError:
            raise RegistryError(400, f"{name} is not a number") from None

    @property
    def subject(self) -> str:
        return self.path["subject"]

    @property
    def version(self) -> str:
        return self.path["version"]

    @property
    def id(self) -> int:
        text = self.path["id"]
        if not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS:
            raise RegistryError(404, "HTTP 404 Not Found")
        return int(text)

    def json(self) -> dict[str, object]:
        try:
            text = self.body.decode()
            if has_too_many_values(text):
                raise RegistryError(400, f"The body has more than {MOST_VALUES} values")
            body = json.loads(text)
        except (ValueError, RecursionError):
            raise RegistryError(400, "The body is not JSON") from None
        if not isinstance(body, dict):
            raise RegistryError(400, "The body is not a JSON object")
        return body

    def schema(self) -> Schema:
        body = self.json()
        text, type_ = body.get("schema"), schema_type(body.get("schemaType"))
        if not isinstance(text, str) or not text.strip():
            raise RegistryError(42201, "Empty schema")
        if has_too_many_values(text):
            raise RegistryError(42201, f"The schema has more than {MOST_VALUES} values")
        references = body.get("references") or []
        if not isinstance(references, list):
            raise RegistryError(42201, "Invalid references")
        try:
            found = [
                Reference(str(r["name"]), str(r["subject"]), int(r["version"])) for r in references
            ]
        except (KeyError, TypeError, ValueError):
            raise RegistryError(42201, "Invalid references") from None
        return Schema(text, type_, tuple(found))

    def page(self, rows: list[Row]) -> list[Row]:
        """The part of a list that `offset` and `limit` ask for; a negative limit means all."""
        offset, limit = self.number("offset", 0), self.number("limit", -1)
        return rows[offset:] if limit < 0 else rows[offset : offset + limit]


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    content_type: str = CONTENT_TYPE


Handler = Callable[[Request], object]


class RegistryApi:
    """Answers requests: a method, a target (path and query, still encoded), a body."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry

    def answer(self, method: str, target: str, body: bytes = b"") -> Answer:
        try:
            return _answer(200, self._handle(method, target, body))
        except RegistryError as refusal:
            return error_answer(refusal.status, str(refusal), refusal.code)
        except UnavailableError as failure:
            return error_answer(500, f"Error in the backend data store: {failure}", 50001)
        except Exception:  # whatever it is, the client gets an answer
            LOG.exception("%s %s failed", method, target[:200])
            return error_answer(500, "Internal Server Error")

    def _handle(self, method: str, target: str, body: bytes) -> object:
        parts = urlsplit(target)
        path = parts.path.rstrip("/") or "/"
        known = False
        for pattern, handlers in ROUTES:
            # Matched before decoding: a subject may hold a slash.
            if (match := pattern.fullmatch(path)) is None:
                continue
            known = True
            if method in handlers:
                parameters = {name: unquote(value) for name, value in match.groupdict().items()}
                query = dict(parse_qsl(parts.query, keep_blank_values=True))
                return handlers[method](Request(self._registry, parameters, query, body))
        if known:
            raise RegistryError(405, "HTTP 405 Method Not Allowed")
        raise RegistryError(404, "HTTP 404 Not Found")


def _answer(status: int, value: object) -> Answer:
    text = value if isinstance(value, Raw) else json.dumps(value, ensure_ascii=False)
    return Answer(status, text.encode())


def error_answer(status: int, message: str, code: int | None = None) -> Answer:
    return _answer(status, {"error_code": status if code is None else code, "message": message})


class Raw(str):
    """A text that is the answer's body as it stands."""

    __slots__ = ()


def _schema(schema: Schema) -> dict[str, object]:
    shown: dict[str, object] = {"schema": schema.text}
    if schema.type != "AVRO":
        shown["schemaType"] = schema.type
    if schema.references:
        shown["references"] = [
            {"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references
        ]
    return shown


def _place(place: RegisteredSchema) -> dict[str, object]:
    head = {"subject": place.subject, "version": place.version, "id": place.id}
    return head | _schema(place.schema)


def _formatted(request: Request, shown: dict[str, object], schema: Schema) -> dict[str, object]:
    if request.query.get("format") == "serialized":
        shown["schema"] = request.registry.serialized(schema)
    return shown


def _about(request: Request) -> object:
    return {}


def _types(request: Request) -> object:
    return list(LANGUAGES)


def _contexts(request: Request) -> object:
    return request.page(["."])


def _cluster(request: Request) -> object:
    clusters = {"kafka-cluster": "", "schema-registry-cluster": "headrace"}
    return {"scope": {"path": [], "clusters": clusters}, "id": ""}


def _schemas(request: Request) -> object:
    found = request.registry.schemas(
        request.query.get("subjectPrefix", ""), request.flag("deleted"), request.flag("latestOnly")
    )
    return [_place(place) for place in request.page(found)]


def _by_id(request: Request) -> object:
    schema = request.registry.by_id(request.id, request.query.get("subject"))
    shown = _formatted(request, _schema(schema), schema)
    if request.flag("fetchMaxId"):
        shown["maxId"] = request.registry.last_id
    return shown


def _text_by_id(request: Request) -> object:
    return Raw(request.registry.by_id(request.id, request.query.get("subject")).text)


def _subjects_by_id(request: Request) -> object:
    places = _places(request)
    return request.page(sorted({place.subject for place in places}))


def _versions_by_id(request: Request) -> object:
    return [{"subject": p.subject, "version": p.version} for p in request.page(_places(request))]


def _places(request: Request) -> list[RegisteredSchema]:
    return request.registry.places_of(
        request.id, request.query.get("subject"), request.flag("deleted")
    )


def _subjects(request: Request) -> object:
    prefix = request.query.get("subjectPrefix", "")
    # A prefix may name the default context, which all our subjects are in.
    prefix = "" if prefix in (":*:", ":.:") else prefix
    return request.page(
        request.registry.subjects(prefix, request.flag("deleted"), request.flag("deletedOnly"))
    )


def _lookup(request: Request) -> object:
    place = request.registry.lookup(
        request.subject, request.schema(), request.flag("normalize"), request.flag("deleted")
    )
    return _formatted(request, _place(place), place.schema)


def _delete_subject(request: Request) -> object:
    return request.registry.delete_subject(request.subject, request.flag("permanent"))


def _latest(request: Request) -> object:
    place = request.registry.version(request.subject, "latest", request.flag("deleted"))
    return _formatted(request, _place(place), place.schema)


def _versions(request: Request) -> object:
    return request.page(request.registry.versions(request.subject, request.flag("deleted")))


def _register(request: Request) -> object:
    body = request.json()
    id_ = body.get("id")
    wanted = id_ if isinstance(id_, int) and id_ > 0 else None
    place = request.registry.register(
        request.subject, request.schema(), request.flag("normalize"), wanted
    )
    return {"id": place.id}


def _version(request: Request) -> object:
    place = request.registry.version(request.subject, request.version, request.flag("deleted"))
    return _formatted(request, _place(place), place.schema)


def _text_of_version(request: Request) -> object:
    place = request.registry.version(request.subject, request.version, request.flag("deleted"))
    return Raw(place.text)


def _delete_version(request: Request) -> object:
    return request.registry.delete_version(
        request.subject, request.version, request.flag("permanent")
    )


def _referenced_by(request: Request) -> object:
    return request.page(request.registry.referenced_by(request.subject, request.version))


def _check(request: Request) -> object:
    found = request.registry.check(
        request.subject, request.schema(), request.path.get("version"), request.flag("normalize")
    )
    shown: dict[str, object] = {"is_compatible": not found}
    if request.flag("verbose"):
        shown["messages"] = found
    return shown


def _level(request: Request) -> object:
    subject = request.path.get("subject")
    return {"compatibilityLevel": request.registry.level(subject, request.flag("defaultToGlobal"))}


def _set_level(request: Request) -> object:
    body = request.json()
    level = body.get("compatibility")
    if not isinstance(level, str):
        raise refusals.invalid_level()
    kept = request.registry.set_level(level, request.path.get("subject"))
    return body | {"compatibility": kept}


def _delete_level(request: Request) -> object:
    return {"compatibilityLevel": request.registry.delete_level(request.path.get("subject"))}


def _mode(request: Request) -> object:
    subject = request.path.get("subject")
    return {"mode": request.registry.mode(subject, request.flag("defaultToGlobal"))}


def _set_mode(request: Request) -> object:
    mode = request.json().get("mode")
    if not isinstance(mode, str):
        raise refusals.invalid_mode()
    subject = request.path.get("subject")
    return {"mode": request.registry.set_mode(mode, subject, request.flag("force"))}


def _delete_mode(request: Request) -> object:
    return {"mode": request.registry.delete_mode(request.path.get("subject"))}


def _route(path: str, **handlers: Handler) -> tuple[re.Pattern[str], dict[str, Handler]]:
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)), handlers


_SETTING = {"GET": _level, "PUT": _set_level, "DELETE": _delete_level}
_MODE = {"GET": _mode, "PUT": _set_mode, "DELETE": _delete_mode}

ROUTES = (
    _route("/", GET=_about),
    _route("/contexts", GET=_contexts),
    _route("/v1/metadata/id", GET=_cluster),
    _route("/schemas", GET=_schemas),
    _route("/schemas/types", GET=_types),
    _route("/schemas/ids/{id}", GET=_by_id),
    _route("/schemas/ids/{id}/schema", GET=_text_by_id),
    _route("/schemas/ids/{id}/subjects", GET=_subjects_by_id),
    _route("/schemas/ids/{id}/versions", GET=_versions_by_id),
    _route("/subjects", GET=_subjects),
    _route("/subjects/{subject}", POST=_lookup, DELETE=_delete_subject),
    _route("/subjects/{subject}/metadata", GET=_latest),
    _route("/subjects/{subject}/versions", GET=_versions, POST=_register),
    _route("/subjects/{subject}/versions/{version}", GET=_version, DELETE=_delete_version),
    _route("/subjects/{subject}/versions/{version}/schema", GET=_text_of_version),
    _route("/subjects/{subject}/versions/{version}/referencedby", GET=_referenced_by),
    _route("/compatibility/subjects/{subject}/versions", POST=_check),
    _route("/compatibility/subjects/{subject}/versions/{version}", POST=_check),
    _route("/config", **_SETTING),
    _route("/config/{subject}", **_SETTING),
    _route("/mode", **_MODE),
    _route("/mode/{subject}", **_MODE),
)
