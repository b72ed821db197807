"""Java's logins mean the same to librdkafka and to Spark's client, or are refused at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from authority import Authority
from headrace.kafka.sasl import for_java, for_librdkafka
from headrace.model.errors import HeadraceError

SECURITY = "org.apache.kafka.common.security"
PLAIN = f"{SECURITY}.plain.PlainLoginModule"
SCRAM = f"{SECURITY}.scram.ScramLoginModule"
OAUTH = f"{SECURITY}.oauthbearer.OAuthBearerLoginModule"
HANDLER = "sasl.login.callback.handler.class"
URL = "sasl.oauthbearer.token.endpoint.url"
ENDPOINT = {URL: "https://id.example/token"}


def _jaas(text: str) -> dict[str, str]:
    return {"sasl.jaas.config": text}


@pytest.mark.parametrize("module", [PLAIN, SCRAM])
def test_users(module: str) -> None:
    given = _jaas(f'{module} required username="ann" password="a\\"b; c";')
    assert for_librdkafka(given) == {"sasl.username": "ann", "sasl.password": 'a"b; c'}
    assert for_java(given) == {}


def test_tokens_of_an_endpoint() -> None:
    jaas = f"{OAUTH} required clientId='me' clientSecret='s' scope='a b' extension_pool=\"p\";"
    expected = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://id.example/token",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "a b",
        "sasl.oauthbearer.extensions": "pool=p",
    }
    assert for_librdkafka(_jaas(jaas) | ENDPOINT) == expected


def test_java_is_told_who_fetches_tokens() -> None:
    """Kafka 4.1 knows by itself, the client of Spark has to be told."""
    given = _jaas(f"{OAUTH} required clientId='me' clientSecret='s';") | ENDPOINT
    assert for_java(given)[HANDLER] == f"{SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler"
    old = {HANDLER: f"{SECURITY}.oauthbearer.secured.OAuthBearerLoginCallbackHandler"}
    assert for_java(given | old)[HANDLER] == old[HANDLER]
    assert for_librdkafka(given | old) == for_librdkafka(given)


def test_client_credentials_as_settings_of_their_own() -> None:
    """As Kafka 4.1 has them; the client of Spark is older, and reads them in the login."""
    given = {
        **_jaas(f"{OAUTH} required ;"),
        **ENDPOINT,
        "sasl.oauthbearer.client.credentials.client.id": "me",
        "sasl.oauthbearer.client.credentials.client.secret": 'a"\\b',
        "sasl.oauthbearer.scope": "kafka",
    }
    found = for_librdkafka(given)
    assert found["sasl.oauthbearer.client.id"] == "me"
    assert found["sasl.oauthbearer.client.secret"] == 'a"\\b'
    assert found["sasl.oauthbearer.scope"] == "kafka"
    login = for_java(given)["sasl.jaas.config"]
    assert login == f'{OAUTH} required clientId="me" clientSecret="a\\"\\\\b" scope="kafka";'


def test_the_token_endpoints_authority(tmp_path: Path) -> None:
    authority = Authority()
    file = tmp_path / "ca.pem"
    file.write_text(authority.pem())
    jaas = f"{OAUTH} required clientId='me' clientSecret='s' ssl.truststore.location=\"{file}\";"
    assert for_librdkafka(_jaas(jaas) | ENDPOINT)["https.ca.pem"] == authority.pem()


def test_unsecured_tokens() -> None:
    jaas = f'{OAUTH} required unsecuredLoginStringClaim_sub="ann" unsecuredLoginExtension_x="1"'
    given = _jaas(f'{jaas} unsecuredLoginStringClaim_scope="kafka";')
    assert for_librdkafka(given) == {
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=ann scope=kafka lifeSeconds=3600 extension_x=1",
    }
    assert for_java(given) == {}  # what the Java client does by itself


def test_kerberos() -> None:
    jaas = 'com.sun.security.auth.module.Krb5LoginModule required keyTab="/k" principal="me@X";'
    expected = {"sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "me@X"}
    assert for_librdkafka(_jaas(jaas)) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (_jaas("com.example.Login required;"), r"login module com\.example\.Login, which"),
        (_jaas(f"{PLAIN} required username='ann';"), "PlainLoginModule needs password"),
        (_jaas(f"{SCRAM} required;"), "ScramLoginModule needs username and password"),
        (
            _jaas(f"{SCRAM} required username='a' password='hunter2' tokenauth=\"true\";"),
            "delegation token",
        ),
        (_jaas(f"{OAUTH} required clientId='me';") | ENDPOINT, "needs clientSecret: "),
        (_jaas(f"{OAUTH} required;"), f"needs {URL} and clientId and clientSecret: "),
        (_jaas(f"{OAUTH} required;") | {URL: "file:///token"}, "a token from a file cannot"),
        (
            _jaas(f"{OAUTH} required clientId='a' clientSecret='hunter2' ssl.keystore.type='PEM';")
            | ENDPOINT,
            "cannot show a client certificate",
        ),
        (
            _jaas(
                f"{OAUTH} required unsecuredLoginStringClaim_sub='a' "
                "unsecuredLoginNumberClaim_n='1';"
            ),
            "unsecuredLoginNumberClaim_n cannot be used",
        ),
        (_jaas(f"{OAUTH} required unsecuredLoginStringClaim_x='a';"), "cannot be used"),
        ({HANDLER: "software.amazon.msk.auth.iam.IAMClientCallbackHandler"}, "is a Java class"),
        (
            {"sasl.oauthbearer.jwt.retriever.class": f"{SECURITY}.oauthbearer.FileJwtRetriever"},
            "is a Java class",
        ),
        ({"sasl.mechanism": "AWS_MSK_IAM"}, "sasl.mechanism AWS_MSK_IAM cannot be used"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is not set"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
            r"there is no login: set sasl\.jaas\.config",
        ),
    ],
)
def test_what_cannot_work_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(HeadraceError, match=message) as caught:
        for_librdkafka(given)
    assert "hunter2" not in caught.value.message
