"""Translates Kafka client settings from the Java client's names to librdkafka's."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.kafka.java_home import find_java
from headrace.model.errors import HeadraceError

Settings = Mapping[str, str]

# The same thing under another name.
RENAMED = {
    "sasl.mechanism": "sasl.mechanisms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "max.request.size": "message.max.bytes",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}

# Settings of the Java client for which there is nothing to set here; named with the reason.
WITHOUT_EFFECT = {
    "key.serializer": "formats are declared per source",
    "value.serializer": "formats are declared per source",
    "key.deserializer": "formats are declared per source",
    "value.deserializer": "formats are declared per source",
    "partitioner.class": "records are partitioned by Kafka's default, murmur2 of the key",
    "interceptor.classes": "Java classes cannot be loaded into this client",
    "metric.reporters": "Java classes cannot be loaded into this client",
    "sasl.login.class": "Java classes cannot be loaded into this client",
    "sasl.login.callback.handler.class": "Java classes cannot be loaded into this client",
    "sasl.client.callback.handler.class": "Java classes cannot be loaded into this client",
    "ssl.engine.factory.class": "Java classes cannot be loaded into this client",
    "ssl.provider": "TLS is OpenSSL's here",
    "ssl.protocol": "TLS is OpenSSL's here",
    "ssl.enabled.protocols": "TLS is OpenSSL's here",
    "ssl.keymanager.algorithm": "TLS is OpenSSL's here",
    "ssl.trustmanager.algorithm": "TLS is OpenSSL's here",
    "ssl.secure.random.implementation": "TLS is OpenSSL's here",
    "max.block.ms": "this client's own time-outs apply",
    "default.api.timeout.ms": "this client's own time-outs apply",
    "metadata.max.idle.ms": "this client's own time-outs apply",
    "max.poll.records": "Spark bounds batches by maxOffsetsPerTrigger",
    "socket.connection.setup.timeout.max.ms": "this client's own time-outs apply",
    "sasl.login.connect.timeout.ms": "this client's own time-outs apply",
    "sasl.login.read.timeout.ms": "this client's own time-outs apply",
    "sasl.login.retry.backoff.ms": "this client's own time-outs apply",
    "sasl.login.retry.backoff.max.ms": "this client's own time-outs apply",
    "sasl.login.refresh.buffer.seconds": "tokens are renewed in good time",
    "sasl.login.refresh.min.period.seconds": "tokens are renewed in good time",
    "sasl.login.refresh.window.factor": "tokens are renewed in good time",
    "sasl.login.refresh.window.jitter": "tokens are renewed in good time",
    "sasl.kerberos.ticket.renew.jitter": "tickets are renewed in good time",
    "sasl.kerberos.ticket.renew.window.factor": "tickets are renewed in good time",
    "sasl.oauthbearer.clock.skew.seconds": "brokers check tokens, not clients",
    "sasl.oauthbearer.expected.audience": "brokers check tokens, not clients",
    "sasl.oauthbearer.expected.issuer": "brokers check tokens, not clients",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": "brokers check tokens, not clients",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "brokers check tokens, not clients",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "brokers check tokens, not clients",
    "sasl.oauthbearer.jwks.endpoint.url": "brokers check tokens, not clients",
    "sasl.oauthbearer.scope.claim.name": "brokers check tokens, not clients",
    "sasl.oauthbearer.jwt.validator.class": "brokers check tokens, not clients",
    "sasl.oauthbearer.jwt.retriever.class": "Java classes cannot be loaded into this client",
    "sasl.oauthbearer.assertion.template.file": "this client makes its own assertions",
    "sasl.oauthbearer.header.urlencode": "this client sends names and secrets as they are",
    "security.providers": "TLS is OpenSSL's here",
    "metrics.num.samples": "there are no JMX metrics",
    "metrics.recording.level": "there are no JMX metrics",
    "metrics.sample.window.ms": "there are no JMX metrics",
    "compression.gzip.level": "set compression.level",
    "compression.lz4.level": "set compression.level",
    "compression.zstd.level": "set compression.level",
    "partitioner.adaptive.partitioning.enable": "records are partitioned by Kafka's default",
    "partitioner.availability.timeout.ms": "records are partitioned by Kafka's default",
    "partitioner.ignore.keys": "records are partitioned by Kafka's default",
    "exclude.internal.topics": "queries name their topics",
    "partition.assignment.strategy": "Spark assigns partitions",
    "group.remote.assignor": "Spark assigns partitions",
    "internal.throw.on.fetch.stable.offset.unsupported": "it is the Java client's own",
    "bootstrap.controllers": "bootstrap.servers says where Kafka is",
    "share.acquire.mode": "no share group is read",
    "share.acknowledgement.mode": "no share group is read",
    "transaction.two.phase.commit.enable": "transactions are Headrace's own",
}

_PRODUCER_NAMES = """
    acks batch.num.messages batch.size compression.codec compression.level compression.type
    delivery.report.only.error delivery.timeout.ms enable.gapless.guarantee enable.idempotence
    linger.ms message.send.max.retries message.timeout.ms partitioner queue.buffering.max.kbytes
    queue.buffering.max.messages queue.buffering.max.ms request.required.acks request.timeout.ms
    retries sticky.partitioning.linger.ms transaction.timeout.ms transactional.id
