"""The processing log: a topic with an entry for every failed record, and the stream over it."""

from __future__ import annotations

from headrace.engine.world import World
from headrace.model.types import quote
from headrace.topics.admin import TopicSpec


def create_topic(world: World) -> None:
    """Makes the topic if settings say so and it is not there."""
    settings = world.settings
    if not settings.flag("ksql.logging.processing.topic.auto.create"):
        return
    if not world.admin.exists(world.log_topic):
        world.admin.create(
            TopicSpec(
                world.log_topic,
                settings.number("ksql.logging.processing.topic.partitions"),
                settings.number("ksql.logging.processing.topic.replication.factor"),
            )
        )


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
      `topic` VARCHAR>>
) WITH (kafka_topic = '{topic}', value_format = 'JSON');"""
