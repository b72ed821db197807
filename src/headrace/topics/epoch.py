"""Records of the first millisecond of 1970.

librdkafka takes the timestamp 0 for "now". So the few records that really bear it, as tests and
broken clocks write them, go through another client. It is opened only when one comes along.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka import KafkaProducer

Header = tuple[str, bytes | None]  # the value may not be missing here

# librdkafka's names in the other client's words; what is not here it does without.
_SETTINGS = {
    "bootstrap.servers": "bootstrap_servers",
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}


class EpochWriteError(Exception):
    """A record of time 0 could not be written."""


class EpochProducer:
    """Writes records with timestamp 0. `settings` are librdkafka's."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        from kafka import KafkaProducer

        known = {_SETTINGS[k]: v for k, v in settings.items() if k in _SETTINGS}
        with _failing():
            self._client: KafkaProducer = KafkaProducer(**known, linger_ms=0)
        self._sent: list[Any] = []

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Sequence[Header] = (),
        partition: int | None = None,
    ) -> None:
        from kafka.partitioner.default import murmur2
        from kafka.structs import TopicPartition

        with _failing():
            count = len(self._client.partitions_for(topic))
        if partition is None:
            hashed = random.randrange(count) if key is None else murmur2(key) & 0x7FFFFFFF
            partition = hashed % count
        # The client's own `send` refuses records without key and value, which Kafka knows well.
        future, *_ = self._client._accumulator.append(
            TopicPartition(topic, partition), 0, key, value, list(headers), abort_on_new_batch=False
        )
        self._client._sender.wakeup()
        self._sent.append(future)

    def flush(self, timeout: float) -> list[tuple[int, int]]:
        """Waits until everything is written; where it stands, by partition and offset."""
        sent, self._sent = self._sent, []
        with _failing():
            self._client.flush(timeout)
            written = [future.get(timeout) for future in sent]
        return [(place.partition, place.offset) for place in written]

    def close(self) -> None:
        self._client.close()


@contextmanager
def _failing() -> Iterator[None]:
    from kafka.errors import KafkaError

    try:
        yield
    except KafkaError as e:
        raise EpochWriteError(str(e)) from e