"""
_CONSUMER_NAMES = """
    auto.commit.interval.ms auto.offset.reset check.crcs enable.auto.commit
    enable.auto.offset.store enable.partition.eof fetch.error.backoff.ms fetch.max.bytes
    fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms fetch.wait.max.ms group.id
    group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms isolation.level
    max.partition.fetch.bytes max.poll.interval.ms partition.assignment.strategy
    queued.max.messages.kbytes queued.min.messages session.timeout.ms
"""
PRODUCER_ONLY = frozenset(_PRODUCER_NAMES.split())
CONSUMER_ONLY = frozenset(_CONSUMER_NAMES.split())


@dataclass(frozen=True)
class ClientSettings:
    """Settings for librdkafka, and those of the user's that it has no use for, with the reason."""

    values: dict[str, str]
    without_effect: dict[str, str]

    def for_producer(self) -> dict[str, str]:
        return {k: v for k, v in self.values.items() if k not in CONSUMER_ONLY}

    def for_consumer(self) -> dict[str, str]:
        return {k: v for k, v in self.values.items() if k not in PRODUCER_ONLY}

    def for_admin(self) -> dict[str, str]:
        return {k: v for k, v in self.for_producer().items() if k not in PRODUCER_ONLY}


def client_settings(settings: Settings) -> ClientSettings:
    """Translates settings; raises where ignoring one would change who is trusted."""
    values: dict[str, str] = {}
    without_effect: dict[str, str] = {}
    for name, value in settings.items():
        if name in WITHOUT_EFFECT:
            without_effect[name] = WITHOUT_EFFECT[name]
        elif name in TRANSLATED:
            values |= TRANSLATED[name](settings)
        elif name not in READ_BY_ANOTHER:
            values[RENAMED.get(name, name)] = str(value)
    return ClientSettings(values, without_effect)


_CLASS = re.compile(r"[A-Za-z][\w$]*(\.[A-Za-z][\w$]*)*")


