"""Settings in `KSQL_…` variables of the environment, as ksqlDB's image reads them.

KSQL_BOOTSTRAP_SERVERS is bootstrap.servers: after the prefix, `_` stands for a dot, `__` for a
dash, `___` for an underscore. What `KSQL_OPTS` defines for Java (`-Dname=value`) counts as well.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from headrace.model.settings import declared, passes_through

PREFIX = "KSQL_"
_OPTIONS = "KSQL_OPTS"
# Variables of the scripts that start ksqlDB, which are no settings of it.
_OF_SCRIPTS = frozenset(
    {
        _OPTIONS,
        "KSQL_CLASSPATH",
        "KSQL_CONFIG_DIR",
        "KSQL_CUB_KAFKA_TIMEOUT",
        "KSQL_CUB_SR_TIMEOUT",
        "KSQL_DIR",
        "KSQL_GC_LOG_OPTS",
        "KSQL_HEAP_OPTS",
        "KSQL_JMX_OPTS",
        "KSQL_JVM_PERFORMANCE_OPTS",
        "KSQL_LOG4J_LOGGERS",
        "KSQL_LOG4J_OPTS",
        "KSQL_LOG4J_PROCESSING_LOG_BROKERLIST",
        "KSQL_LOG4J_PROCESSING_LOG_TOPIC",
        "KSQL_LOG4J_ROOT_LOGLEVEL",
    }
)


def read_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The settings that the environment holds."""
    named = {
        _property(variable.removeprefix(PREFIX)): value
        for variable, value in variables.items()
        if variable.startswith(PREFIX) and variable not in _OF_SCRIPTS
    }
    return {**named, **_defined(variables.get(_OPTIONS, ""))}


def _property(name: str) -> str:
    parts = [".".join(part.replace("__", "-").split("_")) for part in name.lower().split("___")]
    return "_".join(parts)


def _defined(options: str) -> dict[str, str]:
    """`-Dname=value`, of names that are settings; Java's own are none."""
    words = (word.removeprefix("-D") for word in shlex.split(options) if word.startswith("-D"))
    pairs = (word.partition("=") for word in words)
    return {
        name: value
        for name, _, value in pairs
        if declared(name) is not None or passes_through(name)
    }
