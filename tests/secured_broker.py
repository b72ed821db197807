"""A broker that takes nobody without a certificate and a login, and its token endpoint."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from authority import Authority, java_key_store, java_trust_store
from headrace.kafka.broker import EmbeddedBroker
from headrace.kafka.jars import ensure_jars
from headrace.kafka.ports import free_port

MODULES = "org.apache.kafka.common.security"
PLAIN, SCRAM_256, SCRAM_512 = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"
TOKENS, UNSECURED = "OAUTHBEARER", "OAUTHBEARER (unsecured)"
USER = "ann"
# With all that needs care in a JAAS string.
PASSWORD = 'pa"ss\\ w;rd=1'
STORE_PASSWORD, KEY_PASSWORD, CLIENT_SECRET = "st0re-secret", "k3y-secret", "cl1ent-secret"
SECRETS = (PASSWORD, STORE_PASSWORD, KEY_PASSWORD, CLIENT_SECRET)


def quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@dataclass
class SecuredBroker:
    """Where it is, and what clients need for it."""

    servers: str
    inside: str  # a listener without any of it, for whoever runs the broker
    unsecured: str  # one that takes tokens without a signature
    tokens: str
    folder: Path
    authority: Authority
    stores: dict[str, str] = field(default_factory=dict)

    def settings(self, mechanism: str = SCRAM_512, password: str = PASSWORD) -> dict[str, str]:
        """Of a client, in Java's names, as a ksqlDB's properties file has them."""
        given = {
            "bootstrap.servers": self.servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism.partition(" ")[0],
            **self.stores,
        }
        login = f"required username={quoted(USER)} password={quoted(password)};"
        match mechanism:
            case "OAUTHBEARER (unsecured)":
                jaas = (
                    f"{MODULES}.oauthbearer.OAuthBearerLoginModule required "
                    f"unsecuredLoginStringClaim_sub={quoted(USER)};"
                )
                # For tests: neither signed nor over TLS.
                given["bootstrap.servers"] = self.unsecured
                given["security.protocol"] = "SASL_PLAINTEXT"
            case "PLAIN":
                jaas = f"{MODULES}.plain.PlainLoginModule {login}"
            case "OAUTHBEARER":
                jaas = (
                    f"{MODULES}.oauthbearer.OAuthBearerLoginModule required clientId={quoted(USER)}"
                    f" clientSecret={quoted(CLIENT_SECRET)} scope='kafka';"
                )
                given["sasl.oauthbearer.token.endpoint.url"] = self.tokens
                given["sasl.login.callback.handler.class"] = (
                    f"{MODULES}.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
                )
            case _:
                jaas = f"{MODULES}.scram.ScramLoginModule {login}"
        return {**given, "sasl.jaas.config": jaas}

    def set_password(self, password: str) -> None:
        """Of the users of SCRAM."""
        client = AdminClient({"bootstrap.servers": self.inside})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4096)
            change = UserScramCredentialUpsertion(USER, info, password.encode())
            client.alter_user_scram_credentials([change])[USER].result(30)


@contextmanager
def secured_broker(folder: Path) -> Iterator[SecuredBroker]:
    authority = Authority()
    port, inside, unsecured, controller = (free_port() for _ in range(4))
    key = folder / "broker.pem"
    key.write_text(authority.issue("broker").pem())
    ca = folder / "ca.pem"
    ca.write_text(authority.pem())
    with token_endpoint() as tokens:
        jwks = folder / "jwks.json"
        jwks.write_text(json.dumps({"keys": [tokens.public_key()]}))
        settings = {
            **_listeners(port, inside, unsecured, controller),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(key),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(ca),
            "listener.name.clients.ssl.client.auth": "required",
            # Who is connected has to log in again now and then, with the password of then.
            "connections.max.reauth.ms": "10000",
            "sasl.enabled.mechanisms": f"{PLAIN},{SCRAM_256},{SCRAM_512},{TOKENS}",
            **_jaas(jwks),
        }
        with pytest.MonkeyPatch.context() as patch:
            # Since Kafka 4 the addresses of keys have to be allowed.
            allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={jwks.as_uri()}"
            patch.setenv("JDK_JAVA_OPTIONS", allowed)
            broker = EmbeddedBroker(folder / "kafka", port, ensure_jars(), settings)
            broker.start()
        try:
            made = SecuredBroker(
                *(f"127.0.0.1:{number}" for number in (port, inside, unsecured)),
                tokens.url,
                folder,
                authority,
            )
            trust = java_trust_store(folder / "trust.jks", authority, STORE_PASSWORD)
            keys = folder / "me.jks"
            java_key_store(keys, authority.issue(USER), STORE_PASSWORD, KEY_PASSWORD)
            made.stores = {
                "ssl.truststore.location": str(trust),
                "ssl.truststore.password": STORE_PASSWORD,
                "ssl.keystore.location": str(keys),
                "ssl.keystore.password": STORE_PASSWORD,
                "ssl.key.password": KEY_PASSWORD,
            }
            made.set_password(PASSWORD)
            yield made
        finally:
            broker.stop()


def _listeners(port: int, inside: int, unsecured: int, controller: int) -> dict[str, str]:
    names = {"CLIENTS": port, "INSIDE": inside, "TESTS": unsecured, "CONTROLLER": controller}
    here = ",".join(f"{name}://127.0.0.1:{number}" for name, number in names.items())
    return {
        "listeners": here,
        "advertised.listeners": here,
        "listener.security.protocol.map": (
            "CLIENTS:SASL_SSL,INSIDE:PLAINTEXT,TESTS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "listener.name.tests.sasl.enabled.mechanisms": TOKENS,
        "listener.name.tests.oauthbearer.sasl.jaas.config": (
            f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;"
        ),
        "inter.broker.listener.name": "INSIDE",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
    }


def _jaas(jwks: Path) -> dict[str, str]:
    mine = "listener.name.clients"
    # A properties file takes backslashes for its own.
    password = quoted(PASSWORD).replace("\\", "\\\\")
    scram = f"{MODULES}.scram.ScramLoginModule required;"
    handler = f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
    return {
        f"{mine}.plain.sasl.jaas.config": (
            f"{MODULES}.plain.PlainLoginModule required user_{USER}={password};"
        ),
        f"{mine}.scram-sha-256.sasl.jaas.config": scram,
        f"{mine}.scram-sha-512.sasl.jaas.config": scram,
        f"{mine}.oauthbearer.sasl.jaas.config": (
            f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;"
        ),
        f"{mine}.oauthbearer.sasl.server.callback.handler.class": handler,
        f"{mine}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": jwks.as_uri(),
        f"{mine}.oauthbearer.sasl.oauthbearer.expected.audience": "kafka",
    }


class TokenEndpoint:
    """Gives signed tokens to the one client that it knows."""

    def __init__(self) -> None:
        self.url = ""
        self.given = 0
        self._key = ec.generate_private_key(ec.SECP256R1())

    def public_key(self) -> dict[str, str]:
        numbers = self._key.public_key().public_numbers()
        x, y = (_base64(n.to_bytes(32, "big")) for n in (numbers.x, numbers.y))
        return {"kty": "EC", "crv": "P-256", "alg": "ES256", "kid": "one", "x": x, "y": y}

    def token(self) -> str:
        now = int(time.time())
        claims = {"sub": USER, "aud": "kafka", "scope": "kafka", "iat": now, "exp": now + 600}
        head = {"alg": "ES256", "kid": "one"}
        signed = ".".join(_base64(json.dumps(part).encode()) for part in (head, claims))
        r, s = utils.decode_dss_signature(
            self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
        )
        return f"{signed}.{_base64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def answer(self, authorization: str) -> tuple[int, dict[str, object]]:
        login = base64.b64encode(f"{USER}:{CLIENT_SECRET}".encode()).decode()
        if authorization != f"Basic {login}":
            return 401, {"error": "invalid_client"}
        self.given += 1
        return 200, {"access_token": self.token(), "token_type": "bearer", "expires_in": 600}


@contextmanager
def token_endpoint() -> Iterator[TokenEndpoint]:
    endpoint = TokenEndpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, content = endpoint.answer(self.headers.get("Authorization", ""))
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    endpoint.url = f"http://127.0.0.1:{http.server_port}/token"
    try:
        yield endpoint
    finally:
        http.shutdown()
        http.server_close()


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