def _jaas(settings: Settings) -> dict[str, str]:
    """`sasl.jaas.config`: a login module's name and its options."""
    text = settings["sasl.jaas.config"]
    module, _, rest = text.strip().partition(" ")
    pairs = re.findall(r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;]+))""", rest)
    options = {name: re.sub(r"\\(.)", r"\1", a) or b or c for name, a, b, c in pairs}
    names = JAAS_OPTIONS.get(module.rpartition(".")[2])
    if names is None:
        told = f" {module}" if _CLASS.fullmatch(module) else ""  # nobody knows what it is otherwise
        raise HeadraceError(
            f"sasl.jaas.config names the login module{told}, which this client does not know; "
            f"it knows {', '.join(JAAS_OPTIONS)}."
        )
    values = {target: options[name] for name, target in names.items() if name in options}
    if "sasl.oauthbearer.client.id" in values:
        values["sasl.oauthbearer.method"] = "oidc"
    return values


JAAS_OPTIONS = {
    "PlainLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "ScramLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "Krb5LoginModule": {"keyTab": "sasl.kerberos.keytab", "principal": "sasl.kerberos.principal"},
    "OAuthBearerLoginModule": {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    },
}


_PASSWORD_VARIABLE = "HEADRACE_STORE_PASSWORD"


def _trust_store(settings: Settings) -> dict[str, str]:
    location = settings["ssl.truststore.location"]
    if settings.get("ssl.truststore.type", "").upper() == "PEM" or _is_pem(location):
        return {"ssl.ca.location": location}
    # A Java key store, or PKCS12: Java is here anyway, and its keytool prints them as PEM.
    keytool = find_java().executable.resolve().with_name("keytool")
    command = [str(keytool), "-list", "-rfc", "-keystore", location]
    # Everybody on the machine can read a command line; a process's variables are its user's alone.
    command += ["-storepass:env", _PASSWORD_VARIABLE]
    secret = {_PASSWORD_VARIABLE: settings.get("ssl.truststore.password", "")}
    try:
        answer = subprocess.run(
            command,
            env={**os.environ, **secret},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        said = answer.stdout
    except (OSError, subprocess.TimeoutExpired) as failure:
        said = str(failure)
    certificates = re.findall(
        r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", said, re.DOTALL
    )
    if not certificates:
        reason = (said.strip().splitlines() or ["it holds no certificate"])[0]
        raise HeadraceError(f"ssl.truststore.location {location} cannot be read: {reason}.")
    return {"ssl.ca.pem": "\n".join(certificates)}


def _key_store(settings: Settings) -> dict[str, str]:
    location = settings["ssl.keystore.location"]
    if settings.get("ssl.keystore.type", "").upper() == "PEM" or _is_pem(location):
        return {"ssl.certificate.location": location, "ssl.key.location": location}
    if settings.get("ssl.keystore.type", "JKS").upper() == "JKS" and not location.endswith(
        (".p12", ".pfx")
    ):
        raise HeadraceError(
            f"ssl.keystore.location {location} is a Java key store, which this client cannot read: "
            f"convert it with 'keytool -importkeystore -srckeystore {location} -destkeystore "
            "client.p12 -deststoretype PKCS12' and set ssl.keystore.type=PKCS12."
        )
    password = settings.get("ssl.keystore.password") or settings.get("ssl.key.password", "")
    return {"ssl.keystore.location": location, "ssl.keystore.password": password}


def _is_pem(location: str) -> bool:
    try:
        with Path(location).open("rb") as file:
            return b"-----BEGIN" in file.read(4096)
    except OSError:
        return False


def _identification(settings: Settings) -> dict[str, str]:
    # The Java client switches the check off with an empty value.
    algorithm = settings["ssl.endpoint.identification.algorithm"]
    return {"ssl.endpoint.identification.algorithm": algorithm or "none"}


def _buffer_memory(settings: Settings) -> dict[str, str]:
    return {"queue.buffering.max.kbytes": str(max(1, int(settings["buffer.memory"]) // 1024))}


TRANSLATED: dict[str, Callable[[Settings], dict[str, str]]] = {
    "sasl.jaas.config": _jaas,
    "ssl.truststore.location": _trust_store,
    "ssl.keystore.location": _key_store,
    "ssl.endpoint.identification.algorithm": _identification,
    "buffer.memory": _buffer_memory,
}
# Settings that say more about one of those.
READ_BY_ANOTHER = frozenset(
    {
        "ssl.truststore.type",
        "ssl.truststore.password",
        "ssl.keystore.type",
        "ssl.keystore.password",
    }
)
