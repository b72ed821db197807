"""The registry over HTTP: our client, Confluent's client, and a real broker behind it."""

from __future__ import annotations

import http.client
import json
import socket
import time
import uuid
import warnings
from collections.abc import Iterator

import httpx
import pytest

from headrace.kafka.admin import TopicAdmin
from headrace.kafka.client import KafkaConnection
from headrace.kafka.ports import free_port
from headrace.model.errors import UnavailableError
from headrace.registry.client import HttpRegistry
from headrace.registry.log import MemoryLog
from headrace.registry.schema import RegistryError
from headrace.registry.server import EmbeddedRegistry

with warnings.catch_warnings():
    # The client's own imports warn about each other.
    warnings.simplefilter("ignore")
    from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.schema_registry.error import SchemaRegistryError
    from confluent_kafka.serialization import MessageField, SerializationContext

ONE = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
TWO = ONE.replace("[", '[{"name":"b","type":"string","default":""},', 1)
BAD = ONE.replace("int", "string")


@pytest.fixture(scope="module")
def served() -> Iterator[EmbeddedRegistry]:
    with EmbeddedRegistry(MemoryLog()) as registry:
        yield registry


@pytest.fixture(scope="module")
def official(served: EmbeddedRegistry) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": served.url, "max.retries": 0})


def test_our_client(served: EmbeddedRegistry) -> None:
    client = HttpRegistry(served.url)
    subject = f"ours/{uuid.uuid4()}"
    id_ = client.register(subject, ONE)
    assert client.register(subject, TWO) > id_
    assert [place.text for place in client.versions(subject)] == [ONE, TWO]
    assert subject in client.subjects()
    found = client.by_id(id_)
    assert found is not None
    assert found.text == ONE
    with pytest.raises(RegistryError) as refusal:
        client.register(subject, BAD)
    assert refusal.value.status == 409
    assert client.check_compatibility(subject, BAD)
    assert client.delete_subject(subject) == [1, 2]
    assert client.latest(subject) is None


def test_official_client(official: SchemaRegistryClient) -> None:
    subject = f"s-{uuid.uuid4()}"
    one, two, bad = (Schema(text, "AVRO") for text in (ONE, TWO, BAD))
    id_ = official.register_schema(subject, one)
    assert official.register_schema(subject, one) == id_
    assert official.get_schema(id_).schema_str == ONE
    assert official.lookup_schema(subject, one).version == 1
    assert official.test_compatibility(subject, two)
    assert not official.test_compatibility(subject, bad)
    official.register_schema(subject, two)
    assert official.get_versions(subject) == [1, 2]
    assert official.get_version(subject, 1).schema.schema_str == ONE
    assert official.get_latest_version(subject).version == 2
    assert official.get_subjects_by_schema_id(id_) == [subject]
    assert official.get_schema_versions(id_)[0].subject == subject
    assert set(official.get_schema_types()) == {"AVRO", "JSON", "PROTOBUF"}
    with pytest.raises(SchemaRegistryError) as refusal:
        official.register_schema(subject, bad)
    assert (refusal.value.http_status_code, refusal.value.error_code) == (409, 409)

    official.set_compatibility(subject, "NONE")
    assert official.get_compatibility(subject) == "NONE"
    assert official.get_compatibility() == "BACKWARD"
    assert official.get_config(subject).compatibility_level == "NONE"
    official.delete_config(subject)
    official.update_mode(subject, "READONLY")
    assert official.get_mode(subject) == "READONLY"
    official.delete_mode(subject)
    assert official.get_global_mode() == "READWRITE"
    assert official.get_contexts() == ["."]

    assert official.delete_version(subject, 1) == 1
    assert official.delete_subject(subject) == [2]
    assert official.delete_subject(subject, permanent=True) == [1, 2]
    assert subject not in official.get_subjects()
    with pytest.raises(SchemaRegistryError) as refusal:
        official.get_versions(subject)
    assert refusal.value.error_code == 40401


def test_official_client_with_references(official: SchemaRegistryClient) -> None:
    inner = Schema('{"type":"record","name":"x.Inner","fields":[]}', "AVRO")
    official.register_schema("inner", inner)
    reference = SchemaReference("x.Inner", "inner", 1)
    text = '{"type":"record","name":"Outer","fields":[{"name":"i","type":"x.Inner"}]}'
    id_ = official.register_schema("outer", Schema(text, "AVRO", [reference]))
    assert official.get_schema(id_).references == [reference]
    assert official.get_referenced_by("inner", 1) == [id_]


