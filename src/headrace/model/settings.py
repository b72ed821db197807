"""Every setting, declared once: name, kind, default, description, and who may change it.

Names are ksqlDB's. `ksql.streams.` in front of a Kafka Streams, consumer or producer name may be
left out, as in ksqlDB. Settings of Spark (`spark.*`) and of the Kafka client pass through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from headrace.model.allowed_callers import ALLOWED_HOSTS
from headrace.model.errors import HeadraceError, StatementError
from headrace.model.kafka_client_names import STREAMS, client_name
from headrace.model.ksqldb_settings import KSQLDB_SETTINGS
from headrace.model.secrets import HIDDEN, sounds_secret, without_login
from headrace.model.setting import Fate, Setting, Value
from headrace.model.setting import boolean as _boolean
from headrace.model.setting import one_of as _one_of
from headrace.model.setting import positive as _positive

# What clients may change: the lists, and which of them counts.
DENYLIST = "ksql.properties.overrides.denylist"
ALLOWLIST = "ksql.properties.overrides.allowlist"
LIST_MODE = "ksql.properties.overrides.validation.mode"

_SETTINGS = (
    Setting(
        "ksql.service.id",
        str,
        "default_",
        "Names the cluster: servers with the same id share their statements; it is part of "
        "internal topics' names.",
    ),
    Setting(
        "bootstrap.servers",
        str,
        None,
        "Kafka brokers as host:port, separated by commas. Without it an embedded broker is "
        "started.",
    ),
    Setting(
        "listeners",
        str,
        "http://127.0.0.1:8088",
        "Where the REST API listens. Loopback unless told otherwise.",
    ),
    Setting(
        "ksql.advertised.listener",
        str,
        None,
        "Where other machines reach this server, as /clusterStatus tells them. Default: where it "
        "listens, or the machine's name if that is everywhere.",
    ),
    Setting(
        "ksql.schema.registry.url",
        str,
        None,
        "The schema registry. Without it, and without bootstrap.servers, an embedded one is "
        "started.",
    ),
    Setting(
        "ksql.schema.registry.basic.auth.user.info",
        str,
        None,
        "user:password for the schema registry.",
        secret=True,
    ),
    Setting(
        "ksql.schema.registry.*",
        str,
        None,
        "TLS and logins for the schema registry, by the names of its own client.",
    ),
    Setting(
        "ksql.connect.url",
        str,
        None,
        "A Kafka Connect worker's REST address, for connector statements.",
    ),
    Setting(
        "ksql.connect.basic.auth.credentials.source",
        str.upper,
        None,
        "FILE: the login for Kafka Connect is in ksql.connect.basic.auth.credentials.file.",
    ),
    Setting(
        "ksql.connect.basic.auth.credentials.file",
        str,
        None,
        "A file with two lines, `username: …` and `password: …`, for Kafka Connect.",
    ),
    Setting("ksql.connect.*", str, None, "TLS for Kafka Connect, by the names of Kafka's clients."),
    Setting(
        "state.dir",
        str,
        None,
        "Where checkpoints and state go: any path that Spark's Hadoop file systems can write."
        " Default: below the data directory. With executors on other machines there is no default:"
        " it has to be a path that all of them share.",
    ),
    Setting(
        "ksql.streams.auto.offset.reset",
        _one_of("earliest", "latest"),
        "latest",
        "Where a new query starts to read: earliest or latest.",
        editable=True,
    ),
    Setting(
        "ksql.streams.cache.max.bytes.buffering",
        int,
        10_000_000,
        "0: every input row gives its output rows. Otherwise a table's updates may coalesce "
        "within a micro-batch.",
        editable=True,
    ),
    Setting(
        "ksql.streams.max.offsets.per.trigger",
        int,
        500_000,
        "At most this many records in one micro-batch, so that a long backlog cannot fill the"
        " memory. Spark knows it as maxOffsetsPerTrigger.",
        editable=True,
        limit=True,
    ),
    Setting(
        "ksql.streams.state.buckets",
        _positive,
        None,
        "Into how many buckets the state of a new query's joins and aggregates is split: no more"
        " tasks than that work on it at a time. It stays with the query. Default: 16.",
        editable=True,
    ),
    Setting(
        "processing.guarantee",
        _one_of("at_least_once", "exactly_once_v2", "exactly_once"),
        "at_least_once",
        "at_least_once, or exactly_once_v2: each record's effect is in the output once, also "
        "across failures.",
        editable=True,
    ),
    Setting(
        "ksql.persistence.default.format.key",
        str.upper,
        "KAFKA",
        "The key format of sources that name none.",
        editable=True,
    ),
    Setting(
        "ksql.persistence.default.format.value",
        str.upper,
        None,
        "The value format of sources that name none.",
        editable=True,
    ),
    Setting(
        "ksql.persistence.wrap.single.values",
        _boolean,
        False,
        "How the values of new streams and tables with a single value column are read and "
        "written: as a record with one field (true) or as the bare value (false). It is the "
        "default of WRAP_SINGLE_VALUES in CREATE STREAM and CREATE TABLE, which keep it with the "
        "source; CREATE … AS SELECT inherits from its source (in a join, the left one) instead. "
        "For the statements that follow: SET 'ksql.persistence.wrap.single.values'='true'; "
        "Without effect on formats that leave no choice: DELIMITED, KAFKA, NONE, PROTOBUF.",
        editable=True,
    ),
    Setting(
        "ksql.persistence.wrap.single.keys",
        _boolean,
        False,
        "How the keys of new streams and tables with a single key column are read and written: "
        "as a record with one field (true) or as the bare value (false). It is the default of "
        "WRAP_SINGLE_KEYS in CREATE STREAM and CREATE TABLE, which keep it with the source; "
        "CREATE … AS SELECT inherits from its source (in a join, the left one) instead. For the "
        "statements that follow: SET 'ksql.persistence.wrap.single.keys'='true'; Without effect "
        "on formats that leave no choice: DELIMITED, KAFKA, NONE, PROTOBUF.",
        editable=True,
    ),
    Setting(
        "ksql.suppress.enabled",
        _boolean,
        True,
        "Whether EMIT FINAL is allowed.",
        editable=True,
    ),
    Setting(
        "ksql.headers.enabled",
        _boolean,
        True,
        "Whether new sources may have HEADERS or HEADER('key') columns. Existing ones go on "
        "working. It is the server's: clients cannot change it.",
    ),
    Setting(
        "ksql.output.topic.name.prefix",
        str,
        "",
        "Put in front of the topic names of new sinks that name no topic.",
        editable=True,
    ),
    Setting(
        "ksql.internal.topic.replicas",
        int,
        1,
        "Replicas of internal topics: the command log, the servers' heartbeats and "
        "`ksql.error.dead.letter.topic`.",
    ),
    Setting(
        "ksql.internal.topic.min.insync.replicas",
        int,
        1,
        "How many replicas of an internal topic must have a record before it counts.",
    ),
    Setting(
        "ksql.insert.into.values.enabled",
        _boolean,
        True,
        "Whether INSERT INTO … VALUES is allowed.",
        editable=True,
    ),
    Setting("ksql.query.pull.enable", _boolean, True, "Whether pull queries are allowed."),
    Setting(
        "ksql.query.pull.table.scan.enabled",
        _boolean,
        True,
        "Whether a pull query may read a whole table.",
        editable=True,
    ),
    Setting(
        "ksql.query.pull.range.scan.enabled",
        _boolean,
        True,
        "Whether a pull query may read a range of a table's keys.",
        editable=True,
    ),
    Setting(
        "ksql.query.pull.limit.clause.enabled",
        _boolean,
        True,
        "Whether pull queries may have a LIMIT.",
        editable=True,
    ),
    Setting(
        "ksql.query.pull.max.staleness.ms",
        int,
        50,
        "A pull query's answer holds everything that was in the table's topic so long ago, or "
        "later. 0: everything that was there when it was asked, for one more round trip to Kafka.",
        editable=True,
    ),
    Setting(
        "ksql.query.pull.stream.enabled",
        _boolean,
        True,
        "Whether pull queries on streams are allowed.",
        editable=True,
    ),
    Setting(
        "ksql.query.push.v2.enabled",
        _boolean,
        False,
        "Whether push queries that ksqlDB calls scalable are answered as there: only records with "
        "key and value count, and their ids begin with SCALABLE_PUSH_QUERY. They run as others do.",
        editable=True,
    ),
    Setting(
        "ksql.query.push.v2.continuation.tokens.enabled",
        _boolean,
        False,
        "Whether answers of scalable push queries (ksql.query.push.v2.enabled) have continuation "
        "tokens, with which a client that comes back goes on where it was.",
        editable=True,
    ),
    Setting(
        "ksql.assert.topic.default.timeout.ms",
        int,
        1000,
        "How long ASSERT TOPIC looks again if it has no TIMEOUT.",
    ),
    Setting(
        "ksql.assert.schema.default.timeout.ms",
        int,
        1000,
        "How long ASSERT SCHEMA looks again if it has no TIMEOUT.",
    ),
    Setting(
        "ksql.query.persistent.active.limit",
        int,
        None,
        "How many persistent queries there may be; a statement that would start one more is "
        "refused. A file of statements (ksql.queries.file) is not.",
    ),
    Setting(
        DENYLIST,
        str,
        "",
        "Settings that clients may not change by SET or with a request, separated by commas.",
    ),
    Setting(
        ALLOWLIST,
        str,
        "",
        "With ksql.properties.overrides.validation.mode=allowlist: the only settings that clients "
        "may change, separated by commas.",
    ),
    Setting(
        LIST_MODE,
        _one_of("denylist", "allowlist"),
        "denylist",
        "Which of the two lists counts: denylist or allowlist.",
    ),
    Setting("ksql.max.push.queries", int, 100, "At most this many push queries at once."),
    Setting(
        "ksql.query.retry.backoff.initial.ms",
        int,
        1000,
        "How long to wait before a failed query is started again; doubles with each failure.",
    ),
    Setting("ksql.query.retry.backoff.max.ms", int, 60_000, "The longest such wait."),
    Setting(
        "ksql.query.stall.timeout.ms",
        _positive,
        600_000,
        "How long a query may stand still: a persistent query whose micro-batch reads no record "
        "and finishes no task for so long is DEGRADED, and starts again, with twice the patience "
        "each time; a push or pull query fails. Raise it if a function of yours needs longer for "
        "a few thousand records. A push query also waits so long for a schema registry or a broker "
        "that is away when it goes on.",
    ),
    Setting(
        "ksql.cast.strings.preserve.nulls",
        _boolean,
        True,
        "Whether a cast of NULL to STRING is NULL. If not, it is the text 'null' for BOOLEAN, INT, "
        "BIGINT, DOUBLE, ARRAY, MAP and STRUCT.",
        editable=True,
    ),
    Setting(
        "ksql.create.or.replace.enabled",
        _boolean,
        True,
        "Whether CREATE OR REPLACE … AS SELECT may replace a query.",
        editable=True,
    ),
    Setting(
        "ksql.source.table.materialization.enabled",
        _boolean,
        True,
        "Whether CREATE SOURCE TABLE may be read by pull queries.",
        editable=True,
    ),
    Setting(
        "ksql.variable.substitution.enable",
        _boolean,
        True,
        "Whether ${name} in statements is replaced.",
        editable=True,
    ),
    Setting(
        "ksql.queries.file",
        str,
        None,
        "A file of statements that the server runs; nobody can change anything then. The command "
        "`headrace run FILE` sets it.",
    ),
    Setting("ksql.extension.dir", str, "ext", "Python files with your own functions."),
    Setting(
        "ksql.udfs.enabled", _boolean, True, "Whether functions of ksql.extension.dir are loaded."
    ),
    Setting(
        "ksql.functions.*",
        str,
        None,
        "ksql.functions.<name of a function>.<anything>: what a function of yours is told; "
        "ksql.functions._global_.<anything> is told to all of them.",
    ),
    Setting(
        "ksql.functions.collect_list.limit",
        int,
        None,
        "At most this many items in a COLLECT_LIST result.",
        editable=True,
        limit=True,
    ),
    Setting(
        "ksql.functions.collect_set.limit",
        int,
        None,
        "At most this many items in a COLLECT_SET result.",
        editable=True,
        limit=True,
    ),
    Setting(
        "ksql.logging.processing.topic.auto.create",
        _boolean,
        True,
        "Whether the processing log's topic is created at start.",
    ),
    Setting(
        "ksql.logging.processing.topic.name",
        str,
        None,
        "The processing log's topic. Default: <service id>ksql_processing_log.",
    ),
    Setting("ksql.logging.processing.topic.partitions", int, 1, "Its partitions."),
    Setting("ksql.logging.processing.topic.replication.factor", int, 1, "Its replicas."),
    Setting(
        "ksql.logging.processing.stream.auto.create",
        _boolean,
        True,
        "Whether the stream over the processing log is created at start.",
    ),
    Setting("ksql.logging.processing.stream.name", str, "KSQL_PROCESSING_LOG", "Its name."),
    Setting(
        "ksql.logging.processing.rows.include",
        _boolean,
        False,
        "Whether entries hold the record itself, in base64.",
        editable=True,
    ),
    Setting(
        "ksql.error.dead.letter.topic",
        str,
        None,
        "A topic for records that were skipped, unchanged, with headers that say why. Off by "
        "default.",
        editable=True,
    ),
    Setting(
        "authentication.method",
        _one_of("none", "basic"),
        "none",
        "none, or BASIC: users of a credentials file.",
    ),
    Setting(
        "authentication.credentials.file",
        str,
        None,
        "The users for BASIC, a line each, as `headrace password` prints it.",
    ),
    Setting(
        "authentication.realm", str, "headrace", "What a browser shows when it asks for BASIC."
    ),
    Setting(
        "authentication.roles",
        str,
        "*",
        "Users need one of these roles to be let in at all, separated by commas; * for any.",
    ),
    Setting(
        "authentication.skip.paths",
        str,
        "",
        "Paths that are open to all, separated by commas; a * stands for any text.",
    ),
    Setting(
        "access.control.allow.origin",
        str,
        "",
        "Web pages that may call the API besides the server's own, separated by commas; * for all.",
    ),
    Setting(
        ALLOWED_HOSTS,
        str,
        "",
        "Names that the server is called by, separated by commas, besides the address it listens "
        "on, localhost if that is a loopback address, and ksql.advertised.listener; * for all. "
        "Requests to other names are refused, on the port of the embedded schema registry too.",
    ),
    Setting(
        "listeners.ssl.certificate",
        str,
        None,
        "For an https listener: a PEM file with the server's certificate and its chain. Or name "
        "both parts in one PEM file by ssl.keystore.location.",
    ),
    Setting("listeners.ssl.key", str, None, "The PEM file with its private key."),
    Setting(
        "listeners.ssl.key.password", str, None, "What that key is encrypted with.", secret=True
    ),
    Setting(
        "ksql.server.max.request.bytes",
        int,
        4 * 1024 * 1024,
        "The largest request body, and the largest row of an insert stream.",
    ),
    Setting(
        "ksql.server.max.waiting.requests",
        int,
        1000,
        "How many requests may wait for a thread before further ones are refused.",
    ),
    Setting("ksql.server.max.prints", _positive, 32, "At most this many PRINTs at once."),
    Setting(
        "ksql.server.max.insert.streams",
        _positive,
        100,
        "At most this many insert streams at once.",
    ),
    Setting(
        "ksql.server.max.waiting.assertions",
        int,
        100,
        "At most this many requests at once whose ASSERT waits for a topic or schema.",
    ),
    Setting(
        "ksql.server.command.response.timeout.ms",
        int,
        5000,
        "How long a request waits for the command that its commandSequenceNumber names.",
    ),
    Setting(
        "ksql.query.pull.max.concurrent.requests",
        int,
        None,
        "At most this many pull queries at once.",
    ),
    Setting(
        "ksql.query.pull.max.qps",
        _positive,
        None,
        "How many pull queries a second this server answers; further ones are refused with 429.",
    ),
    Setting(
        "ksql.query.pull.max.hourly.bandwidth.megabytes",
        int,
        None,
        "How much the answers of pull queries may weigh within an hour; when they weigh more, "
        "further ones are refused until they do not.",
    ),
    Setting(
        "ksql.query.push.v2.max.hourly.bandwidth.megabytes",
        int,
        None,
        "The same for push queries, all of them.",
    ),
    Setting(
        "ksql.idle.connection.timeout.seconds",
        _positive,
        86_400,
        "A connection on which nothing was sent in either direction for so long is closed.",
    ),
    Setting(
        "response.http.headers.config",
        str,
        "",
        "Headers for every answer: `add Name: value` or `set Name: value`, separated by commas; in "
        "quotation marks where the value has commas of its own.",
    ),
    Setting(
        "compression.type",
        str,
        None,
        "How producers compress batches of records: none, gzip, snappy, lz4 or zstd.",
        client=True,
    ),
    Setting(
        "ksql.streams.producer.compression.type",
        str,
        None,
        "How queries compress what they write; without it compression.type counts.",
        editable=True,
    ),
    Setting("ksql.query.push.max.duration.ms", int, None, "How long a push query may last."),
    Setting("ksql.query.max.rows", int, None, "How many rows one query may return."),
)

SETTINGS: Mapping[str, Setting] = {
    s.name: s for s in (*_SETTINGS, *KSQLDB_SETTINGS) if not s.name.endswith(".*")
}
# Those that stand for all names which begin alike.
FAMILIES: Mapping[str, Setting] = {
    s.name.removesuffix("*"): s for s in (*_SETTINGS, *KSQLDB_SETTINGS) if s.name.endswith(".*")
}

_UNKNOWN = "Not recognizable as ksql, streams, consumer, or producer property: '{}'"

# Settings of the clients of services beside Kafka, which check them: TLS and logins.
REGISTRY_SETTINGS, CONNECT_SETTINGS = "ksql.schema.registry.", "ksql.connect."


def declared(name: str) -> Setting | None:
    """The declaration of a setting, as its name is given; Kafka Streams' names may lack theirs."""
    prefixed = STREAMS + name
    found = SETTINGS.get(name) or SETTINGS.get(prefixed)
    if found is None:
        families = (family for start, family in FAMILIES.items() if name.startswith(start))
        others = (family for start, family in FAMILIES.items() if prefixed.startswith(start))
        found = next(families, None) or next(others, None)
    return found


