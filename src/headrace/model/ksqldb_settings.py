"""Settings of ksqlDB that Headrace does not honour by their own names: mapped to others, without
meaning here, or refused because nobody should find out later that they were ignored.

Those that it honours are in `headrace.model.settings`; together they are one table.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.model.setting import Fate, Setting, Value, boolean


def _mapped(name: str, target: str, doc: str = "The same by another name.") -> Setting:
    return Setting(name, str, None, doc, fate=Fate.MAPPED, target=target)


def _without(
    name: str,
    doc: str,
    parse: Callable[[str], Value] = str,
    default: Value = None,
    *,
    editable: bool = False,
    harmless: Value = None,
) -> Setting:
    fate = Fate.WITHOUT_MEANING
    return Setting(name, parse, default, doc, editable=editable, fate=fate, harmless=harmless)


def _refused(
    name: str, doc: str, parse: Callable[[str], Value] = str, harmless: Value = None
) -> Setting:
    return Setting(name, parse, None, doc, fate=Fate.REFUSED, harmless=harmless)


_JAVA = "Java classes cannot be loaded into this server."
_BEATS = "Servers tell each other through Kafka that they are alive, always."
_REQUESTS = "Requests are not logged."
_NO_STREAMS = "There is no Kafka Streams here; Spark runs the queries."
_NO_INTERNAL_TOPICS = "Queries have no changelog or repartition topics: state is in checkpoints."
_SPARK_CORES = "Spark's cores are shared by all queries."
_STATE = "Spark keeps the state: see spark.sql.streaming.stateStore.rocksdb.* of Spark."
_SERDES = "Formats are declared for each source."
_NO_METRICS = "There are no JMX metrics: see /status and SHOW QUERIES EXTENDED."
_LOCAL_PULLS = "Each server answers pull queries itself, from the table's topic."
_ONE_CLIENT = "The threads and queues of pull queries are this server's own."
_PUSHES = "Push queries all run in the same way here."
_CONNECT = "No Connect worker is started here: start one, and set ksql.connect.url to its address."
_NEVER_STOPS = "A record that cannot be handled is in the processing log, and the query goes on."
_PLANNER = "There is one planner."
_CLEANUP = "Queries that end clean up at once."
_THREADS = "The server's threads are its own."
_COMMANDS = "The command log is Headrace's own topic."

_MAPPED_ONES = (
    _mapped("ksql.streams.bootstrap.servers", "bootstrap.servers"),
    _mapped("ksql.streams.processing.guarantee", "processing.guarantee"),
    _mapped("ksql.streams.state.dir", "state.dir"),
    _mapped("ksql.headers.columns.enabled", "ksql.headers.enabled"),
    _mapped("ksql.pull.queries.enable", "ksql.query.pull.enable"),
    _mapped("ksql.streams.consumer.auto.offset.reset", "ksql.streams.auto.offset.reset"),
    _mapped("ksql.streams.statestore.cache.max.bytes", "ksql.streams.cache.max.bytes.buffering"),
)

_REFUSED_ONES = (
    _refused(
        "ksql.fail.on.deserialization.error",
        "A query does not stop at a record that it cannot read: it skips the record, and says so "
        "in the processing log. Leave this false; ksql.error.dead.letter.topic keeps such records "
        "for whoever must not lose one.",
        boolean,
        False,
    ),
    _refused(
        "ksql.security.extension.class",
        "It says who may do what, by a Java class that cannot be loaded here: the server would be "
        "open to all. Use authentication.method=BASIC with authentication.roles, and Kafka's ACLs.",
    ),
    _refused(
        "ksql.authentication.plugin.class",
        "It says who is let in, by a Java class that cannot be loaded here: the server would be "
        "open to all. Use authentication.method=BASIC and authentication.credentials.file.",
    ),
    _refused(
        "ksql.readonly.topics",
        "Statements may write to every topic that Kafka lets this server write to. Protect topics "
        "by Kafka's ACLs, and leave this out.",
    ),
    _refused(
        "ssl.client.auth",
        "Clients without a certificate would be let in. Use "
        "ssl.client.authentication=REQUIRED with ssl.truststore.location.",
        boolean,
        False,
    ),
    _refused(
        "config.providers",
        "Values like ${file:…} would be taken literally. Write them out, in a file that only the "
        "server may read; --config can be given several times.",
    ),
    _refused(
        "listeners.proxy.protocol",
        "The proxy protocol is not spoken here: every request would fail. Let the proxy forward "
        "plain HTTP or TCP to listeners.",
    ),
)

_OF_THE_SERVER = (
    _without("ksql.resource.extension.class", _JAVA),
    _without("ksql.connect.worker.config", _CONNECT),
    _without("ksql.connect.request.headers.plugin", _JAVA),
    _without("ksql.connect.request.timeout.ms", "Requests to Connect have a time-out of 5 s."),
    _without(
        "ksql.fail.on.production.error",
        "A record that cannot be written always makes its query fail and start again.",
        boolean,
        True,
        harmless=True,
    ),
    _without("ksql.endpoint.logging.log.queries", _REQUESTS, boolean, False, harmless=False),
    _without("ksql.endpoint.logging.ignored.paths.regex", _REQUESTS),
    _without("ksql.logging.server.rate.limited.response.codes", _REQUESTS),
    _without("ksql.logging.server.rate.limited.request.paths", _REQUESTS),
    _without("ksql.heartbeat.enable", _BEATS, boolean, True, harmless=True),
    _without("ksql.heartbeat.send.interval.ms", _BEATS),
    _without("ksql.heartbeat.check.interval.ms", _BEATS),
    _without("ksql.heartbeat.window.ms", _BEATS),
    _without("ksql.heartbeat.missed.threshold.ms", _BEATS),
    _without("ksql.heartbeat.discover.interval.ms", _BEATS),
    _without("ksql.heartbeat.thread.pool.size", _BEATS),
    _without("ksql.lag.reporting.enable", _LOCAL_PULLS, boolean, harmless=False),
    _without("ksql.lag.reporting.send.interval.ms", _LOCAL_PULLS),
    _without(
        "ksql.internal.listener",
        "Servers speak to each other through Kafka: nothing listens there. What other programs "
        "ask there, they find at listeners.",
    ),
    _without("ksql.internal.ssl.client.authentication", "There is no internal listener."),
    _without("ksql.internal.http2.max.pool.size", "There is no internal listener."),
    _without(
        "ksql.ssl.keystore.alias.external", "listeners.ssl.certificate names one certificate."
    ),
    _without("ksql.ssl.keystore.alias.internal", "There is no internal listener."),
    _without("ssl.keystore.reload", "The certificate is read at start."),
    _without("ssl.keystore.watch.location", "The certificate is read at start."),
    _without("access.control.allow.methods", "Pages that may call the API may call all of it."),
    _without("access.control.allow.headers", "Pages that may call the API may call all of it."),
    _without("ksql.metrics.tags.custom", _NO_METRICS),
    _without("ksql.metrics.extension", _NO_METRICS),
    _without("ksql.udf.collect.metrics", _NO_METRICS, boolean, harmless=False),
    _without(
        "ksql.udf.enable.security.manager",
        "Functions are Python; they run with the server's rights.",
    ),
    _without("ksql.plugins.rocksdb.*", _STATE),
    _without("ksql.runtime.feature.shared.enabled", _NO_STREAMS, boolean, harmless=False),
    _without("ksql.shared.runtimes.count", _NO_STREAMS),
    _without("ksql.metastore.backup.location", "The command log is in Kafka."),
    _without("ksql.hidden.topics", "SHOW TOPICS leaves out Kafka's and Headrace's own topics."),
    _without("ksql.access.validator.enable", "Kafka says at each request what this server may do."),
    _without("ksql.authorization.cache.expiry.time.secs", "Nothing about rights is cached."),
    _without("ksql.authorization.cache.max.entries", "Nothing about rights is cached."),
    _without("ksql.admin.request.retry.timeout.ms", "Requests to Kafka have their own time-outs."),
    _without(
        "ksql.kafka.client.additional.config.prefixes", "All of Kafka's clients get the same."
    ),
    _without("ksql.create.topic.inherit.source.replicas.enabled", "WITH (REPLICAS) says it."),
    _without("ksql.query.cleanup.shutdown.timeout.ms", _CLEANUP),
    _without("ksql.transient.query.cleanup.service.enable", _CLEANUP, boolean, harmless=True),
    _without("ksql.transient.query.cleanup.service.initial.delay.seconds", _CLEANUP),
    _without("ksql.transient.query.cleanup.service.period.seconds", _CLEANUP),
    _without("ksql.endpoint.migrate.query", "/query and /query-stream are both there.", boolean),
    _without("ksql.websocket.connection.max.timeout.ms", "Websockets last as their queries do."),
    _without("ksql.fetch.remote.hosts.max.timeout.seconds", _LOCAL_PULLS),
    _without("ksql.deployment.type", "It says nothing to this server."),
    _without("ksql.queryanonymizer.*", "Statements are not logged."),
    _without("ksql.client.ip_port.configuration.enabled", _REQUESTS, boolean, harmless=False),
    _without("ksql.proxy.protocol.local.mode.enabled", "The proxy protocol is not spoken here."),
    _without("ksql.server.command.consumer.*", _COMMANDS),
    _without("ksql.server.command.producer.*", _COMMANDS),
    _without("ksql.server.command.blocked.threshold.error.ms", _COMMANDS),
    _without("ksql.server.command.topic.rate.limit", _COMMANDS),
    _without("ksql.server.command.topic.migration.enabled", _COMMANDS),
    _without("ksql.local.commands.location", _COMMANDS),
    _without("ksql.server.install.dir", "It says nothing to this server."),
    _without("ksql.server.websockets.num.threads", _THREADS),
    _without("ksql.server.preconditions", _JAVA),
    _without("ksql.server.precondition.max.backoff.ms", _JAVA),
    _without("ksql.server.error.messages", _JAVA),
    _without("ksql.server.exception.uncaught.handler.enable", _THREADS),
    _without(
        "ksql.server.sni.check.enable",
        "ksql.server.allowed.hosts says by which names it is called.",
    ),
    _without("ksql.healthcheck.interval.ms", "The health is watched all the time."),
    _without("ksql.verticle.instances", _THREADS),
    _without("ksql.worker.pool.size", _THREADS),
    _without("query.stream.disconnect.check", "A client that leaves is noticed at once."),
    _without("ksql.query.error.max.queue.size", "SHOW QUERIES tells the last error of a query."),
    _without("ksql.query.status.running.threshold.seconds", "A query runs when its batches do."),
    _without("ksql.error.classifier.regex.*", "Failed queries are all started again."),
    _without("ksql.properties.overrides.log", "Overrides are not logged.", boolean, harmless=False),
    _without(
        "ksql.properties.overrides.range.validation.log.enabled",
        "Overrides are not logged.",
        boolean,
        harmless=False,
    ),
    _without(
        "ksql.properties.overrides.validation.restore.enabled",
        "What a query was started with stays with it.",
        boolean,
        harmless=False,
    ),
    _without("confluent.*", "It is a setting of Confluent's own components."),
    _without("connect.*", _CONNECT),
)

_OF_PULL_QUERIES = (
    _without("ksql.query.pull.enable.standby.reads", _LOCAL_PULLS, boolean, editable=True),
    _without(
        "ksql.query.pull.max.allowed.offset.lag",
        "ksql.query.pull.max.staleness.ms says how old an answer may be.",
        int,
        editable=True,
    ),
    _without(
        "ksql.query.pull.interpreter.enabled",
        "There is one evaluator of expressions.",
        boolean,
        True,
        editable=True,
        harmless=True,
    ),
    _without("ksql.query.pull.metrics.enabled", _NO_METRICS, boolean),
    _without("ksql.query.pull.thread.pool.size", _ONE_CLIENT),
    _without("ksql.query.pull.router.thread.pool.size", _LOCAL_PULLS),
    _without("ksql.query.pull.coordinator.queue.capacity", _ONE_CLIENT),
    _without("ksql.query.pull.router.queue.capacity", _LOCAL_PULLS),
    _without("ksql.query.pull.forwarding.timeout.ms", _LOCAL_PULLS),
    _without(
        "ksql.query.pull.cancel.on.disconnect.enabled",
        "A query whose client leaves always ends.",
        boolean,
        harmless=True,
    ),
    _without(
        "ksql.query.push.v2.alos.enabled",
        "A push query reads each record at least once anyway.",
        boolean,
        True,
        editable=True,
        harmless=True,
    ),
    _without("ksql.query.push.v2.registry.installed", _PUSHES, boolean, editable=True),
    _without("ksql.query.push.v2.interpreter.enabled", _PUSHES, boolean, editable=True),
    _without("ksql.query.push.v2.metrics.enabled", _NO_METRICS, boolean),
    _without("ksql.query.push.v2.new.latest.delay.ms", _PUSHES),
    _without("ksql.query.push.v2.latest.reset.age.ms", _PUSHES),
    _without("ksql.query.push.v2.max.catchup.consumers", _PUSHES),
    _without("ksql.query.push.v2.catchup.consumer.msg.window", _PUSHES),
)

_OF_STATEMENTS = (
    _without(
        "ksql.sink.partitions",
        "A sink has as many partitions as its source, unless WITH (PARTITIONS) says otherwise.",
        int,
        editable=True,
    ),
    _without(
        "ksql.sink.replicas",
        "A sink has as many replicas as its source, unless WITH (REPLICAS) says otherwise.",
        int,
        editable=True,
    ),
    _without("ksql.sink.window.change.log.additional.retention", _NO_INTERNAL_TOPICS),
    _without(
        "ksql.new.query.planner.enabled", _PLANNER, boolean, False, editable=True, harmless=False
    ),
    _without(
        "ksql.timestamp.throw.on.invalid",
        "A record without a valid time is skipped and logged.",
        boolean,
        False,
        editable=True,
        harmless=False,
    ),
    _without(
        "ksql.nested.error.set.null", _NEVER_STOPS, boolean, True, editable=True, harmless=True
    ),
    _without(
        "ksql.lambdas.enabled", "Lambdas are part of the language.", boolean, True, harmless=True
    ),
    _without(
        "ksql.functions.substring.legacy.args",
        "SUBSTRING counts from 1, as in SQL.",
        boolean,
        False,
        editable=True,
        harmless=False,
    ),
    _without(
        "ksql.json_sr.converter.deserializer.enabled",
        "anyOf of JSON schemas is always understood.",
        boolean,
        True,
        editable=True,
        harmless=True,
    ),
    _without(
        "ksql.suppress.buffer.size.bytes",
        "EMIT FINAL keeps its rows in the query's state.",
        editable=True,
    ),
    _without(
        "ksql.suppress.buffer.size",
        "EMIT FINAL keeps its rows in the query's state.",
        editable=True,
    ),
    _without("ksql.query.persistent.max.bytes.buffering.total", _STATE),
    _without("ksql.query.transient.max.bytes.buffering.total", _STATE),
)


def _streams(
    name: str, doc: str, parse: Callable[[str], Value] = str, default: Value = None
) -> Setting:
    return _without(name, doc, parse, default, editable=True)


# Those of Kafka Streams, which may leave `ksql.streams.` out.
_OF_KAFKA_STREAMS = (
    _streams("ksql.streams.commit.interval.ms", "Spark commits every micro-batch.", int, 2000),
    _streams("ksql.streams.num.stream.threads", _SPARK_CORES, int, 4),
    _streams(
        "ksql.streams.max.task.idle.ms",
        "Rows of one micro-batch are always put in order of their time.",
        int,
        0,
    ),
    _streams(
        "ksql.streams.num.standby.replicas",
        "Another server takes over from the checkpoints in state.dir.",
    ),
    _streams("ksql.streams.replication.factor", _NO_INTERNAL_TOPICS),
    _streams("ksql.streams.topic.*", _NO_INTERNAL_TOPICS),
    _streams("ksql.streams.repartition.purge.interval.ms", _NO_INTERNAL_TOPICS),
    _streams("ksql.streams.windowstore.changelog.additional.retention.ms", _NO_INTERNAL_TOPICS),
    _streams(
        "ksql.streams.buffered.records.per.partition",
        "max.offsets.per.trigger bounds a micro-batch.",
    ),
    _streams(
        "ksql.streams.task.timeout.ms",
        "ksql.query.stall.timeout.ms says how long a query may stand still.",
    ),
    _streams("ksql.streams.rocksdb.config.setter", _JAVA),
    _streams("ksql.streams.default.deserialization.exception.handler", _NEVER_STOPS),
    _streams("ksql.streams.deserialization.exception.handler", _NEVER_STOPS),
    _streams("ksql.streams.default.production.exception.handler", _JAVA),
    _streams("ksql.streams.production.exception.handler", _JAVA),
    _streams("ksql.streams.processing.exception.handler", _NEVER_STOPS),
    _streams("ksql.streams.processing.exception.handler.global.enabled", _NEVER_STOPS),
    _streams(
        "ksql.streams.errors.dead.letter.queue.topic.name", "See ksql.error.dead.letter.topic."
    ),
    _streams(
        "ksql.streams.default.timestamp.extractor", "WITH (TIMESTAMP) says which time counts."
    ),
    _streams("ksql.streams.default.key.serde", _SERDES),
    _streams("ksql.streams.default.value.serde", _SERDES),
    _streams("ksql.streams.default.list.*", _SERDES),
    _streams("ksql.streams.windowed.inner.class.serde", _SERDES),
    _streams("ksql.streams.window.size.ms", _SERDES),
    _streams("ksql.streams.default.client.supplier", _JAVA),
    _streams("ksql.streams.default.dsl.store", _STATE),
    _streams("ksql.streams.dsl.store.format", _STATE),
    _streams("ksql.streams.dsl.store.suppliers.class", _STATE),
    _streams("ksql.streams.state.cleanup.delay.ms", _STATE),
    _streams("ksql.streams.state.cleanup.dir.max.age.ms", _STATE),
    _streams("ksql.streams.allow.os.group.write.access", _STATE),
    _streams("ksql.streams.acceptable.recovery.lag", _NO_STREAMS),
    _streams("ksql.streams.max.warmup.replicas", _NO_STREAMS),
    _streams("ksql.streams.probing.rebalance.interval.ms", _NO_STREAMS),
    _streams("ksql.streams.application.id", "ksql.service.id names the cluster."),
    _streams(
        "ksql.streams.application.server",
        "ksql.advertised.listener says where this server is reached.",
    ),
    _streams("ksql.streams.built.in.metrics.version", _NO_METRICS),
    _streams("ksql.streams.log.summary.interval.ms", _NO_STREAMS),
    _streams("ksql.streams.poll.ms", _NO_STREAMS),
    _streams("ksql.streams.rack.aware.assignment.*", _NO_STREAMS),
    _streams("ksql.streams.task.assignor.class", _NO_STREAMS),
    _streams("ksql.streams.processor.wrapper.class", _NO_STREAMS),
    _streams("ksql.streams.topology.optimization", _NO_STREAMS),
    _streams("ksql.streams.upgrade.from", _NO_STREAMS),
    _streams("ksql.streams.ensure.explicit.internal.resource.naming", _NO_STREAMS),
    _streams(
        "ksql.streams.shutdown.timeout.ms", "A server that stops lets running micro-batches finish."
    ),
    _streams("ksql.streams.restore.consumer.*", _NO_INTERNAL_TOPICS),
    _streams("ksql.streams.global.consumer.*", _NO_INTERNAL_TOPICS),
)

KSQLDB_SETTINGS = (
    *_MAPPED_ONES,
    *_REFUSED_ONES,
    *_OF_THE_SERVER,
    *_OF_PULL_QUERIES,
    *_OF_STATEMENTS,
    *_OF_KAFKA_STREAMS,
)
