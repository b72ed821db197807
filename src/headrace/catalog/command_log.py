"""The command log: every statement that changed something, in order, in a Kafka topic.

A server that starts replays it, and then follows it: other servers write there, too. A command
says which command its author had seen last. If another one came in between, it is void: so what
counts was checked against exactly what came before.

What a record holds is enough to do the same again: the statement
as it was resolved (inferred columns written out), and the settings in force. Records that are not
ours or are damaged are reported and passed over.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

from headrace.kafka.admin import ONE_REPLICA, Replication, TopicAdmin
from headrace.kafka.client import KafkaConnection
from headrace.kafka.records import (
    NewRecord,
    Record,
    RecordReader,
    RecordWriter,
)
from headrace.model.errors import UnavailableError

LOG = logging.getLogger(__name__)

FORMAT_VERSION = 1

# What statements mean that were recorded before these settings existed: values of one column were
# records, keys of one column bare (KLIP-3, "Compatibility Implications").
_BEFORE_CAPTURE: Mapping[str, object] = {
    "ksql.persistence.wrap.single.values": True,
    "ksql.persistence.wrap.single.keys": False,
}


@dataclass(frozen=True)
class Command:
    """A statement of the command log. `id` is ksqlDB's command id (`stream/NAME/create`); `text` is
    the statement as the user wrote it; `query_id` names the query it starts, `starts` its first
    offsets by topic and partition. `sequence` is the command's offset, `number` the one it was
    planned with. `after` is the last valid command when it was planned, -1 for none; a command
    without it is always valid. `creates` describes the source it makes, in case the statement can
    no longer be planned. `token` distinguishes it from others with the same text."""

    id: str
    statement: str
    settings: Mapping[str, object] = field(default_factory=dict)
    query_id: str | None = None
    starts: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    sequence: int = -1
    number: int | None = None
    after: int | None = None
    text: str | None = None
    creates: Mapping[str, Any] | None = None
    token: str | None = None

    def counts(self, last: int) -> bool:
        """Whether the command is valid, if `last` is the last valid command before it."""
        return self.after is None or self.after == last

    def to_bytes(self) -> bytes:
        return json.dumps(
            {
                "version": FORMAT_VERSION,
                "planVersion": 1,  # earlier versions refuse a command without it
                "statement": self.statement,
                "settings": dict(self.settings),
                "queryId": self.query_id,
                "starts": {topic: dict(offsets) for topic, offsets in self.starts.items()},
                "number": self.number,
                "after": self.after,
                "text": self.text,
                "creates": self.creates,
                "token": self.token,
            }
        ).encode()

    @staticmethod
    def from_record(record: Record) -> Command:
        """Raises ValueError, with the reason, for a record that is no command of ours."""
        if record.key is None or record.value is None:
            raise ValueError("it has no key or no value")
        try:
            body = json.loads(record.value)
            version = body["version"]
        except (ValueError, KeyError, TypeError) as e:
            raise ValueError(f"it is not a command ({e!r})") from None
        if version != FORMAT_VERSION:
            raise ValueError(f"it has version {version}, and this server reads {FORMAT_VERSION}")
        try:
            return Command(
                id=record.key.decode(),
                statement=str(body["statement"]),
                settings={**_BEFORE_CAPTURE, **body["settings"]},
                query_id=body.get("queryId"),
                starts={
                    topic: {int(p): int(o) for p, o in offsets.items()}
                    for topic, offsets in body.get("starts", {}).items()
                },
                sequence=record.offset,
                number=number_or_none(body.get("number")),
                after=number_or_none(body.get("after")),
                text=body.get("text"),
                creates=body.get("creates"),
                token=body.get("token"),
            )
        except (ValueError, KeyError, TypeError) as e:
            raise ValueError(f"it is not a command ({e!r})") from None


@dataclass(frozen=True)
class Unreadable:
    sequence: int
    reason: str


Entry = Command | Unreadable


def topic_name(service_id: str) -> str:
    return f"_headrace-{service_id}_command_topic"


class OutcomeUnknownError(UnavailableError):
    """It is not known whether a command was written to the log."""


class CommandLog:
    """Appends and replays commands; the topic has one partition and unlimited retention."""

    def __init__(
        self,
        connection: KafkaConnection,
        service_id: str,
        replication: Replication = ONE_REPLICA,
    ) -> None:
        self.topic = topic_name(service_id)
        self._connection = connection
        self._replication = replication
        self._writer: RecordWriter | None = None

    def open(self) -> None:
        keep = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
        TopicAdmin(self._connection).ensure(self._replication.topic(self.topic, keep))
        self._writer = RecordWriter(self._connection)

    def append(self, command: Command) -> Command:
        """Writes the command and returns it with its sequence number; it may be void.

        If Kafka does not say that it has it, it is looked for: what landed counts, whatever
        became of the acknowledgement. Raises OutcomeUnknownError if nobody can tell.
        """
        assert self._writer is not None
        named = replace(command, token=uuid.uuid4().hex)
        record = NewRecord(self.topic, key=named.id.encode(), value=named.to_bytes())
        try:
            return replace(named, sequence=self._writer.write(record).offset)
        except UnavailableError as failure:
            # The writer has given up by now: what it had sent is ahead of what is asked here.
            found = self._landed(named)
            if found is None:
                raise
            LOG.warning(
                "The command log has %s, though Kafka did not say so: %s", named.id, failure
            )
            return found

    def _landed(self, command: Command) -> Command | None:
        """The command as it was written to the log; None if it was not."""
        reader = RecordReader(self._connection)
        try:
            entries = list(map(_entry, reader.read(self.topic, {0: command.number or 0})))
        except UnavailableError as failure:
            raise OutcomeUnknownError(
                f"{failure}. The statement may still count: it is in the command log, or it is "
                "not, as SHOW STREAMS, SHOW TABLES and SHOW QUERIES will tell once Kafka answers."
            ) from failure
        return next(
            (e for e in entries if isinstance(e, Command) and e.token == command.token), None
        )

    def replay(self) -> Iterator[Entry]:
        """All commands in the log now."""
        return map(_entry, RecordReader(self._connection).read(self.topic))

    def follow(self, start: int, stop: Event) -> Iterator[Entry]:
        """The commands from `start` on, including new ones, until `stop` is set."""
        return map(_entry, RecordReader(self._connection).tail(self.topic, {0: start}, stop))

    def end(self) -> int:
        """The sequence number that the next command will get."""
        return TopicAdmin(self._connection).end_offsets(self.topic)[0]

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def number_or_none(value: object) -> int | None:
    """A number of a record's JSON that may be missing; ValueError for anything else."""
    return None if value is None else int(str(value))


def _entry(record: Record) -> Entry:
    try:
        return Command.from_record(record)
    except ValueError as e:
        return Unreadable(record.offset, str(e))
