"""HTTP access to services beside Kafka, the schema registry and Connect: whom TLS trusts, which
certificate is shown, and the login. The settings are those of Confluent's clients."""

from __future__ import annotations

import logging
import ssl
import tempfile
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import httpx
import javaproperties

from headrace.kafka import sasl
from headrace.kafka.key_stores import Identity, identity, trusted
from headrace.model.errors import HeadraceError, UnavailableError
from headrace.model.secrets import without_login

LOG = logging.getLogger("headrace.kafka")

Settings = Mapping[str, str]

# A token is asked for again so long before it expires.
_EARLY_SECONDS = 30.0
_LIFE_SECONDS = 300.0  # of a token whose endpoint does not tell
_OAUTH = "bearer.auth."
_KNOWN = frozenset(
    {
        *("url", "request.timeout.ms"),
        *(f"basic.auth.{name}" for name in ("credentials.source", "user.info")),
        *(f"basic.auth.credentials.{name}" for name in ("file", "reload")),
        *(f"bearer.auth.{name}" for name in ("credentials.source", "token", "client.id")),
        *(f"bearer.auth.{name}" for name in ("client.secret", "scope", "issuer.endpoint.url")),
        *("bearer.auth.logical.cluster", "bearer.auth.identity.pool.id"),
    }
)


@dataclass(frozen=True)
class HttpAccess:
    """What an HTTP client of the service is made with. `prefix` is that of its settings."""

    prefix: str = ""
    verify: ssl.SSLContext | bool = True
    auth: httpx.Auth | None = None

    @staticmethod
    def of(url: str, settings: Settings, prefix: str) -> HttpAccess:
        """Of settings without their prefix, with those for all clients below them."""
        for name in settings:
            if name not in _KNOWN and not name.startswith(("ssl.", "sasl.")):
                _warn(f"{prefix}{name}")
        try:
            addresses = (url, settings.get(f"{_OAUTH}issuer.endpoint.url", ""))
            secure = any("https://" in address.lower() for address in addresses)
            context = _tls_context(settings) if secure else True
            return HttpAccess(prefix, context, _login(settings))
        except HeadraceError as error:
            raise HeadraceError(f"{prefix}*: {error.message}") from None

    def reason(self, failure: Exception) -> str:
        """Why a request failed, in words that name the setting to look at."""
        for each in _causes(failure):
            if isinstance(each, ssl.SSLCertVerificationError):
                return (
                    f"its certificate is not trusted ({each.verify_message}): check "
                    f"{self.prefix}ssl.truststore.location"
                )
            if isinstance(each, ssl.SSLError) and "CERTIFICATE_REQUIRED" in str(each):
                return f"it asks for a client certificate: set {self.prefix}ssl.keystore.location"
        return str(failure) or type(failure).__name__

    def refusal(self, status: int) -> str:
        """What a refused login is told as."""
        told = "a wrong login" if self.auth else "no login"
        return (
            f"refuses the request (status {status}), which it takes for one with {told}: check "
            f"{self.prefix}basic.auth.* and {self.prefix}bearer.auth.*"
        )


@cache
def _warn(name: str) -> None:
    """Once, however often it is read."""
    LOG.warning("The setting %s has no effect here", name)