def canonical(name: str) -> str:
    """The name a setting is known by: that which it is mapped to, with its prefix if it has one."""
    if name in SETTINGS:
        return SETTINGS[name].target or name
    found = SETTINGS.get(STREAMS + name)
    return name if found is None else found.target or found.name


def in_force() -> Iterator[str]:
    """The names that have a value, be it their default."""
    named = Fate.HONOURED, Fate.WITHOUT_MEANING
    return (name for name, setting in SETTINGS.items() if setting.fate in named)


def passes_through(name: str) -> bool:
    """Whether a name is Spark's or a Kafka client's, which check it themselves."""
    return name.startswith("spark.") or client_name(name) is not None


def parse(name: str, value: object) -> Value:
    """The value of a setting from its text; raises with ksqlDB's words if it does not fit."""
    setting = declared(canonical(name))
    assert setting is not None, name
    if value is None:
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        parsed = setting.parse(text)
    except ValueError as e:
        reason = str(e) if not str(e).startswith("invalid literal") else "Not a number of type INT"
        raise StatementError(
            f"Invalid value {shown(name, text)} for property {name}: {reason}"
        ) from None
    if setting.fate is Fate.REFUSED and parsed not in (setting.harmless, ""):
        raise StatementError(f"{name} is refused. {setting.doc}")
    return parsed


