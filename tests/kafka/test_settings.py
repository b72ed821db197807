"""The Java client's settings mean here what they mean there, or are refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from authority import Authority
from headrace.kafka.client import KafkaConnection
from headrace.kafka.settings import client_settings, java_settings
from headrace.model.errors import HeadraceError

_NUMBERS = """
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    sasl.kerberos.min.time.before.relogin sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.oauthbearer.clock.skew.seconds
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
"""
_TEXTS = """
    sasl.client.callback.handler.class sasl.kerberos.kinit.cmd sasl.kerberos.service.name
    sasl.login.class sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
    sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name security.providers
    ssl.engine.factory.class ssl.enabled.protocols ssl.keymanager.algorithm ssl.protocol
    ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
    ssl.keystore.type ssl.truststore.type ssl.client.authentication ssl.client.auth
"""
# Names of Java's client for TLS and logins, with a value each; those with tests of their own aside.
JAVAS = {
    **dict.fromkeys(_NUMBERS.split(), "1"),
    **dict.fromkeys(_TEXTS.split(), "x"),
    "sasl.mechanism": "PLAIN",
    "security.protocol": "PLAINTEXT",
    "ssl.cipher.suites": "TLS_AES_256_GCM_SHA384",
    "ssl.endpoint.identification.algorithm": "https",
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"sasl.mechanism": "SCRAM-SHA-512"}, {"sasl.mechanisms": "SCRAM-SHA-512"}),
        ({"fetch.max.wait.ms": "5"}, {"fetch.wait.max.ms": "5"}),
        ({"buffer.memory": "33554432"}, {"queue.buffering.max.kbytes": "32768"}),
        (
            {"ssl.endpoint.identification.algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
    ],
)
def test_translation(given: dict[str, str], expected: dict[str, str]) -> None:
    assert client_settings(given).values == expected


def test_settings_without_effect_are_named() -> None:
    translated = client_settings({"interceptor.classes": "com.example.X", "client.id": "me"})
    assert translated.values == {"client.id": "me"}
    assert list(translated.without_effect) == ["interceptor.classes"]


def test_stores_become_pem_for_every_client(tmp_path: Path) -> None:
    """Spark's executors and Python's workers need no file of the server's."""
    authority = Authority()
    me = authority.issue("me")
    trust, keys = tmp_path / "ca.pem", tmp_path / "me.p12"
    trust.write_text(authority.pem())
    keys.write_bytes(me.pkcs12("hunter2"))
    given = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(trust),
        "ssl.keystore.location": str(keys),
        "ssl.keystore.password": "hunter2",
    }
    chain = me.pem().removeprefix(me.key_pem())
    assert client_settings(given).values == {
        "security.protocol": "SSL",
        "ssl.ca.pem": authority.pem(),
        "ssl.certificate.pem": chain,
        "ssl.key.pem": me.key_pem(),
    }
    assert java_settings(given) == {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.pem(),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": chain,
        "ssl.keystore.key": me.key_pem(),
    }


def test_stores_without_tls_are_the_listeners_alone() -> None:
    given = {"ssl.keystore.location": "/no/such.pem", "ssl.key.password": "hunter2"}
    assert client_settings(given).values == {}
    assert java_settings(given) == {}


@pytest.mark.parametrize("name", JAVAS)
def test_java_names_of_tls_and_logins_are_known(name: str) -> None:
    """Each is translated, or told to be without effect: none is refused as unknown."""
    given = {"bootstrap.servers": "127.0.0.1:1", name: JAVAS[name]}
    KafkaConnection(given).producer()


def test_each_client_gets_its_own() -> None:
    settings = client_settings({"client.id": "me", "linger.ms": "1", "isolation.level": "x"})
    assert set(settings.for_producer()) == {"client.id", "linger.ms"}
    assert set(settings.for_consumer()) == {"client.id", "isolation.level"}
    assert set(settings.for_admin()) == {"client.id"}


def test_an_unknown_setting_is_refused() -> None:
    connection = KafkaConnection({"bootstrap.servers": "127.0.0.1:1", "no.such": "1"})
    with pytest.raises(HeadraceError, match=r'No such configuration property: "no\.such"'):
        connection.producer()


def test_kerberos_is_not_in_the_package_of_the_client() -> None:
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}
    with pytest.raises(HeadraceError, match="needs a confluent-kafka that is built with libsasl2"):
        KafkaConnection({"bootstrap.servers": "127.0.0.1:1", **given}).admin()


def test_no_address() -> None:
    with pytest.raises(HeadraceError, match=r"bootstrap\.servers"):
        KafkaConnection({})


def test_a_refusal_is_told_as_one_whoever_tells_it() -> None:
    """The call that fails may know of it before the library's callback has told why."""
    connection = KafkaConnection({"bootstrap.servers": "127.0.0.1:1"})
    error = connection.error(KafkaError(KafkaError._AUTHENTICATION), "orders")
    assert error.message.startswith("Kafka at 127.0.0.1:1 refuses the login: ")
    # A reason that says more wins.
    connection._note(KafkaError(KafkaError._AUTHENTICATION, "invalid credentials"))
    error = connection.error(KafkaError(KafkaError._TIMED_OUT), "orders")
    assert "refuses the login: invalid credentials. Check" in error.message
