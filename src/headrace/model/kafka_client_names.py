"""Names of settings that Kafka's own clients take, and how ksqlDB's names stand for them."""

from __future__ import annotations

# In ksqlDB's files a client's name may have one of these in front.
STREAMS = "ksql.streams."
_KINDS = ("producer.", "main.consumer.", "consumer.", "admin.")

# Of the Java clients: producer, consumer, admin.
_EXACT = """
    acks allow.auto.create.topics auto.commit.interval.ms batch.size bootstrap.controllers
    buffer.memory check.crcs client.dns.lookup client.id client.rack compression.gzip.level
    compression.lz4.level compression.zstd.level connections.max.idle.ms default.api.timeout.ms
    delivery.timeout.ms enable.auto.commit enable.idempotence enable.metrics.push
    exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id
    group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
    interceptor.classes internal.throw.on.fetch.stable.offset.unsupported isolation.level
    key.deserializer key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection
    max.partition.fetch.bytes max.poll.interval.ms max.poll.records max.request.size
    metadata.max.age.ms metadata.max.idle.ms metadata.recovery.rebootstrap.trigger.ms
    metadata.recovery.strategy metric.reporters metrics.num.samples metrics.recording.level
    metrics.sample.window.ms partition.assignment.strategy
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms
    partitioner.class partitioner.ignore.keys receive.buffer.bytes reconnect.backoff.max.ms
    reconnect.backoff.ms request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms
    send.buffer.bytes session.timeout.ms share.acknowledgement.mode share.acquire.mode
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    transaction.timeout.ms transaction.two.phase.commit.enable transactional.id
    value.deserializer value.serializer
"""
# Of librdkafka alone, which stand for several of theirs.
_LIBRDKAFKA = "compression.level sasl.mechanisms"
# All that begin so: of the Java clients, and of librdkafka.
_SECURITY = ("ssl.", "sasl.", "security.", "enable.ssl.", "enable.sasl.")

CLIENT_NAMES = frozenset([*_EXACT.split(), *_LIBRDKAFKA.split()])


def bare_name(name: str) -> str:
    """A name without what ksqlDB puts in front of a client's."""
    bare = name.removeprefix(STREAMS)
    kind = next((kind for kind in _KINDS if bare.startswith(kind)), "")
    return bare.removeprefix(kind)


def client_name(name: str) -> str | None:
    """The name by which Kafka's clients know a setting; None if they do not."""
    bare = bare_name(name)
    return bare if bare in CLIENT_NAMES or bare.startswith(_SECURITY) else None
