"""A client for the REST API of a Kafka Connect worker."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from headrace.kafka.http_access import HttpAccess
from headrace.model.errors import HeadraceError, UnavailableError
from headrace.model.secrets import without_login
from headrace.model.settings import CONNECT_SETTINGS, Settings

TIMEOUT_SECONDS = 5.0
ATTEMPTS = 3
BACKOFF_SECONDS = 0.1
CONFLICT = 409
NOT_FOUND = 404


@dataclass(frozen=True)
class Reply:
    """A worker's response: `content` of a success, `error` of a refusal, with its status."""

    status: int
    content: Any = None
    error: str | None = None


class ConnectError(HeadraceError):
    """A refusal of the Connect worker, under its own HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.error_code = status * 100


class ConnectWorker:
    """A Connect worker; requests are retried while it rebalances or fails, not if it refuses."""

    def __init__(
        self, url: str, access: HttpAccess | None = None, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self._url = url.rstrip("/")
        self._access = access or HttpAccess()
        self._timeout = timeout

    @staticmethod
    def of(settings: Settings) -> ConnectWorker:
        worker = ConnectWorker.named(settings)
        if worker is None:
            raise HeadraceError(
                "Connector statements need a Kafka Connect worker, and none is configured. "
                "Set 'ksql.connect.url' to the worker's REST address."
            )
        return worker

    @staticmethod
    def named(settings: Settings) -> ConnectWorker | None:
        """The worker of the settings, which are refused if they cannot be; None if they name
        none."""
        url = settings.text("ksql.connect.url")
        if not url:
            return None
        given = settings.service(CONNECT_SETTINGS)
        timeout = given.get("request.timeout.ms", "")
        return ConnectWorker(
            url,
            HttpAccess.of(url, given, CONNECT_SETTINGS),
            float(timeout) / 1000 if timeout.isdecimal() else TIMEOUT_SECONDS,
        )

    def connectors(self) -> Reply:
        return self._ask("GET", "/connectors")

    def plugins(self) -> Reply:
        return self._ask("GET", "/connector-plugins")

    def validate(self, plugin: str, config: Mapping[str, str]) -> Reply:
        return self._ask("PUT", f"/connector-plugins/{quote(plugin)}/config/validate", config)

    def create(self, name: str, config: Mapping[str, str]) -> Reply:
        return self._ask("POST", "/connectors", {"name": name, "config": config})

    def describe(self, name: str) -> Reply:
        return self._ask("GET", f"/connectors/{quote(name)}")

    def status(self, name: str) -> Reply:
        return self._ask("GET", f"/connectors/{quote(name)}/status")

    def topics(self, name: str) -> Reply:
        return self._ask("GET", f"/connectors/{quote(name)}/topics")

    def delete(self, name: str) -> Reply:
        return self._ask("DELETE", f"/connectors/{quote(name)}")

    def _ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Reply:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                answer = httpx.request(
                    method,
                    self._url + path,
                    json=body,
                    timeout=self._timeout,
                    verify=self._access.verify,
                    auth=self._access.auth,
                )
            except httpx.HTTPError as e:
                if attempt == ATTEMPTS:
                    raise UnavailableError(
                        f"Kafka Connect at {without_login(self._url)} does not answer: "
                        f"{self._access.reason(e)}"
                    ) from e
            else:
                if answer.status_code in (401, 403):
                    told = self._access.refusal(answer.status_code)
                    where = f"Kafka Connect at {without_login(self._url)}"
                    return Reply(answer.status_code, error=f"{where} {told}.")
                passing = answer.status_code == CONFLICT or answer.status_code >= 500
                if not passing or attempt == ATTEMPTS:
                    return _reply(answer)
            time.sleep(BACKOFF_SECONDS * 2**attempt)
        raise AssertionError("unreachable")


def _reply(answer: httpx.Response) -> Reply:
    if not answer.is_success:
        return Reply(answer.status_code, error=answer.text)
    try:
        return Reply(answer.status_code, answer.json() if answer.content else None)
    except ValueError:
        return Reply(answer.status_code, error=f"not JSON: {answer.text}")
