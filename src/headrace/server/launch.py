"""Starts the parts of a server in order, and stops them in reverse order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

from headrace.engine.engine import Engine
from headrace.engine.environment import REPLICAS, Environment
from headrace.engine.statements.connect_client import ConnectWorker
from headrace.engine.supervised import SupervisedThread
from headrace.functions.extensions import load_extensions
from headrace.functions.registry import REGISTRY
from headrace.kafka.admin import TopicAdmin
from headrace.kafka.broker import EmbeddedBroker
from headrace.kafka.client import KafkaConnection
from headrace.kafka.jars import ensure_jars
from headrace.kafka.ports import LOOPBACK, free_port, is_free, require_free
from headrace.model.errors import HeadraceError
from headrace.model.home import data_home
from headrace.model.secrets import without_login
from headrace.model.settings import Settings
from headrace.registry.client import HttpRegistry
from headrace.registry.server import EmbeddedRegistry
from headrace.server import headless
from headrace.server.app import build_app
from headrace.server.http import HttpServer
from headrace.server.page import PAGES
from headrace.server.settings import Listener, ServerSettings
from headrace.spark.runtime.session import (
    FILE_MANAGER_SETTING,
    driver_address,
    is_local,
    start_session,
)

LOG = logging.getLogger(__name__)

MOST_BACKOFF = 10.0
SERVER_PORT, KAFKA_PORT, REGISTRY_PORT = 8088, 9092, 8081
Progress = Callable[[str], None]


@dataclass(frozen=True)
class LaunchOptions:
    """Start options: a port that is given is used or refused, a default one is replaced if taken.

    What is not given here, the settings' `listeners` says.
    """

    data_dir: Path = field(default_factory=data_home)
    temporary: bool = False  # the data directory is removed when the server has stopped
    host: str | None = None
    port: int | None = None
    kafka_port: int | None = None
    registry_port: int | None = None
    settings: Mapping[str, object] = field(default_factory=dict)


class RunningServer:
    """Broker and registry (unless external ones are named), Spark, engine and REST API.

    `lost` is told, with the reason, when a part is gone that only a new server can bring back.
    """

    def __init__(
        self,
        options: LaunchOptions,
        progress: Progress = lambda text: None,
        lost: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self._options = options
        self._progress = progress
        self._lost = lost
        self._kept: dict[str, _Kept] = {}
        self._parts = ExitStack()
        self.addresses: dict[str, str] = {}
        self.notices: list[str] = []  # what nobody should miss
        self.engine: Engine

    @property
    def url(self) -> str:
        return self.addresses["server"]

    @property
    def kafka(self) -> str:
        return self.addresses["kafka"]

    @property
    def registry(self) -> str | None:
        return self.addresses.get("registry")

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:  # also Ctrl-C: what was started is stopped
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        options, announce = self._options, self._progress
        settings = Settings(options.settings)
        file = settings.text(headless.QUERIES_FILE)
        statements = headless.read_statements(Path(file)) if file is not None else None
        state_dir = _state_dir(settings, options.data_dir)
        _make(options.data_dir, "--data-dir")
        announce("Checking jars")
        jars = ensure_jars(announce)
        listener = Listener.of(settings)
        told = listener.port if listener.given else None
        given = told if options.port is None else options.port
        port = self._port(given, SERVER_PORT, "the server")
        served = ServerSettings.of(settings, options.host or listener.host, port)
        external = settings.text("bootstrap.servers")
        if external is None:
            announce("Starting Kafka")
            kafka_port = self._port(options.kafka_port, KAFKA_PORT, "Kafka")
            broker = EmbeddedBroker(options.data_dir / "kafka", kafka_port, jars)
            self._parts.enter_context(broker)
            self._keep("embeddedBroker", broker)
            external = broker.bootstrap_servers
        self.addresses["kafka"] = external
        connection = KafkaConnection({**settings.client(), "bootstrap.servers": external})
        admin = TopicAdmin(connection)
        cluster_id = admin.cluster_id()  # a Kafka that refuses us is known before Spark is started
        settings = self._replicated(settings, admin)
        registry_url = settings.text("ksql.schema.registry.url")
        if registry_url is None and settings.text("bootstrap.servers") is None:
            announce("Starting the schema registry")
            registry_port = self._port(options.registry_port, REGISTRY_PORT, "the schema registry")
            registry = EmbeddedRegistry(connection, registry_port, served.hosts)
            self._parts.enter_context(registry)
            self._keep("embeddedRegistry", registry)
            registry_url = registry.url
        if registry_url is not None:
            self.addresses["registry"] = registry_url
        registry_client = None if registry_url is None else HttpRegistry.of(registry_url, settings)
        ConnectWorker.named(settings)  # what cannot be is refused now, not by a statement
        if settings.flag("ksql.udfs.enabled"):
            extensions = Path(settings.text("ksql.extension.dir") or "ext")
            for problem in load_extensions(extensions, REGISTRY):
                LOG.error("%s is not loaded: %s", problem.path, problem.reason)
        announce("Starting Spark")
        spark = start_session(jars.spark, settings.spark(), options.data_dir / "spark")
        self._parts.callback(spark.stop)
        env = Environment(
            settings=settings,
            kafka=connection,
            admin=admin,
            registry=registry_client,
            spark=spark,
            state_dir=state_dir,
            data_dir=options.data_dir,
            cluster_id=cluster_id,
        )
        self.engine = engine = Engine(env, self.addresses, self._lost)
        announce("Replaying statements")
        engine.open()
        self._parts.callback(engine.close)
        for name, kept in self._kept.items():
            engine.watch.add(name, partial(_failure, *kept))
        if statements is not None:
            announce(f"Running the statements of {file}")
            headless.apply(engine, statements, announce)
        app = build_app(engine, served, PAGES, headless=statements is not None)
        http = HttpServer(app, served)
        http.start()
        self._parts.callback(http.stop)
        self.addresses["server"] = engine.addresses["server"] = http.url
        listening = {part: without_login(url) for part, url in self.addresses.items()}
        LOG.info("Listening: %s", listening)

    def _notice(self, text: str) -> None:
        self.notices.append(text)
        self._progress(f"!! {text}")

    def _port(self, given: int | None, default: int, purpose: str) -> int:
        if given is not None:
            return given if given == 0 else require_free(given, purpose)
        if is_free(default):
            return default
        found = free_port()
        self._notice(
            f"Port {default} is taken by another program: {purpose} listens on {found} instead, "
            f"and whoever calls {default} talks to that program."
        )
        return found

    def _replicated(self, settings: Settings, admin: TopicAdmin) -> Settings:
        """Kafka refuses more replicas than it has brokers. One that has a single broker is there to
        try things, with whatever settings; a larger one may lack a broker for a while."""
        asked = [name for name in REPLICAS if settings.number(name) > 1]
        if not asked or admin.brokers() > 1:
            return settings
        self._notice(f"This Kafka has one broker: {', '.join(asked)} count as 1.")
        return settings.override(dict.fromkeys(asked, 1))

    def _keep(self, name: str, part: EmbeddedBroker | EmbeddedRegistry) -> None:
        """Adds a thread that restarts a part when it dies."""
        thread = SupervisedThread(name, lambda: part.keep(thread.stopping), most=MOST_BACKOFF)
        thread.start()
        self._parts.callback(thread.stop)
        self._kept[name] = (part, thread)

    def stop(self) -> None:
        """Ends what was started, last first; running micro-batches finish."""
        self._parts.close()


_Kept = tuple[EmbeddedBroker | EmbeddedRegistry, SupervisedThread]


def _failure(part: EmbeddedBroker | EmbeddedRegistry, thread: SupervisedThread) -> str | None:
    return part.failure or thread.failure


def _state_dir(settings: Settings, data_dir: Path) -> str:
    """Where states go. On a cluster that is no matter of course, nor is a Kafka to be reached."""
    told = settings.text("state.dir")
    _check_atomic(told or "", settings)
    master = settings.spark().get("spark.master", "local")
    if is_local(master):
        return _made_state_dir(told) if told else str(data_dir.resolve() / "state")
    if settings.text("bootstrap.servers") is None and driver_address(master) != LOOPBACK:
        raise HeadraceError(
            f"The executors of {master} cannot reach the embedded broker, which listens on "
            "loopback: set bootstrap.servers to a Kafka that they reach."
        )
    if told is None:
        raise HeadraceError(
            f"The executors of {master} need a place for states that they share: set state.dir to "
            "a path that this machine and all of theirs can write."
        )
    return told


def _made_state_dir(told: str) -> str:
    """A directory of this machine is made now: a query would only fail and fail without it."""
    parts = urlsplit(told)
    if parts.scheme in ("", "file"):
        _make(Path(unquote(parts.path) if parts.scheme else told), "state.dir")
    return told.rstrip("/") or told


def _make(directory: Path, told_by: str) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HeadraceError(
            f"{directory}, which {told_by} names, cannot be made ({error.strerror}): choose a "
            "directory that can be written."
        ) from None


# Of Hadoop's file systems, those whose rename is atomic.
_ATOMIC = frozenset({"", "file", "hdfs", "viewfs", "webhdfs", "swebhdfs", "abfs", "abfss", "ofs"})


def _check_atomic(state_dir: str, settings: Settings) -> None:
    """Refuses what would lose a checkpoint sooner or later."""
    scheme = urlsplit(state_dir).scheme
    if scheme not in _ATOMIC and FILE_MANAGER_SETTING not in settings.spark():
        raise HeadraceError(
            f"state.dir is {state_dir}, but {scheme} cannot rename files atomically, which "
            "checkpoints rely on: choose a path on a local disk, NFS or HDFS, or set "
            f"{FILE_MANAGER_SETTING} to a class that writes each file in one request (for s3a, "
            "with spark-hadoop-cloud among spark.jars, it is "
            "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager)."
        )
