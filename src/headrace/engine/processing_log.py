"""The processing log: a topic with an entry for every failed record, and the stream over it.

Records that were skipped may be kept whole besides, in a topic that the settings name.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress

from headrace.engine.world import World
from headrace.model.errors import HeadraceError
from headrace.model.settings import Settings
from headrace.model.types import quote
from headrace.topics.admin import TopicSpec
from headrace.topics.client import TopicExistsError
from headrace.topics.records import NewRecord, RecordWriter

LOG = logging.getLogger(__name__)


def create_topic(world: World) -> None:
    """Makes the topic if settings say so and it is not there."""
    settings = world.settings
    if not settings.flag("ksql.logging.processing.topic.auto.create"):
        return
    world.admin.ensure(
        TopicSpec(
            world.log_topic,
            settings.number("ksql.logging.processing.topic.partitions"),
            settings.number("ksql.logging.processing.topic.replication.factor"),
        )
    )


def topic(world: World) -> str | None:
    """Where entries go; nowhere if there is no such topic."""
    return world.log_topic if world.admin.exists(world.log_topic) else None


class LogWriter:
    """Writes the entries of queries that have no sink. It opens Kafka when there is something."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lock = threading.Lock()
        self._writer: RecordWriter | None = None

    def write(self, entries: Sequence[str]) -> None:
        """A log that cannot be written does not stop the query that it is about."""
        name = self._world.log_topic
        with self._lock:
            try:
                if self._writer is None:
                    if topic(self._world) is None:
                        return
                    self._writer = RecordWriter(self._world.kafka)
                self._writer.write_all([NewRecord(name, value=e.encode()) for e in entries])
            except HeadraceError as e:
                LOG.warning("Entries of the processing log %s are lost: %s", name, e)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def skipped_topic(world: World, settings: Settings) -> str | None:
    """Where skipped records go, if they are wanted; the topic is there afterwards."""
    name = settings.text("ksql.error.dead.letter.topic")
    if name and not world.admin.exists(name):
        replicas = world.settings.number("ksql.internal.topic.replicas")
        with suppress(TopicExistsError):  # another query was faster
            world.admin.create(TopicSpec(name, 1, replicas))
    return name or None


def stream_statement(world: World) -> str | None:
    """The statement that makes the stream over the log, unless settings say no."""
    settings = world.settings
    if not settings.flag("ksql.logging.processing.stream.auto.create"):
        return None
    if not world.admin.exists(world.log_topic):
        return None
    name = quote(settings.text("ksql.logging.processing.stream.name") or "KSQL_PROCESSING_LOG")
    return _STATEMENT.format(name=name, topic=world.log_topic.replace("'", "''"))


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
