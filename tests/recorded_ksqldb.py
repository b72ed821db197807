"""What a ksqlDB leaves behind in Kafka, written from its documented formats: a command topic, and
offsets of consumer groups. Nothing here asks the code under test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import TopicPartition

from headrace.kafka.admin import TopicAdmin, TopicSpec
from headrace.kafka.client import KafkaConnection
from headrace.kafka.records import NewRecord, RecordWriter

VERSION = 18
# Of the hundred settings that a command repeats, some.
SERVER = {
    "ksql.service.id": "default_",
    "ksql.streams.auto.offset.reset": "latest",
    "ksql.streams.num.stream.threads": "4",
    "ksql.streams.cache.max.bytes.buffering": "10000000",
    "ksql.persistence.default.format.key": "KAFKA",
    "ksql.persistence.wrap.single.values": None,
    "ksql.schema.registry.url": "[hidden]",
    "ksql.heartbeat.enable": "false",
}
EARLIEST = {"auto.offset.reset": "earliest"}


@dataclass
class RecordedKsqlDb:
    """The commands of a ksqlDB, in the order of their offsets."""

    service_id: str = "default_"
    commands: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)

    @property
    def topic(self) -> str:
        return f"_confluent-ksql-{self.service_id}_command_topic"

    def group(self, query_id: str) -> str:
        return f"_confluent-ksql-{self.service_id}query_{query_id}"

    # ------------------------------------------------------------------------------ commands

    def command(
        self,
        id_: str,
        statement: str,
        plan: Mapping[str, object] | None = None,
        session: Mapping[str, object] | None = None,
        version: int = VERSION,
    ) -> None:
        body = {
            "statement": statement,
            "streamsProperties": dict(session or {}),
            "originalProperties": {**SERVER, "ksql.service.id": self.service_id},
            "plan": plan,
            "version": version,
        }
        self.commands.append((id_, body))

    def type(self, name: str, type_: str) -> None:
        statement = f"CREATE TYPE {name} AS {type_};"
        ddl = {"@type": "registerTypeV1", "typeName": name, "type": type_}
        self.command(f"type/{name}/create", statement, _plan(statement, ddl))

    def source(
        self, kind: str, name: str, columns: str, schema: str, properties: str, **formats: object
    ) -> None:
        policy = "compact" if kind == "TABLE" else "delete"
        statement = (
            f"CREATE {kind} {name} ({columns}) WITH (CLEANUP_POLICY='{policy}', {properties});"
        )
        ddl = _ddl(kind, name, schema, formats)
        self.command(f"{kind.lower()}/`{name}`/create", statement, _plan(statement, ddl))

    def query(
        self,
        kind: str,
        name: str,
        select: str,
        schema: str,
        properties: str = "",
        session: Mapping[str, object] | None = None,
        *,
        replaces: str | None = None,
        **formats: object,
    ) -> str:
        """CREATE … AS SELECT; the id of its query. `replaces` is that of the one before."""
        policy = {"STREAM": "delete", "TABLE": "compact"}[kind]
        windowed = "WINDOW" in select
        policy += ",delete" if windowed else ""
        given = f"{properties}, " if properties else f"KAFKA_TOPIC='{name}', "
        statement = (
            f"CREATE {'OR REPLACE ' if replaces else ''}{kind} {name} WITH "
            f"(CLEANUP_POLICY='{policy}', {given}PARTITIONS=1, REPLICAS=1, RETENTION_MS=604800000) "
            f"AS {select}\nEMIT CHANGES;"
        )
        id_ = replaces or f"C{kind[0]}AS_{name}_{len(self.commands)}"
        ddl = _ddl(kind, name, schema, formats)
        plan = _plan(statement, ddl, id_)
        self.command(f"{kind.lower()}/`{name}`/create", statement, plan, session or EARLIEST)
        return id_

    def insert(self, target: str, select: str) -> str:
        statement = f"INSERT INTO {target} {select}\nEMIT CHANGES;"
        id_ = f"INSERTQUERY_{len(self.commands)}"
        plan = _plan(statement, None, id_)
        self.command(f"stream/`{target}`/create", statement, plan, EARLIEST)
        return id_

    def terminate(self, query_id: str) -> None:
        self.command(f"terminate/{query_id}/execute", f"TERMINATE {query_id};")

    def drop(self, kind: str, name: str) -> None:
        statement = f"DROP {kind} {name};"
        ddl = {"@type": "dropSourceV1", "sourceName": name}
        self.command(f"{kind.lower()}/{name}/drop", statement, _plan(statement, ddl))

    # ---------------------------------------------------------------------------------- Kafka

    def records(self) -> list[NewRecord]:
        return [
            NewRecord(self.topic, json.dumps(id_).encode(), json.dumps(body).encode(), partition=0)
            for id_, body in self.commands
        ]

    def backup(self) -> str:
        """ksqlDB's backup of its command topic."""
        return "".join(f"{json.dumps(id_)}:{json.dumps(body)}\n" for id_, body in self.commands)

    def write(self, kafka: KafkaConnection) -> None:
        TopicAdmin(kafka).ensure(TopicSpec(self.topic, 1, 1, {"retention.ms": "-1"}))
        with RecordWriter(kafka) as writer:
            writer.write_all(self.records())

    def commit(
        self, kafka: KafkaConnection, query_id: str, offsets: Mapping[str, Mapping[int, int]]
    ) -> None:
        """How far a query has got: what its consumer group has committed."""
        consumer = kafka.consumer(group_id=self.group(query_id))
        places = [TopicPartition(t, p, o) for t, by in offsets.items() for p, o in by.items()]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()


def _plan(
    statement: str, ddl: Mapping[str, object] | None, query_id: str | None = None
) -> Mapping[str, object]:
    query = {
        "sources": [],
        "sink": None,
        "physicalPlan": {"@type": "streamSinkV1"},
        "queryId": query_id,
        "runtimeId": None,
    }
    return {
        "@type": "ksqlPlanV1",
        "statementText": statement,
        "ddlCommand": ddl,
        "queryPlan": query if query_id is not None else None,
    }


def _ddl(kind: str, name: str, schema: str, formats: Mapping[str, object]) -> Mapping[str, object]:
    told = {
        "keyFormat": {"format": formats.get("key", "KAFKA")},
        "valueFormat": {"format": formats.get("value", "JSON")},
    }
    if formats.get("unwrapped"):
        told["valueFeatures"] = ["UNWRAP_SINGLES"]  # type: ignore[assignment]
    return {
        "@type": f"create{kind.capitalize()}V1",
        "sourceName": name,
        "schema": schema,
        "topicName": name,
        "formats": told,
        "orReplace": False,
        "isSource": False,
    }
