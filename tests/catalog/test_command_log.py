"""Commands as they stand in the log."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import pytest
from confluent_kafka import Producer, TopicPartition

from headrace.catalog.catalog import Catalog
from headrace.catalog.command_log import Command, CommandLog, OutcomeUnknownError, topic_name
from headrace.kafka.admin import TopicAdmin
from headrace.kafka.client import LIBRARY_LOG, KafkaConnection
from headrace.kafka.ports import free_port
from headrace.kafka.records import Record, RecordWriter
from headrace.model.errors import UnavailableError
from headrace.plan.sources.ddl import plan_create_source
from headrace.sql import ast
from headrace.sql.parser import parse_statement


def recorded(command: Command, offset: int) -> Command:
    return Command.from_record(Record("log", 0, offset, 0, command.id.encode(), command.to_bytes()))


def test_a_command_says_the_same_after_its_way_through_kafka():
    command = Command(
        "stream/S/create",
        "CREATE STREAM S AS SELECT * FROM R;",
        {
            "ksql.persistence.wrap.single.values": False,
            "ksql.persistence.wrap.single.keys": False,
        },
        query_id="CSAS_S_7",
        starts={"r": {0: 4, 1: 5}},
        number=6,
        after=5,
        text="create stream s as select * from r;",
    )
    assert recorded(command, 7) == replace(command, sequence=7)


@pytest.mark.parametrize(
    ("after", "last", "counts"), [(None, 3, True), (3, 3, True), (3, 4, False), (-1, 2, False)]
)
def test_a_command_counts_only_after_what_its_author_had_seen(after, last, counts):
    command = recorded(Command("type/T/drop", "DROP TYPE T;", after=after), 9)
    assert command.counts(last) is counts


def test_a_command_of_a_time_without_settings_for_single_fields_keeps_its_form():
    """KLIP-3's compatibility section: values were wrapped, keys were not."""
    text = "CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', FORMAT='JSON');"
    body = {"version": 1, "planVersion": 1, "statement": text, "settings": {}}
    record = Record("log", 0, 3, 0, b"stream/S/create", json.dumps(body).encode())
    old = Command.from_record(record)
    statement = parse_statement(old.statement)
    assert isinstance(statement, ast.CreateSource)
    settings = {name: str(value) for name, value in old.settings.items()}
    source = plan_create_source(statement, Catalog(), settings)
    assert (source.key.wrap, source.value.wrap) == (False, True)
    # What it captured counts, once it captured anything.
    body["settings"] = {"ksql.persistence.wrap.single.values": False}
    new = Command.from_record(replace(record, value=json.dumps(body).encode()))
    assert new.settings["ksql.persistence.wrap.single.values"] is False


def test_earlier_servers_can_read_a_command():
    """They ask for the version of a plan, which nothing else reads."""
    assert json.loads(Command("type/T/drop", "DROP TYPE T;").to_bytes())["planVersion"] == 1


def test_a_command_of_a_time_without_other_servers_counts():
    old = b'{"version": 1, "planVersion": 1, "statement": "DROP TYPE T;", "settings": {}}'
    assert Command.from_record(Record("log", 0, 3, 0, b"type/T/drop", old)).counts(2)


# ------------------------------------------------------- an acknowledgement that is lost


@pytest.fixture
def kafka():
    """librdkafka's own pretended Kafka."""
    cluster = Producer({"bootstrap.servers": "pretended", "test.mock.num.brokers": 1})
    (broker,) = cluster.list_topics(timeout=10).brokers.values()
    cluster.list_topics(topic_name("default_"), timeout=10)  # makes it
    yield KafkaConnection({"bootstrap.servers": f"{broker.host}:{broker.port}"}, timeout=3)
    cluster.close()


class Interrupted(RecordWriter):
    """Writes, or not, and then loses the acknowledgement."""

    lands = True

    def write(self, record):
        if self.lands:
            super().write(record)
        raise UnavailableError("Kafka does not answer")


@pytest.fixture
def log(kafka, monkeypatch):
    def end(admin, name):
        consumer = kafka.consumer()
        try:
            return {0: consumer.get_watermark_offsets(TopicPartition(name, 0), 3)[1]}
        finally:
            consumer.close()

    # The pretended Kafka does not know the requests of admins.
    monkeypatch.setattr(TopicAdmin, "ensure", lambda admin, spec: None)
    monkeypatch.setattr(TopicAdmin, "begin_offsets", lambda admin, name: {0: 0})
    monkeypatch.setattr(TopicAdmin, "end_offsets", end)
    made = CommandLog(kafka, "default_")
    made.open()
    yield made
    made.close()


def test_a_command_that_landed_is_found_though_its_acknowledgement_was_lost(log, kafka):
    twin = Command("stream/S/create", "CREATE STREAM S (A INT);", number=0, after=-1)
    assert log.append(twin).sequence == 0
    log._writer.close()
    log._writer = Interrupted(kafka)
    landed = log.append(replace(twin, number=1))
    assert landed.sequence == 1  # the one of another author, which reads the same, is not it


def test_a_command_that_did_not_land_is_refused(log, kafka):
    log.append(Command("stream/S/create", "CREATE STREAM S (A INT);", number=0))
    log._writer.close()
    log._writer = Interrupted(kafka)
    log._writer.lands = False
    with pytest.raises(UnavailableError) as failure:
        log.append(Command("stream/S/create", "CREATE STREAM S (A INT);", number=1))
    assert not isinstance(failure.value, OutcomeUnknownError)


def test_while_kafka_is_away_nobody_can_tell(log, kafka, monkeypatch):
    log._writer.close()
    log._writer = Interrupted(kafka)

    def away(admin, name):
        raise UnavailableError("Kafka does not answer")

    monkeypatch.setattr(TopicAdmin, "begin_offsets", away)
    with pytest.raises(OutcomeUnknownError, match="may still count"):
        log.append(Command("stream/S/create", "CREATE STREAM S (A INT);", number=0))


def test_writers_are_idempotent_whatever_the_user_sets_for_producers(monkeypatch):
    made = []
    monkeypatch.setattr(
        "headrace.kafka.client.Producer", lambda config, logger: made.append(config)
    )
    careless = {
        "bootstrap.servers": "somewhere:9092",
        "acks": "1",
        "retries": "0",
        "max.in.flight.requests.per.connection": "100",
        "enable.idempotence": "false",
    }
    RecordWriter(KafkaConnection(careless))
    (config,) = made
    assert config["enable.idempotence"] is True
    assert config["acks"] == "all"
    assert not {"retries", "max.in.flight.requests.per.connection"} & set(config)


def test_a_kafka_that_is_away_does_not_fill_the_log(caplog):
    kafka = KafkaConnection({"bootstrap.servers": f"127.0.0.1:{free_port()}"})
    with caplog.at_level(logging.DEBUG):
        producers = [
            kafka.producer(reconnect_backoff_ms=10, reconnect_backoff_max_ms=10) for _ in range(5)
        ]
        for producer in producers:
            producer.produce("nowhere", b"value")
            producer.poll(0.5)
    told = [r for r in caplog.records if r.name == "headrace.kafka.librdkafka"]
    assert len(told) <= 1


def test_that_a_broker_is_not_ready_yet_is_no_news(caplog):
    with caplog.at_level(logging.DEBUG):
        LIBRARY_LOG.warning("%s [%s] %s", "GETPID", "rdkafka#producer-2", "retrying")
    assert caplog.records == []
