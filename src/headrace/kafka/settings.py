"""Translates Kafka client settings from the Java client's names to librdkafka's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.kafka import key_stores, sasl

Settings = Mapping[str, str]

# The same thing under another name.
RENAMED = {
    "sasl.mechanism": "sasl.mechanisms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "max.request.size": "message.max.bytes",
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
    "sasl.client.callback.handler.class": "Java classes cannot be loaded into this client",
    "ssl.engine.factory.class": "Java classes cannot be loaded into this client",
    "security.providers": "Java classes cannot be loaded into this client",
    "ssl.cipher.suites": "TLS is OpenSSL's here, which has other names for them",
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

# Settings of Java's logins for which librdkafka has its own ways; Spark's client gets them.
OF_JAVA_ALONE = (
    *("sasl.login.", "sasl.kerberos.ticket.", "sasl.oauthbearer.jwks.", "sasl.oauthbearer.jwt."),
    *("sasl.oauthbearer.expected.", "sasl.oauthbearer.clock.", "sasl.oauthbearer.header."),
    *("sasl.oauthbearer.sub.", "sasl.oauthbearer.scope.claim."),
)

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
        elif name.startswith(OF_JAVA_ALONE) and name not in TOGETHER:
            without_effect[name] = "this client's own time-outs and checks of tokens apply"
        elif name in TRANSLATED:
            values |= TRANSLATED[name](settings)
        elif name not in TOGETHER:
            values[RENAMED.get(name, name)] = str(value)
    values |= sasl.for_librdkafka(settings) | _stores(settings)
    return ClientSettings(values, without_effect)


def java_settings(settings: Settings) -> dict[str, str]:
    """The same for the Java client in Spark: stores as PEM, so that executors need no files."""
    kept = {name: value for name, value in settings.items() if name not in key_stores.NAMES}
    kept |= sasl.for_java(settings)
    if not _uses_tls(settings):
        return kept
    if authorities := key_stores.trusted(settings):
        kept |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authorities}
    if me := key_stores.identity(settings):
        kept |= {"ssl.keystore.type": "PEM", "ssl.keystore.key": me.key}
        kept["ssl.keystore.certificate.chain"] = me.chain
    return kept


def _uses_tls(settings: Settings) -> bool:
    """If not, key stores are the listener's alone."""
    return settings.get("security.protocol", "").upper().endswith("SSL")


def _stores(settings: Settings) -> dict[str, str]:
    if not _uses_tls(settings):
        return {}
    values = {}
    if authorities := key_stores.trusted(settings):
        values["ssl.ca.pem"] = authorities
    if me := key_stores.identity(settings):
        values |= {"ssl.certificate.pem": me.chain, "ssl.key.pem": me.key}
    return values


def _identification(settings: Settings) -> dict[str, str]:
    # The Java client switches the check off with an empty value.
    algorithm = settings["ssl.endpoint.identification.algorithm"]
    return {"ssl.endpoint.identification.algorithm": algorithm or "none"}


def _buffer_memory(settings: Settings) -> dict[str, str]:
    return {"queue.buffering.max.kbytes": str(max(1, int(settings["buffer.memory"]) // 1024))}


TRANSLATED: dict[str, Callable[[Settings], dict[str, str]]] = {
    "ssl.endpoint.identification.algorithm": _identification,
    "buffer.memory": _buffer_memory,
}
# Those that are read together, and those of the server's own listener.
TOGETHER = sasl.NAMES | key_stores.NAMES | {"ssl.client.authentication", "ssl.client.auth"}