def _causes(failure: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    each: BaseException | None = failure
    while each is not None and each not in found:
        found.append(each)
        each = each.__cause__ or each.__context__
    return found


def _tls_context(settings: Settings) -> ssl.SSLContext:
    authorities = trusted(settings)
    context = (
        httpx.create_ssl_context()
        if authorities is None
        else ssl.create_default_context(cadata=authorities)
    )
    if me := identity(settings):
        _show(context, me)
    algorithm = settings.get("ssl.endpoint.identification.algorithm", "https")
    if algorithm.lower() in ("", "none"):  # Java's clients switch the check off with either
        context.check_hostname = False
    return context


def _show(context: ssl.SSLContext, me: Identity) -> None:
    # Python reads keys from files alone: this one is the user's only, and gone at once.
    with tempfile.TemporaryDirectory(prefix="headrace-key-") as folder:  # 0700
        file = Path(folder) / "identity.pem"
        file.touch(0o600)
        file.write_text(me.key + me.chain)
        context.load_cert_chain(file)


def _login(settings: Settings) -> httpx.Auth | None:
    basic, bearer = _basic(settings), _bearer(settings)
    if basic is not None and bearer is not None:
        raise HeadraceError("both basic.auth.* and bearer.auth.* name a login: set one of them.")
    return basic or bearer


def _basic(settings: Settings) -> httpx.Auth | None:
    source = settings.get("basic.auth.credentials.source", "").upper()
    match source:
        case "FILE":
            return _of_file(settings)
        case "SASL_INHERIT":
            user = sasl.user_of(settings)
            if user is None:
                raise HeadraceError(
                    "basic.auth.credentials.source is SASL_INHERIT, but sasl.jaas.config names no "
                    "user and password."
                )
            return httpx.BasicAuth(*user)
        case "" | "URL" | "USER_INFO" | "NONE":
            if not (told := settings.get("basic.auth.user.info")):
                return None  # an address may hold a login, which the HTTP client uses itself
            user_name, colon, password = told.partition(":")
            if not colon:
                raise HeadraceError("basic.auth.user.info is not of the form user:password.")
            return httpx.BasicAuth(user_name, password)
    raise HeadraceError(
        f"basic.auth.credentials.source {source} is not known: it is USER_INFO, URL, SASL_INHERIT, "
        "FILE or NONE."
    )


def _of_file(settings: Settings) -> httpx.Auth:
    file = settings.get("basic.auth.credentials.file")
    if not file:
        raise HeadraceError(
            "basic.auth.credentials.source is FILE, but basic.auth.credentials.file is not set."
        )
    try:
        with Path(file).open("rb") as opened:
            found = javaproperties.load(opened)
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or "it is no properties file"
        raise HeadraceError(
            f"basic.auth.credentials.file {file} cannot be read: {reason}."
        ) from None
    if "username" not in found or "password" not in found:
        raise HeadraceError(f"basic.auth.credentials.file {file} lacks username or password.")
    return httpx.BasicAuth(found["username"], found["password"])


def _bearer(settings: Settings) -> httpx.Auth | None:
    source = settings.get("bearer.auth.credentials.source", "").upper()
    match source:
        case "" | "STATIC_TOKEN":
            if token := settings.get("bearer.auth.token"):
                return _Bearer(token)
            if source:
                raise HeadraceError(
                    "bearer.auth.credentials.source is STATIC_TOKEN, but bearer.auth.token is not "
                    "set."
                )
            return None
        case "OAUTHBEARER" | "SASL_OAUTHBEARER_INHERIT":
            return _of_endpoint(settings, inherited=source != "OAUTHBEARER")
    raise HeadraceError(
        f"bearer.auth.credentials.source {source} is not known: it is STATIC_TOKEN, OAUTHBEARER or "
        "SASL_OAUTHBEARER_INHERIT (classes of your own are Java's)."
    )


def _of_endpoint(settings: Settings, inherited: bool) -> httpx.Auth:
    if inherited:
        client = sasl.client_of(settings)
        url = settings.get("sasl.oauthbearer.token.endpoint.url")
    else:
        names = {"clientId": "client.id", "clientSecret": "client.secret", "scope": "scope"}
        given = {key: settings.get(_OAUTH + name, "") for key, name in names.items()}
        client = {key: value for key, value in given.items() if value}
        url = settings.get(f"{_OAUTH}issuer.endpoint.url")
    if not url or "clientId" not in client or "clientSecret" not in client:
        raise HeadraceError(
            "sasl.jaas.config and sasl.oauthbearer.token.endpoint.url name no token endpoint with "
            "clientId and clientSecret."
            if inherited
            else "bearer.auth.issuer.endpoint.url, bearer.auth.client.id and "
            "bearer.auth.client.secret have to be set."
        )
    pool = {
        "target-sr-cluster": settings.get(f"{_OAUTH}logical.cluster"),
        "Confluent-Identity-Pool-Id": settings.get(f"{_OAUTH}identity.pool.id"),
    }
    return _TokenEndpoint(url, client, {name: value for name, value in pool.items() if value})


class _Bearer(httpx.Auth):
    """A token that never changes."""

    def __init__(self, token: str) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


class _TokenEndpoint(httpx.Auth):
    """Tokens of an OAuth endpoint, for a client's id and secret; asked for again in time."""

    requires_response_body = True

    def __init__(self, url: str, client: Settings, headers: Settings) -> None:
        self._url = url
        self._client = client
        self._headers = dict(headers)
        self._token = ""
        self._until = 0.0

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if time.monotonic() >= self._until:
            self._keep((yield self._asking()))
        request.headers.update({"Authorization": f"Bearer {self._token}", **self._headers})
        answer = yield request
        if answer.status_code == 401:
            self._until = 0.0  # the next request asks again

    def _asking(self) -> httpx.Request:
        form = {"grant_type": "client_credentials"}
        if scope := self._client.get("scope"):
            form["scope"] = scope
        asking = httpx.Request("POST", self._url, data=form)
        login = httpx.BasicAuth(self._client["clientId"], self._client["clientSecret"])
        return next(login.auth_flow(asking))

    def _keep(self, answer: httpx.Response) -> None:
        try:
            told = answer.json() if answer.is_success else {}
            self._token = str(told["access_token"])
            life = float(told.get("expires_in") or _LIFE_SECONDS)
        except (ValueError, KeyError, TypeError):
            raise UnavailableError(
                f"The token endpoint {without_login(self._url)} gives no token (status "
                f"{answer.status_code}): check the client's id and secret."
            ) from None
        self._until = time.monotonic() + max(life - _EARLY_SECONDS, life / 2)
