"""Services behind TLS and a login: the schema registry and Connect."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from authority import Authority, server_context
from connect_worker import connect_worker
from headrace.engine.statements.connect_client import ConnectWorker
from headrace.kafka.http_access import HttpAccess
from headrace.model.errors import HeadraceError, UnavailableError
from headrace.model.settings import CONNECT_SETTINGS, REGISTRY_SETTINGS, Settings
from headrace.registry.client import HttpRegistry
from headrace.registry.core import SchemaRegistry
from headrace.registry.schema import RegistryError
from secured_broker import CLIENT_SECRET, USER, TokenEndpoint, token_endpoint
from secured_registry import SecuredRegistry, basic, secured_registry

REGISTRY = "ksql.schema.registry"
MODULES = "org.apache.kafka.common.security"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def context(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    return server_context(authority, tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def stores(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """As settings of TLS, without the name of the service."""
    folder = tmp_path_factory.mktemp("stores")
    (folder / "ca.pem").write_text(authority.pem())
    (folder / "me.p12").write_bytes(authority.issue("me").pkcs12("st0re"))
    return {
        "ssl.truststore.location": str(folder / "ca.pem"),
        "ssl.keystore.location": str(folder / "me.p12"),
        "ssl.keystore.password": "st0re",
    }


@pytest.fixture
def secured(context: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[SecuredRegistry]:
    monkeypatch.setattr("headrace.registry.client.BACKOFF_SECONDS", 0.001)
    with secured_registry(SchemaRegistry(), context) as registry:
        registry.logins = {basic("ann", "hunter2")}
        yield registry


@pytest.fixture
def tokens() -> Iterator[TokenEndpoint]:
    with token_endpoint() as endpoint:
        yield endpoint


def _named(settings: dict[str, str], prefix: str = REGISTRY) -> dict[str, str]:
    return {f"{prefix}.{name}": value for name, value in settings.items()}


def _registry(registry: SecuredRegistry, settings: dict[str, str]) -> HttpRegistry:
    given = Settings(settings).service(REGISTRY_SETTINGS)
    return HttpRegistry(registry.url, HttpAccess.of(registry.url, given, REGISTRY_SETTINGS))


LOGIN = {"basic.auth.user.info": "ann:hunter2"}


def test_a_registry_with_its_own_stores(secured: SecuredRegistry, stores: dict[str, str]) -> None:
    client = _registry(secured, _named(stores | LOGIN))
    assert client.register("s", '"int"') == 1
    assert client.subjects() == ["s"]


def test_stores_of_all_clients_serve_the_registry_too(
    secured: SecuredRegistry, stores: dict[str, str]
) -> None:
    """As in ksqlDB: what the registry has of its own wins."""
    assert _registry(secured, stores | _named(LOGIN)).subjects() == []
    wrong = {"ssl.truststore.location": "/no/such"}
    assert _registry(secured, stores | wrong | _named(stores | LOGIN)).subjects() == []


@pytest.mark.parametrize(
    ("given", "login"),
    [
        ({"basic.auth.credentials.source": "USER_INFO", **LOGIN}, basic("ann", "hunter2")),
        ({"basic.auth.user.info": "ann:a:b"}, basic("ann", "a:b")),
        (
            {
                "basic.auth.credentials.source": "SASL_INHERIT",
                "sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required username='bob' "
                "password='hunter3';",
            },
            basic("bob", "hunter3"),
        ),
        ({"bearer.auth.token": "t0ken"}, "Bearer t0ken"),
        (
            {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "t0ken"},
            "Bearer t0ken",
        ),
    ],
)
def test_logins(
    secured: SecuredRegistry, stores: dict[str, str], given: dict[str, str], login: str
) -> None:
    secured.logins = {login}
    assert _registry(secured, _named(stores | given)).subjects() == []
    assert secured.seen == {login}


def test_a_login_in_the_address(secured: SecuredRegistry, stores: dict[str, str]) -> None:
    secured.url = secured.url.replace("https://", "https://ann:hunter2@")
    assert _registry(secured, _named(stores)).subjects() == []


@pytest.mark.parametrize("inherited", [False, True])
def test_tokens_of_an_endpoint(
    secured: SecuredRegistry, stores: dict[str, str], tokens: TokenEndpoint, inherited: bool
) -> None:
    given = {
        "bearer.auth.credentials.source": "OAUTHBEARER",
        "bearer.auth.issuer.endpoint.url": tokens.url,
        "bearer.auth.client.id": USER,
        "bearer.auth.client.secret": CLIENT_SECRET,
        "bearer.auth.scope": "registry",
    }
    shared: dict[str, str] = {}
    if inherited:
        given = {"bearer.auth.credentials.source": "SASL_OAUTHBEARER_INHERIT"}
        shared = {
            "sasl.oauthbearer.token.endpoint.url": tokens.url,
            "sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required "
            f"clientId='{USER}' clientSecret='{CLIENT_SECRET}';",
        }
    client = _registry(secured, shared | _named(stores | given))
    tokens.token = lambda: "first"  # type: ignore[method-assign]
    secured.logins = {"Bearer first"}
    assert client.subjects() == client.subjects() == []
    assert tokens.given == 1
    # One that is no longer taken is asked for again.
    tokens.token = lambda: "second"  # type: ignore[method-assign]
    secured.logins = {"Bearer second"}
    with pytest.raises(RegistryError):
        client.subjects()
    assert client.subjects() == []


def test_a_wrong_client_secret(
    secured: SecuredRegistry, stores: dict[str, str], tokens: TokenEndpoint
) -> None:
    given = {
        "bearer.auth.credentials.source": "OAUTHBEARER",
        "bearer.auth.issuer.endpoint.url": tokens.url,
        "bearer.auth.client.id": USER,
        "bearer.auth.client.secret": "hunter3",
    }
    with pytest.raises(UnavailableError, match=f"endpoint {tokens.url} gives no token") as caught:
        _registry(secured, _named(stores | given)).subjects()
    assert "hunter3" not in caught.value.message


@pytest.mark.parametrize("given", [{}, {"basic.auth.user.info": "ann:hunter3"}])
def test_a_wrong_login(
    secured: SecuredRegistry, stores: dict[str, str], given: dict[str, str]
) -> None:
    told = f"The schema registry at {secured.url} refuses the request \\(status 401\\)"
    with pytest.raises(RegistryError, match=told) as caught:
        _registry(secured, _named(stores | given)).subjects()
    assert "check ksql.schema.registry.basic.auth.*" in caught.value.message
    assert "hunter3" not in caught.value.message


def test_a_certificate_that_is_not_trusted(
    secured: SecuredRegistry, stores: dict[str, str], tmp_path: Path
) -> None:
    other = tmp_path / "other.pem"
    other.write_text(Authority("other").pem())
    given = stores | LOGIN | {"ssl.truststore.location": str(other)}
    told = f"registry at {secured.url} does not answer: its certificate is not trusted"
    with pytest.raises(UnavailableError, match=told) as caught:
        _registry(secured, _named(given)).subjects()
    assert caught.value.message.endswith("check ksql.schema.registry.ssl.truststore.location")


def test_no_client_certificate(secured: SecuredRegistry, stores: dict[str, str]) -> None:
    given = {"ssl.truststore.location": stores["ssl.truststore.location"], **LOGIN}
    with pytest.raises(UnavailableError, match="it asks for a client certificate: set ksql"):
        _registry(secured, _named(given)).subjects()


def test_the_name_in_the_certificate(
    authority: Authority,
    stores: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headrace.registry.client.BACKOFF_SECONDS", 0.001)
    elsewhere = server_context(authority, tmp_path, "elsewhere")
    with secured_registry(SchemaRegistry(), elsewhere) as registry:
        registry.logins = {basic("ann", "hunter2")}
        with pytest.raises(UnavailableError, match="IP address mismatch"):
            _registry(registry, _named(stores | LOGIN)).subjects()
        unchecked = {"ssl.endpoint.identification.algorithm": ""}
        assert _registry(registry, _named(stores | LOGIN | unchecked)).subjects() == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ssl.truststore.location": "/no/such"}, r"truststore\.location /no/such cannot be read"),
        ({"basic.auth.user.info": "hunter2"}, "is not of the form user:password"),
        ({"basic.auth.credentials.source": "CUSTOM"}, "credentials.source CUSTOM is not known"),
        ({"basic.auth.credentials.source": "SASL_INHERIT"}, "names no user and password"),
        ({"bearer.auth.credentials.source": "CUSTOM"}, "classes of your own are Java's"),
        ({"bearer.auth.credentials.source": "STATIC_TOKEN"}, "bearer.auth.token is not set"),
        ({"bearer.auth.credentials.source": "OAUTHBEARER"}, "have to be set"),
        ({"bearer.auth.token": "hunter2", **LOGIN}, "both basic.auth.* and bearer.auth.*"),
    ],
)
def test_what_cannot_be_is_refused_at_the_start(given: dict[str, str], message: str) -> None:
    settings = Settings(_named(given)).service(REGISTRY_SETTINGS)
    with pytest.raises(HeadraceError, match=message) as caught:
        HttpAccess.of("https://registry", settings, REGISTRY_SETTINGS)
    assert caught.value.message.startswith("ksql.schema.registry.*: ")
    assert "hunter2" not in caught.value.message


def test_a_setting_that_nobody_reads(caplog: pytest.LogCaptureFixture) -> None:
    HttpAccess.of("http://registry", {"proxy.host": "x"}, REGISTRY_SETTINGS)
    assert "ksql.schema.registry.proxy.host has no effect" in caplog.text


@pytest.mark.parametrize("kind", ["user", "file", "token"])
def test_connect(
    context: ssl.SSLContext, stores: dict[str, str], tmp_path: Path, kind: str
) -> None:
    file = tmp_path / "login.properties"
    file.write_text("username=ann\npassword=hunter2\n")
    given = {
        "user": LOGIN,
        "token": {"bearer.auth.token": "t0ken"},
        "file": {
            "basic.auth.credentials.source": "FILE",
            "basic.auth.credentials.file": str(file),
        },
    }[kind]
    login = "Bearer t0ken" if kind == "token" else basic("ann", "hunter2")
    with connect_worker(context, login) as worker:
        settings = _named(stores | given, "ksql.connect") | worker.settings
        assert ConnectWorker.of(Settings(settings)).connectors().content == []


def test_a_connect_worker_that_refuses(
    context: ssl.SSLContext, stores: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.engine.statements.connect_client.BACKOFF_SECONDS", 0.001)
    with connect_worker(context, basic("ann", "hunter2")) as worker:
        url = worker.settings["ksql.connect.url"]
        settings = worker.settings | _named(stores, "ksql.connect")
        reply = ConnectWorker.of(Settings(settings)).connectors()
        assert (reply.status, reply.content) == (401, None)
        assert f"Kafka Connect at {url} refuses the request" in str(reply.error)
        with pytest.raises(UnavailableError, match="its certificate is not trusted") as caught:
            ConnectWorker.of(Settings(worker.settings)).connectors()
        assert url in caught.value.message
        assert caught.value.message.endswith("check ksql.connect.ssl.truststore.location")


def test_a_login_file_that_is_not_one(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    for file, message in {tmp_path / "none": "No such file", empty: "lacks username"}.items():
        given = {
            "basic.auth.credentials.source": "FILE",
            "basic.auth.credentials.file": str(file),
        }
        with pytest.raises(HeadraceError, match=message):
            HttpAccess.of("http://connect", given, CONNECT_SETTINGS)
