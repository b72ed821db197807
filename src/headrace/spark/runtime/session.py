"""The Spark session: one per server, quiet, on this machine or on a cluster.

On a cluster, executors get our jars and the package itself from the driver, through Spark. They
find nothing else of the driver's machine: what they share are Kafka and the directory of states.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from pyspark import SparkConf
from pyspark.sql import SparkSession

from headrace.model.secrets import sounds_secret
from headrace.spark.internals.arrow_batches import BATCH_BYTES, BATCH_ROWS, BYTES_SETTING
from headrace.spark.internals.fork_server import fork_server_path
from headrace.spark.internals.jvm import start_jvm
from headrace.spark.internals.py4j_cache import cache_classes
from headrace.spark.internals.scheduler_pools import ALLOCATIONS
from headrace.spark.runtime.durable import FILE_MANAGER, FILE_SYSTEM, durable_jar
from headrace.spark.runtime.java import SELECTORS, java_jar, register
from headrace.spark.runtime.package import DIRECTORY, write_package
from headrace.spark.state.kernel_step import DEFAULT_BUCKETS

FILE_MANAGER_SETTING = "spark.sql.streaming.checkpointFileManagerClass"

# What Headrace relies on; a user's `spark.*` settings may add to these but not change their sense.
_SEMANTICS = {
    # Failures are values here (see expressions); an exception would stop the query.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    # A name in a lambda is a column of the input, even if the same select makes another of it.
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "false",
}

# Spark plans every micro-batch anew. These rules take a third of that time, and are for what our
# plans do not have: files, joins of Spark's own, subqueries.
_USELESS_RULES = ",".join(
    [
        "org.apache.spark.sql.execution.datasources.SchemaPruning",
        "org.apache.spark.sql.execution.datasources.PruneFileSourcePartitions",
        "org.apache.spark.sql.execution.datasources.PushVariantIntoScan",
        *(
            f"org.apache.spark.sql.catalyst.optimizer.{name}"
            for name in (
                "EliminateOuterJoin",
                "ReorderAssociativeOperator",
                "SimplifyBinaryComparison",
                "PruneFilters",
                "PushDownLeftSemiAntiJoin",
                "OptimizeRepartition",
                "ConstantPropagation",
                "OptimizeOneRowRelationSubquery",
            )
        ),
    ]
)

_DEFAULTS = {
    "spark.app.name": "headrace",
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    # Without it nobody looks at what is over; a plan's text of each micro-batch would be kept.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.optimizer.excludedRules": _USELESS_RULES,
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
    BYTES_SETTING: str(BATCH_BYTES),
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.python.worker.reuse": "true",
    # PySpark would tell the JVM where in our code each expression was made: most of the calls.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # A small batch crosses to Python in 15 ms instead of 42.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.daemon.module": "headrace.spark.runtime.workers",
    "spark.sql.streaming.pollingDelay": "20ms",
    # Whoever stops a query is not held up by a thread that does not end.
    "spark.sql.streaming.stopTimeout": "60s",
    # What was fetched and not read, which a query that has ended leaves behind.
    "spark.kafka.consumer.fetchedData.cache.timeout": "60s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "20s",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
}

# Checkpoint files are on the disk before they count. And Hadoop's local file system would fork
# `chmod` for each of them. Both classes come with Headrace's jars.
_CHECKPOINT_FILES = {
    "spark.hadoop.fs.file.impl": FILE_SYSTEM,
    FILE_MANAGER_SETTING: FILE_MANAGER,
}

# Java leaves methods of 8 kB interpreted; those that Spark makes of many columns are larger, and
# six times slower so. A JVM without memory would go on with threads missing: it ends instead, and
# begins anew.
_JAVA_OPTIONS = "-Xss4m -XX:-DontCompileHugeMethods -XX:+ExitOnOutOfMemoryError"

# The parallel collector takes what the heap may have before it looks at what is old, the sooner the
# busier the machine is; with two cores it gains nothing by that (`docs/design/0009-memory.md`).
_COLLECTOR = "-XX:+UseParallelGC"
_COLLECTOR_OF_TWO_CORES = (
    "-XX:+UseSerialGC -XX:MaxNewSize=192m -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40"
)

_DRIVER_JAVA = "spark.driver.extraJavaOptions"
_EXECUTOR_JAVA = "spark.executor.extraJavaOptions"

# If the driver does all the work: sized to the machine.
_HERE = {"spark.sql.shuffle.partitions": str(os.cpu_count() or 2)}

# If executors do it. There are as many tasks as buckets of state: a cluster may grow later, and
# this number cannot.
_ON_CLUSTER = {
    "spark.sql.shuffle.partitions": str(DEFAULT_BUCKETS),
    # A task that was ended and runs on keeps its core: then the executor goes, and Spark has
    # another. The driver has none to spare (`engine/queries/stalls.py`).
    "spark.task.reaper.enabled": "true",
    "spark.task.reaper.killTimeout": "60s",
    "spark.task.reaper.threadDump": "false",
    _EXECUTOR_JAVA: f"{_COLLECTOR} {_JAVA_OPTIONS}",
}

_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} spark %-5p %c{1}: %m%n
# Headrace reports a failed query itself, with its reason and what happens next.
logger.stream.name = org.apache.spark.sql.execution.streaming
logger.stream.level = off
logger.task.name = org.apache.spark.scheduler.TaskSetManager
logger.task.level = off
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.batch.name = org.apache.spark.sql.execution.datasources.v2
logger.batch.level = off
logger.python.name = org.apache.spark.api.python
logger.python.level = off
"""