def is_on(settings: Mapping[str, object], name: str) -> bool:
    """Whether a switch is on, in settings that may be texts and lack their defaults."""
    value = settings.get(name)
    return bool(SETTINGS[name].default if value is None else parse(name, value))


def check_editable(name: str) -> None:
    """Raises unless a client may set this name by SET or with a request."""
    known = declared(canonical(name))
    if known is not None:
        if not known.editable:
            raise StatementError(
                f"Cannot override property '{name}'. It is the server's: change it in the "
                "server's properties, and start the server again."
            )
        return
    if not passes_through(name) or name.startswith("spark."):
        raise StatementError(_UNKNOWN.format(name))
    if is_secret(name):
        raise StatementError(
            f"Cannot override property '{name}': it is a secret, and statements are kept and shown "
            "with what they were given. It belongs into the server's own settings."
        )


def check_override(server: Settings, names: Iterable[str]) -> None:
    """Raises for names that the server's own lists keep clients from changing."""
    allows = server.text(LIST_MODE) == "allowlist"
    listed = _names(server, ALLOWLIST if allows else DENYLIST)
    wrong = [name for name in names if (canonical(name) in listed) != allows]
    if not wrong:
        return
    if allows:
        told = "property overrides set locally are not permitted by the KSQL server allowlist"
    else:
        told = "properties overrides set locally are prohibited by the KSQL server denylist"
    raise StatementError(
        f"One or more {told} (use UNSET to reset their default value): [{', '.join(wrong)}]"
    )


