"""A real broker that wants TLS, a client certificate and a login: by each kind of login our clients
write and read; whoever is refused knows why at once."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import pytest

from authority import Authority, java_trust_store
from headrace.kafka.admin import TopicAdmin, TopicSpec
from headrace.kafka.client import KafkaConnection
from headrace.kafka.records import NewRecord, RecordReader, RecordWriter
from headrace.model.errors import UnavailableError
from secured_broker import (
    CLIENT_SECRET,
    PASSWORD,
    PLAIN,
    SCRAM_256,
    SCRAM_512,
    STORE_PASSWORD,
    TOKENS,
    UNSECURED,
    SecuredBroker,
    secured_broker,
)
from server_process import eventually

pytestmark = pytest.mark.heavy
# A call that waits until its time is up takes 20 s here.
TIMEOUT, AT_ONCE = 20.0, 8.0

UNTRUSTED = (
    "cannot be reached over TLS: the broker's certificate is not trusted, or is for another name: "
    "check ssl.truststore.location, and that bootstrap.servers has a name of the certificate."
)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured")) as broker:
        yield broker


@pytest.mark.parametrize("mechanism", [PLAIN, SCRAM_256, SCRAM_512, TOKENS, UNSECURED])
def test_records_go_there_and_back(secured: SecuredBroker, mechanism: str) -> None:
    connection = KafkaConnection(secured.settings(mechanism), timeout=TIMEOUT)
    admin = TopicAdmin(connection)
    topic = f"orders-{uuid.uuid4()}"
    admin.create(TopicSpec(topic, partitions=1))
    with RecordWriter(connection) as writer:
        writer.write_all([NewRecord(topic, b"k", b"v")])
    (record,) = RecordReader(connection, admin).read(topic)
    assert (record.key, record.value) == (b"k", b"v")
    producer = connection.idempotent_producer(transactional_id=topic)
    producer.init_transactions(TIMEOUT)


def refused(settings: dict[str, str]) -> str:
    connection = KafkaConnection(settings, timeout=TIMEOUT)
    began = time.monotonic()
    with pytest.raises(UnavailableError) as caught:
        TopicAdmin(connection).cluster_id()
    assert time.monotonic() - began < AT_ONCE
    told = caught.value.message
    assert told.startswith(f"Kafka at {settings['bootstrap.servers']} ")
    return told.removeprefix(f"Kafka at {settings['bootstrap.servers']} ")


@pytest.mark.parametrize("mechanism", [PLAIN, SCRAM_512])
def test_a_wrong_password(secured: SecuredBroker, mechanism: str) -> None:
    told = refused(secured.settings(mechanism, password="hunter2"))
    assert told.startswith("refuses the login: ")
    assert told.endswith("Check sasl.mechanism and sasl.jaas.config.")
    assert "hunter2" not in told


def test_a_wrong_client_secret(secured: SecuredBroker) -> None:
    given = secured.settings(TOKENS)
    given["sasl.jaas.config"] = given["sasl.jaas.config"].replace(CLIENT_SECRET, "hunter2")
    told = refused(given)
    assert told.startswith("refuses the login: Failed to acquire SASL OAUTHBEARER token")
    assert "hunter2" not in told


def test_a_broker_that_is_not_trusted(secured: SecuredBroker) -> None:
    other = java_trust_store(secured.folder / "other.jks", Authority("other"), STORE_PASSWORD)
    told = refused(secured.settings() | {"ssl.truststore.location": str(other)})
    assert told == UNTRUSTED


def test_a_name_that_is_not_in_the_certificate(secured: SecuredBroker) -> None:
    """The client library does not tell it from the one before."""
    other = {"bootstrap.servers": secured.servers.replace("127.0.0.1", "127.1")}
    assert refused(secured.settings() | other) == UNTRUSTED
    unchecked = {"ssl.endpoint.identification.algorithm": ""}
    connection = KafkaConnection(secured.settings() | other | unchecked, timeout=TIMEOUT)
    assert TopicAdmin(connection).cluster_id()


def test_no_client_certificate(secured: SecuredBroker) -> None:
    kept = {k: v for k, v in secured.settings().items() if not k.startswith("ssl.key")}
    assert "client certificate" in refused(kept)


def test_no_tls_at_all(secured: SecuredBroker) -> None:
    """A broker tells nothing then: it hangs up, and the time runs out."""
    connection = KafkaConnection({"bootstrap.servers": secured.servers}, timeout=3)
    with pytest.raises(UnavailableError, match="it may expect TLS or a login"):
        TopicAdmin(connection).cluster_id()


def test_a_password_that_was_changed(secured: SecuredBroker) -> None:
    """The broker wants the login again after some seconds, and takes the old one no more."""
    connection = KafkaConnection(secured.settings(SCRAM_256), timeout=TIMEOUT)
    admin = TopicAdmin(connection)
    assert not admin.exists("none")
    secured.set_password("another")
    try:
        with pytest.raises(UnavailableError, match="refuses the login"):
            eventually(lambda: admin.exists("none"), 60)
    finally:
        secured.set_password(PASSWORD)
    assert not TopicAdmin(connection).exists("none")