def is_local(master: str) -> bool:
    """Whether the driver does all the work."""
    return master == "local" or master.startswith("local[")


def start_session(
    jars: Iterable[Path], settings: Mapping[str, str], work_dir: Path
) -> SparkSession:
    """Starts Spark (about 4 s). `settings` are the user's `spark.*` names and values."""
    # PySpark logs every failed call as JSON; whoever catches the failure reports it.
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL + 1)
    work_dir = work_dir.absolute()
    work_dir.mkdir(parents=True, exist_ok=True)
    log4j = work_dir / "log4j2.properties"
    log4j.write_text(_LOG4J)
    pools = work_dir / "pools.xml"
    pools.write_text(ALLOCATIONS)
    given = [j.absolute() for j in jars]
    # Without any, nothing here is to be kept.
    durable = [durable_jar(given)] if given else []
    paths = [str(jar) for jar in (*given, *durable, java_jar())]
    master = settings.get("spark.master", _DEFAULTS["spark.master"])
    local = is_local(master)
    address = "127.0.0.1" if local else driver_address(master)
    ours = {
        **_DEFAULTS,
        **(_CHECKPOINT_FILES if given else {}),
        "spark.sql.warehouse.dir": str(work_dir / "warehouse"),
        "spark.local.dir": str(work_dir / "tmp"),
        _DRIVER_JAVA: (
            f"-Dlog4j2.configurationFile={log4j.as_uri()} -Dderby.system.home={work_dir} "
            f"-Djava.nio.channels.spi.SelectorProvider={SELECTORS} "
            f"-Djava.net.preferIPv6Addresses=false {_collector()} {_JAVA_OPTIONS}"
        ),
        "spark.scheduler.allocation.file": pools.as_uri(),
        "spark.driver.extraClassPath": os.pathsep.join(paths),
        **_placed(address),
        **(_HERE if local else _ON_CLUSTER),
    }
    merged = {
        **ours,
        **settings,
        **_java_options(ours, settings),
        **({} if local else _brought(settings, paths, work_dir)),
        **_SEMANTICS,
    }
    if address is not None:
        os.environ.setdefault("SPARK_LOCAL_IP", address)
    # What executors run; the driver's JVM runs the same for its own processes.
    os.environ["PYSPARK_PYTHON"] = merged.get("spark.pyspark.python", sys.executable)
    _put_in_path(str(fork_server_path()))
    builder = SparkSession.builder
    for name, value in merged.items():
        builder = builder.config(name, value)
    with _stderr_to(work_dir / "spark.log"):
        _start_java(merged)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        cache_classes(session)
        register(session)
    return session


def another_session(session: SparkSession) -> SparkSession:
    """One with settings and queries of its own, in the same Spark context."""
    other = session.newSession()
    register(other)
    return other


def _start_java(settings: Mapping[str, str]) -> None:
    """PySpark puts all settings on the command line of its JVM, where everybody on the machine can
    read them. So it is started with those that are no secret; the session tells it the others."""
    told = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        if not sounds_secret(name):
            told.set(name, value)
    start_jvm(told)


def _java_options(ours: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Ours, and the user's after them, which win."""
    joined = {}
    for name in (_DRIVER_JAVA, _EXECUTOR_JAVA):
        if name in ours and name in settings:
            kept = ours[name]
            if re.search(r"-XX:\+Use\w+GC", settings[name]):  # Java refuses to be told of two
                for collector in (_COLLECTOR, _COLLECTOR_OF_TWO_CORES):
                    kept = kept.replace(f"{collector} ", "")
            joined[name] = f"{kept} {settings[name]}"
    return joined


def _collector() -> str:
    return _COLLECTOR if (os.cpu_count() or 1) > 2 else _COLLECTOR_OF_TWO_CORES


def _placed(address: str | None) -> dict[str, str]:
    """Where executors find the driver."""
    if address is None:
        return {}
    return {"spark.driver.host": address, "spark.driver.bindAddress": address}


def _brought(settings: Mapping[str, str], jars: list[str], work_dir: Path) -> dict[str, str]:
    """What executors get from us, beside what the user has for them."""

    def given(name: str, between: str = ",") -> list[str]:
        return [each for each in settings.get(name, "").split(between) if each]

    archives = given("spark.archives")
    if not any(each.endswith(f"#{DIRECTORY}") for each in archives):
        package = work_dir / "headrace.zip"
        write_package(package)
        archives.append(f"{package}#{DIRECTORY}")
    paths = "spark.executorEnv.PYTHONPATH"
    return {
        "spark.archives": ",".join(archives),
        "spark.jars": ",".join([*given("spark.jars"), *jars]),
        paths: os.pathsep.join([DIRECTORY, *given(paths, os.pathsep)]),
    }


def driver_address(master: str) -> str | None:
    """The address of this machine that a standalone master sees; others tell Spark themselves."""
    first = urlsplit(master.split(",")[0])
    if first.scheme != "spark" or first.hostname is None:
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((first.hostname, first.port or 7077))  # sends nothing
        except OSError:
            return None
        return str(probe.getsockname()[0])


def _put_in_path(directory: str) -> None:
    """Of the Python processes that our JVM starts."""
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = [directory, *(each for each in others if each not in ("", directory))]
    os.environ["PYTHONPATH"] = os.pathsep.join(path)


@contextmanager
def _stderr_to(file: Path) -> Iterator[None]:
    """What the JVM and its workers say for themselves goes to a file, not to our users."""
    saved = os.dup(2)
    log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(log)
