"""The command topic of a ksqlDB: all its statements since it was set up, in order."""

from __future__ import annotations

from headrace.importing.commands import read_command
from headrace.importing.recorded import History, command_topic
from headrace.kafka.admin import TopicAdmin
from headrace.kafka.client import KafkaConnection
from headrace.kafka.records import RecordReader
from headrace.model.errors import HeadraceError


def read_command_topic(connection: KafkaConnection, service_id: str) -> History:
    topic = command_topic(service_id)
    admin = TopicAdmin(connection)
    if not admin.exists(topic):
        raise HeadraceError(_missing(topic, service_id, admin))
    entries = tuple(
        read_command(
            record.key,
            record.value,
            f"offset {record.offset}",
            service_id=service_id,
            offset=record.offset,
            at=record.timestamp,
        )
        for record in RecordReader(connection, admin).read(topic)
    )
    return History(f"command topic {topic}", entries)


def _missing(topic: str, service_id: str, admin: TopicAdmin) -> str:
    start, end = command_topic("\0").split("\0")
    others = [
        name.removeprefix(start).removesuffix(end)
        for name in admin.topics(include_internal=True)
        if name.startswith(start) and name.endswith(end)
    ]
    there = f" There are those of: {', '.join(sorted(others))}." if others else ""
    return (
        f"Kafka has no topic '{topic}'. It is called after ksql.service.id, which is taken to be "
        f"'{service_id}': say --service-id.{there}"
    )