def _names(server: Settings, setting: str) -> set[str]:
    names = (name.strip() for name in (server.text(setting) or "").split(","))
    return {canonical(name) for name in names if name}


def is_secret(name: str) -> bool:
    """Whether a setting's value is secret."""
    known = SETTINGS.get(canonical(name))
    return known.secret if known is not None else sounds_secret(name)


def shown(name: str, value: str) -> str:
    """A setting's value as shown to anybody, with secrets hidden."""
    return HIDDEN if value and is_secret(name) else without_login(value)


def check_limits(server: Settings, asked: Mapping[str, object]) -> None:
    """Raises if a client asks for more than the server allows."""
    for name, value in asked.items():
        known = SETTINGS.get(canonical(name))
        most = None if known is None or not known.limit else server[name]
        if isinstance(most, int) and value is not None:
            wanted = parse(name, value)
            if not isinstance(wanted, int) or wanted > most:
                raise StatementError(
                    f"Cannot set '{name}' to {wanted}: this server's limit is {most}, which only "
                    "its own settings can raise."
                )


class Settings(Mapping[str, Value]):
    """Settings in force: defaults, the server's configuration, then overrides, in that order."""

    def __init__(self, *layers: Mapping[str, object]) -> None:
        self._given: dict[str, Value] = {}
        for layer in layers:
            for name, value in layer.items():
                key = canonical(name)
                if declared(key) is not None:
                    self._given[key] = parse(key, value)
                elif passes_through(key):
                    self._given[key] = None if value is None else str(value)
                else:
                    raise HeadraceError(_UNKNOWN.format(name))

    def __getitem__(self, name: str) -> Value:
        key = canonical(name)
        if key in self._given:
            return self._given[key]
        return SETTINGS[key].default

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(in_force()), **self._given})

    def __len__(self) -> int:
        return len({**dict.fromkeys(in_force()), **self._given})

    @property
    def given(self) -> Mapping[str, Value]:
        """What was set, without the defaults."""
        return self._given

    def override(self, layer: Mapping[str, object]) -> Settings:
        return Settings(self._given, layer)

    def text(self, name: str) -> str | None:
        value = self[name]
        return None if value is None else str(value)

    def flag(self, name: str) -> bool:
        return bool(self[name])

    def number(self, name: str) -> int:
        value = self[name]
        assert isinstance(value, int), name
        return value

    def spark(self) -> dict[str, str]:
        return {k: str(v) for k, v in self._given.items() if k.startswith("spark.")}

    def client(self) -> dict[str, str]:
        """What the Kafka clients get: security above all, by the names Java clients use."""
        out: dict[str, str] = {}
        # Of a name with a prefix and one without, the first counts.
        for name, value in sorted(
            self._given.items(), key=lambda item: item[0].startswith(STREAMS)
        ):
            known, bare = declared(name), client_name(name)
            if value is not None and (bare if known is None else known.client):
                out[bare or name] = str(value)
        return out

    def service(self, prefix: str) -> dict[str, str]:
        """What the client of a service beside Kafka gets: the settings with its prefix, and the
        Kafka clients' for TLS and logins where it has none of its own, as in ksqlDB."""
        shared = {k: v for k, v in self.client().items() if k.startswith(("ssl.", "sasl."))}
        own = {k: str(v) for k, v in self._given.items() if k.startswith(prefix) and v is not None}
        return shared | {name.removeprefix(prefix): value for name, value in own.items()}