def test_official_serializers(official: SchemaRegistryClient) -> None:
    context = SerializationContext(f"t-{uuid.uuid4()}", MessageField.VALUE)
    data = AvroSerializer(official, ONE)({"a": 42}, context)
    assert data is not None
    assert data[0] == 0
    assert AvroDeserializer(official, TWO)(data, context) == {"a": 42, "b": ""}


def test_one_connection_serves_many_requests(served: EmbeddedRegistry) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port)
    for _ in range(3):
        connection.request("GET", "/subjects")
        answer = connection.getresponse()
        assert answer.getheader("Content-Type") == "application/vnd.schemaregistry.v1+json"
        json.loads(answer.read())
    connection.request("POST", "/subjects/s/versions", body=b"x", headers={"Content-Length": "x"})
    assert connection.getresponse().status == 413


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UnavailableError, match=f"Port {port} for the schema registry is taken"):
            EmbeddedRegistry(MemoryLog(), port).start()


def test_no_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.registry.client.BACKOFF_SECONDS", 0.001)
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(UnavailableError, match=f"The schema registry at {url} does not answer"):
        HttpRegistry(url).subjects()


def test_several_registries(served: EmbeddedRegistry) -> None:
    urls = f"http://127.0.0.1:{free_port()}, {served.url}/"
    assert isinstance(HttpRegistry(urls).subjects(), list)


def test_stopping_waits_for_nobody() -> None:
    registry = EmbeddedRegistry(MemoryLog())
    registry.start()
    with socket.create_connection(("127.0.0.1", registry.port)):
        started = time.monotonic()
        registry.stop()
    assert time.monotonic() - started < 2


@pytest.mark.heavy
def test_schemas_survive_in_kafka(kafka: KafkaConnection, admin: TopicAdmin) -> None:
    with EmbeddedRegistry(kafka) as registry:
        client = HttpRegistry(registry.url)
        id_ = client.register("orders-value", ONE)
        registry.registry.set_level("FULL", "orders-value")
    assert admin.configs("_schemas")["cleanup.policy"] == "compact"
    assert admin.describe("_schemas").partitions == 1
    with EmbeddedRegistry(kafka, registry_port := free_port()) as registry:
        assert registry.port == registry_port
        client = HttpRegistry(registry.url)
        assert client.register("orders-value", ONE) == id_
        assert registry.registry.level("orders-value") == "FULL"
        assert client.register("orders-value", TWO) == id_ + 1


def _schema(text: str, kind: str = "AVRO") -> bytes:
    return json.dumps({"schema": text, "schemaType": kind}).encode()


DEEP = 10_000
HOSTILE: dict[str, bytes] = {
    "brackets": b"[" * 1_000_000,
    "arrays": b"[" + b"[]," * 500_000 + b"[]]",
    "brackets in a schema": _schema("[" * 500_000),
    "arrays of arrays": _schema('{"type":"array","items":' * DEEP + '"int"' + "}" * DEEP),
    "fields of one name": _schema(
        '{"type":"record","name":"r","fields":['
        + ",".join('{"name":"f","type":"int"}' for _ in range(DEEP))
        + "]}"
    ),
    "deep objects": _schema('{"properties":{"a":' * DEEP + "{}" + "}}" * DEEP, "JSON"),
    "open comments": _schema("/*" * 400_000, "PROTOBUF"),
    "open quotes": _schema("'" * 800_000, "PROTOBUF"),
    "open messages": _schema('syntax="proto3";' + "message A {" * DEEP, "PROTOBUF"),
    "a long number": _schema('syntax="proto3"; message A { int32 a = ' + "9" * 9999, "PROTOBUF"),
    "a reference of a long number": json.dumps(
        {"schema": '"int"', "references": [{"name": "a", "subject": "b", "version": "9" * 9999}]}
    ).encode(),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_schemas_are_refused(name: str) -> None:
    with EmbeddedRegistry(MemoryLog()) as registry:
        answer = httpx.post(f"{registry.url}/subjects/s/versions", content=HOSTILE[name])
        assert 400 <= answer.status_code < 500, answer.text[:200]


@pytest.mark.parametrize(
    "path", ["/schemas/ids/{}", "/subjects/s/versions/{}", "/subjects?limit={}", "/{}"]
)
def test_numbers_without_end(path: str) -> None:
    with EmbeddedRegistry(MemoryLog()) as registry:
        answer = httpx.get(registry.url + path.format("9" * 5000))
        assert 400 <= answer.status_code < 500, answer.text[:200]
