"""The Spark session: one per server, sized to the machine, quiet."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from headrace.spark.forks import forking_python

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
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.optimizer.excludedRules": _USELESS_RULES,
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.python.worker.reuse": "true",
    # PySpark would tell the JVM where in our code each expression was made: most of the calls.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # A small batch crosses to Python in 15 ms instead of 42.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.daemon.module": "headrace.spark.workers",
    "spark.sql.streaming.pollingDelay": "20ms",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    # Hadoop's local file system forks `chmod` for every checkpoint file; this one does not.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
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


def start_session(
    jars: Iterable[Path], settings: Mapping[str, str], work_dir: Path
) -> SparkSession:
    """Starts Spark (about 4 s). `settings` are the user's `spark.*` names and values."""
    local = settings.get("spark.master", _DEFAULTS["spark.master"]).startswith("local")
    os.environ["PYSPARK_PYTHON"] = str(forking_python()) if local else sys.executable
    # PySpark logs every failed call as JSON; whoever catches the failure reports it.
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL + 1)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    work_dir.mkdir(parents=True, exist_ok=True)
    log4j = work_dir / "log4j2.properties"
    log4j.write_text(_LOG4J)
    paths = [str(j) for j in jars]
    merged = {
        **_DEFAULTS,
        "spark.sql.warehouse.dir": str(work_dir / "warehouse"),
        "spark.local.dir": str(work_dir / "tmp"),
        "spark.driver.extraJavaOptions": (
            f"-Dlog4j2.configurationFile={log4j.as_uri()} -Dderby.system.home={work_dir} "
            "-XX:+UseParallelGC -Xss4m -Djava.net.preferIPv6Addresses=false "
            # Java leaves methods of 8 kB interpreted; those that Spark makes of many columns are
            # larger, and six times slower so.
            "-XX:-DontCompileHugeMethods"
        ),
        "spark.driver.extraClassPath": os.pathsep.join(paths),
        "spark.jars": ",".join(paths),
        **settings,
        **_SEMANTICS,
    }
    if not local:
        merged.setdefault("spark.executorEnv.PYSPARK_PYTHON", sys.executable)
    else:
        del merged["spark.jars"]  # the driver's class path already has them
    builder = SparkSession.builder
    for name, value in merged.items():
        builder = builder.config(name, value)
    with _stderr_to(work_dir / "spark.log"):
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
    return session


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
