"""One broker for all tests of a part that need one: what `conftest.py` of that part imports."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.kafka.admin import TopicAdmin, TopicSpec
from headrace.kafka.broker import EmbeddedBroker
from headrace.kafka.client import KafkaConnection
from headrace.kafka.jars import Jars, ensure_jars
from headrace.kafka.records import RecordReader, RecordWriter


@pytest.fixture(scope="session")
def jars() -> Jars:
    return ensure_jars()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, jars: Jars) -> Iterator[EmbeddedBroker]:
    directory: Path = tmp_path_factory.mktemp("broker")
    with EmbeddedBroker(directory / "kafka", jars=jars) as running:
        yield running


@pytest.fixture(scope="session")
def kafka(broker: EmbeddedBroker) -> KafkaConnection:
    return KafkaConnection({"bootstrap.servers": broker.bootstrap_servers}, timeout=15)


@pytest.fixture(scope="session")
def admin(kafka: KafkaConnection) -> TopicAdmin:
    return TopicAdmin(kafka)


@pytest.fixture(scope="session")
def writer(kafka: KafkaConnection) -> Iterator[RecordWriter]:
    with RecordWriter(kafka) as writer:
        yield writer


@pytest.fixture(scope="session")
def reader(kafka: KafkaConnection, admin: TopicAdmin) -> RecordReader:
    return RecordReader(kafka, admin)


@pytest.fixture
def topic(admin: TopicAdmin) -> str:
    """A new topic of three partitions."""
    name = f"orders-{uuid.uuid4()}"
    admin.create(TopicSpec(name, partitions=3))
    return name
