"""Registry clients: over HTTP for any registry, or in-process."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import quote

import httpx

from headrace.kafka.http_access import HttpAccess
from headrace.model.errors import UnavailableError
from headrace.model.secrets import without_login
from headrace.model.settings import REGISTRY_SETTINGS, Settings
from headrace.registry.api import CONTENT_TYPE, RegistryApi
from headrace.registry.core import SchemaRegistry
from headrace.registry.schema import (
    Reference,
    RegisteredSchema,
    RegistryError,
    Schema,
    schema_type,
)
from headrace.schemas import SchemaType

TIMEOUT_SECONDS = 10.0
ATTEMPTS = 3
BACKOFF_SECONDS = 0.2
# Answers that another attempt, or another of several registries, may better.
RETRIABLE = frozenset({408, 429, 500, 502, 503, 504})

References = Sequence[Reference]


class RegistryClient(Protocol):
    """Schemas by subject and by id. What does not exist is None; a refusal is a RegistryError."""

    def register(
        self, subject: str, text: str, type: SchemaType = "AVRO", references: References = ()
    ) -> int:
        """Registers a schema; its id, also if it was there already."""

    def lookup(
        self, subject: str, text: str, type: SchemaType = "AVRO", references: References = ()
    ) -> RegisteredSchema | None:
        """Where under the subject this schema stands."""

    def check_compatibility(
        self, subject: str, text: str, type: SchemaType = "AVRO", references: References = ()
    ) -> list[str]:
        """Why the schema could not be registered; nothing if it could."""

    def latest(self, subject: str) -> RegisteredSchema | None: ...

    def version(self, subject: str, version: int) -> RegisteredSchema | None: ...

    def versions(self, subject: str) -> list[RegisteredSchema]:
        """All versions of a subject, oldest first; none if there is no such subject."""

    def by_id(self, id: int) -> Schema | None: ...

    def referenced(self, schema: Schema | RegisteredSchema) -> dict[str, str]:
        """The texts of the schemas that a schema refers to, also indirectly, by name."""

    def subjects(self) -> list[str]: ...

    def delete_subject(self, subject: str, permanent: bool = False) -> list[int]:
        """Deletes a subject; the versions it had, none if there is no such subject."""


class _Calls:
    """The client's calls in terms of requests; `_ask` is what differs."""

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        raise NotImplementedError

    def register(
        self, subject: str, text: str, type: SchemaType = "AVRO", references: References = ()
    ) -> int:
        body = _body(text, type, references)
        id_: int = self._ask("POST", f"/subjects/{_quote(subject)}/versions", body)["id"]
        return id_

    def lookup(
        self, subject: str, text: str, type: SchemaType = "AVRO", references: References = ()
    ) -> RegisteredSchema | None:
        body = _body(text, type, references)
        return _registered(self._find("POST", f"/subjects/{_quote(subject)}", body))

    def check_compatibility(
        self, subject: str, text: str, type: SchemaType = "AVRO", references: References = ()
    ) -> list[str]:
        path = f"/compatibility/subjects/{_quote(subject)}/versions?verbose=true"
        answer = self._find("POST", path, _body(text, type, references))
        if answer is None or answer.get("is_compatible"):
            return []
        messages: list[str] = answer.get("messages") or ["Schemas are incompatible"]
        return messages

    def latest(self, subject: str) -> RegisteredSchema | None:
        return _registered(self._find("GET", f"/subjects/{_quote(subject)}/versions/latest"))

    def version(self, subject: str, version: int) -> RegisteredSchema | None:
        return _registered(self._find("GET", f"/subjects/{_quote(subject)}/versions/{version}"))

    def versions(self, subject: str) -> list[RegisteredSchema]:
        numbers: list[int] = self._find("GET", f"/subjects/{_quote(subject)}/versions") or []
        found = (self.version(subject, number) for number in sorted(numbers))
        return [one for one in found if one is not None]

    def by_id(self, id: int) -> Schema | None:
        answer = self._find("GET", f"/schemas/ids/{id}")
        return None if answer is None else _schema(answer)

    def referenced(self, schema: Schema | RegisteredSchema) -> dict[str, str]:
        found: dict[str, str] = {}
        for reference in schema.references:
            imported = self.version(reference.subject, reference.version)
            if imported is not None:
                found |= self.referenced(imported) | {reference.name: imported.text}
        return found

    def subjects(self) -> list[str]:
        names: list[str] = self._ask("GET", "/subjects")
        return names

    def delete_subject(self, subject: str, permanent: bool = False) -> list[int]:
        suffix = "?permanent=true" if permanent else ""
        versions: list[int] | None = self._find("DELETE", f"/subjects/{_quote(subject)}{suffix}")
        return versions or []

    def _find(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer; None if what is asked for is not there."""
        try:
            return self._ask(method, path, body)
        except RegistryError as refusal:
            if refusal.status == 404:
                return None
            raise


class HttpRegistry(_Calls):
    """Any registry with Confluent's API. `url` may name several, to be tried in turn.

    `access`: whom to trust, and the login.
    """

    def __init__(
        self,
        url: str,
        access: HttpAccess | None = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self.url = url
        self._urls = [part.strip().rstrip("/") for part in url.split(",") if part.strip()]
        self._access = access or HttpAccess()
        headers = {"Content-Type": CONTENT_TYPE, "Accept": f"{CONTENT_TYPE}, application/json"}
        self._client = httpx.Client(
            headers=headers, timeout=timeout, verify=self._access.verify, auth=self._access.auth
        )

    @staticmethod
    def of(url: str, settings: Settings) -> HttpRegistry:
        """Reached as the settings of a server say."""
        own = settings.service(REGISTRY_SETTINGS)
        return HttpRegistry(url, HttpAccess.of(url, own, REGISTRY_SETTINGS))

    def close(self) -> None:
        self._client.close()

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        reason = "it has no address"
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(BACKOFF_SECONDS * 2**attempt)
            for url in self._urls:
                try:
                    answer = self._client.request(method, url + path, json=body)
                except (httpx.HTTPError, httpx.InvalidURL) as failure:
                    reason = self._access.reason(failure)
                    continue
                if answer.status_code in RETRIABLE:
                    reason = f"status {answer.status_code} {answer.text[:200]}"
                    continue
                if answer.status_code in (401, 403):
                    raise RegistryError(answer.status_code, self._refusal(answer))
                return _result(answer)
        raise UnavailableError(
            f"The schema registry at {without_login(self.url)} does not answer: {reason}"
        )

    def _refusal(self, answer: httpx.Response) -> str:
        told = self._access.refusal(answer.status_code)
        return f"The schema registry at {without_login(self.url)} {told}."


class InMemoryRegistry(_Calls):
    """A registry in this process, with the same rules and the same answers, without a server."""

    def __init__(self, registry: SchemaRegistry | None = None) -> None:
        self.registry = registry or SchemaRegistry()
        self._api = RegistryApi(self.registry)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        content = b"" if body is None else json.dumps(body).encode()
        answer = self._api.answer(method, path, content)
        return _checked(answer.status, json.loads(answer.body))


def _result(answer: httpx.Response) -> Any:
    try:
        content = answer.json()
    except ValueError:
        content = {"message": answer.text[:200] or answer.reason_phrase}
    return _checked(answer.status_code, content)


def _checked(status: int, content: Any) -> Any:
    if 200 <= status < 300:
        return content
    fields = content if isinstance(content, dict) else {}
    raise RegistryError(
        int(fields.get("error_code") or status), str(fields.get("message") or f"status {status}")
    )


def _body(text: str, type_: SchemaType, references: References) -> dict[str, object]:
    body: dict[str, object] = {"schema": text}
    if type_ != "AVRO":
        body["schemaType"] = type_
    if references:
        body["references"] = [
            {"name": r.name, "subject": r.subject, "version": r.version} for r in references
        ]
    return body


def _schema(answer: Mapping[str, Any]) -> Schema:
    references = tuple(
        Reference(r["name"], r["subject"], r["version"]) for r in answer.get("references") or ()
    )
    return Schema(answer["schema"], schema_type(answer.get("schemaType")), references)


def _registered(answer: Mapping[str, Any] | None) -> RegisteredSchema | None:
    if answer is None:
        return None
    schema = _schema(answer)
    return RegisteredSchema(
        answer["subject"],
        answer["version"],
        answer["id"],
        schema.text,
        schema.type,
        schema.references,
    )


def _quote(subject: str) -> str:
    return quote(subject, safe="")
