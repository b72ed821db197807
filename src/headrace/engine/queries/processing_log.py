"""The processing log: a topic with an entry for every failed record, and the stream over it.

Records that were skipped may be kept whole besides, in a topic that the settings name.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress

from headrace.engine.environment import Environment
from headrace.kafka.admin import TopicSpec
from headrace.kafka.client import TopicExistsError
from headrace.kafka.records import NewRecord, RecordWriter
from headrace.model.errors import HeadraceError
from headrace.model.settings import Settings
from headrace.model.types import quote

LOG = logging.getLogger(__name__)


def create_topic(env: Environment) -> None:
    """Makes the topic if settings say so and it is not there."""
    settings = env.settings
    if not settings.flag("ksql.logging.processing.topic.auto.create"):
        return
    env.admin.ensure(
        TopicSpec(
            env.log_topic,
            settings.number("ksql.logging.processing.topic.partitions"),
            env.log_replicas,
        )
    )


def topic(env: Environment) -> str | None:
    """The topic of the entries; None if there is no such topic."""
    return env.log_topic if env.admin.exists(env.log_topic) else None


class LogWriter:
    """Writes log entries of queries without a sink; connects to Kafka for the first entry."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._lock = threading.Lock()
        self._writer: RecordWriter | None = None

    def write(self, entries: Sequence[str]) -> None:
        """Writes entries; a failure to write them does not stop the query."""
        name = self._env.log_topic
        with self._lock:
            try:
                if self._writer is None:
                    if topic(self._env) is None:
                        return
                    self._writer = RecordWriter(self._env.kafka)
                self._writer.write_all([NewRecord(name, value=e.encode()) for e in entries])
            except HeadraceError as e:
                LOG.warning("Entries of the processing log %s are lost: %s", name, e)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def skipped_topic(env: Environment, settings: Settings) -> str | None:
    """The topic of skipped records, created if settings ask for it; None if they do not."""
    name = settings.text("ksql.error.dead.letter.topic")
    if name and not env.admin.exists(name):
        with suppress(TopicExistsError):  # another query was faster
            env.admin.create(env.replication.topic(name))
    return name or None


def stream_statement(env: Environment) -> str | None:
    """The statement that makes the stream over the log, unless settings say no."""
    settings = env.settings
    if not settings.flag("ksql.logging.processing.stream.auto.create"):
        return None
    if not env.admin.exists(env.log_topic):
        return None
    name = quote(settings.text("ksql.logging.processing.stream.name") or "KSQL_PROCESSING_LOG")
    return _STATEMENT.format(name=name, topic=env.log_topic.replace("'", "''"))


_STATEMENT = """\
CREATE STREAM IF NOT EXISTS {name} (
  logger VARCHAR,
  level VARCHAR,
  time BIGINT,
  message STRUCT<
    type INT,
    deserializationError STRUCT<
      target VARCHAR, errorMessage VARCHAR, recordB64 VARCHAR, cause ARRAY<VARCHAR>,
      `topic` VARCHAR, `partition` INT, `offset` BIGINT>,
    recordProcessingError STRUCT<errorMessage VARCHAR, record VARCHAR, cause ARRAY<VARCHAR>>,
    productionError STRUCT<errorMessage VARCHAR>,
    serializationError STRUCT<
      target VARCHAR, errorMessage VARCHAR, record VARCHAR, cause ARRAY<VARCHAR>,
      `topic` VARCHAR>,
    kafkaStreamsThreadError STRUCT<
      errorMessage VARCHAR, threadName VARCHAR, cause ARRAY<VARCHAR>>>
) WITH (kafka_topic = '{topic}', value_format = 'JSON');"""
