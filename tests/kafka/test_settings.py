"""The Java client's settings mean here what they mean there, or are refused in words."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headrace.kafka.client import KafkaConnection
from headrace.kafka.java_home import find_java
from headrace.kafka.settings import client_settings
from headrace.model.errors import HeadraceError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"sasl.jaas.config": f'{PLAIN} required username="ann" password="a\\"b; c";'},
            {"sasl.username": "ann", "sasl.password": 'a"b; c'},
        ),
        (
            {
                "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer."
                "OAuthBearerLoginModule required clientId='me' clientSecret='s';",
                "sasl.oauthbearer.token.endpoint.url": "https://id.example/token",
            },
            {
                "sasl.oauthbearer.client.id": "me",
                "sasl.oauthbearer.client.secret": "s",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": "https://id.example/token",
            },
        ),
        ({"sasl.mechanism": "SCRAM-SHA-512"}, {"sasl.mechanisms": "SCRAM-SHA-512"}),
        ({"fetch.max.wait.ms": "5"}, {"fetch.wait.max.ms": "5"}),
        ({"buffer.memory": "33554432"}, {"queue.buffering.max.kbytes": "32768"}),
        (
            {"ssl.endpoint.identification.algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
        (
            {
                "ssl.keystore.location": "me.p12",
                "ssl.keystore.type": "PKCS12",
                "ssl.keystore.password": "s",
            },
            {"ssl.keystore.location": "me.p12", "ssl.keystore.password": "s"},
        ),
        (
            {"ssl.truststore.location": "ca.pem", "ssl.truststore.type": "PEM"},
            {"ssl.ca.location": "ca.pem"},
        ),
        ({"security.protocol": "SASL_SSL"}, {"security.protocol": "SASL_SSL"}),
    ],
)
def test_translation(given: dict[str, str], expected: dict[str, str]) -> None:
    assert client_settings(given).values == expected


def test_settings_without_effect_are_named() -> None:
    translated = client_settings({"interceptor.classes": "com.example.X", "client.id": "me"})
    assert translated.values == {"client.id": "me"}
    assert list(translated.without_effect) == ["interceptor.classes"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sasl.jaas.config": "com.example.Login required;"}, "login module com.example.Login"),
        ({"ssl.keystore.location": "me.jks"}, "convert it with 'keytool"),
    ],
)
def test_what_cannot_be_honoured_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(HeadraceError, match=message):
        client_settings(given)


def test_each_client_gets_its_own() -> None:
    settings = client_settings({"client.id": "me", "linger.ms": "1", "isolation.level": "x"})
    assert set(settings.for_producer()) == {"client.id", "linger.ms"}
    assert set(settings.for_consumer()) == {"client.id", "isolation.level"}
    assert set(settings.for_admin()) == {"client.id"}


def test_an_unknown_setting_is_refused() -> None:
    connection = KafkaConnection({"bootstrap.servers": "127.0.0.1:1", "no.such": "1"})
    with pytest.raises(HeadraceError, match=r'No such configuration property: "no\.such"'):
        connection.producer()


def test_no_address() -> None:
    with pytest.raises(HeadraceError, match=r"bootstrap\.servers"):
        KafkaConnection({})


@pytest.mark.heavy
def test_a_java_trust_store(tmp_path: Path) -> None:
    keytool = find_java().executable.resolve().with_name("keytool")
    store = tmp_path / "trust.jks"
    command = f"{keytool} -genkeypair -alias ca -keyalg EC -dname CN=ca -storetype JKS"
    command += f" -keystore {store} -storepass secret -keypass secret"
    subprocess.run(command.split(), check=True, capture_output=True)
    given = {"ssl.truststore.location": str(store), "ssl.truststore.password": "secret"}
    assert "BEGIN CERTIFICATE" in client_settings(given).values["ssl.ca.pem"]
    with pytest.raises(HeadraceError, match=r"cannot be read: keytool error"):
        client_settings(given | {"ssl.truststore.password": "wrong-one"})
