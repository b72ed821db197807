"""A connection to Kafka: its settings, librdkafka's clients, and readable errors."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cached_property
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from headrace.kafka.settings import client_settings, java_settings
from headrace.model.errors import HeadraceError, UnavailableError

T = TypeVar("T")
LOG = logging.getLogger("headrace.kafka")
# While a broker is away, every client tries twenty times a second, and would log each time.
LOG_SECONDS = 10.0
TIMEOUT_SECONDS = 30.0
# How often the client library is asked whether Kafka has refused us meanwhile.
_LOOK_SECONDS = 0.05
# How long the reason of a failure counts: the library tells the same one every 30 s.
_NOTED_SECONDS = 60.0


class _Sparingly(logging.Filter):
    """Rate-limits the client library's log lines, and drops those about a producer's id that a
    starting broker cannot give yet."""

    _silent_until = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        asks_again = isinstance(record.args, tuple) and record.args[:1] == ("GETPID",)
        if asks_again or now < self._silent_until:
            return False
        self._silent_until = now + LOG_SECONDS
        return True


LIBRARY_LOG = LOG.getChild("librdkafka")
LIBRARY_LOG.addFilter(_Sparingly())

# Codes that say "nobody answered", not "the answer is no".
SILENCE = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._RESOLVE,
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.SASL_AUTHENTICATION_FAILED,
    }
)


# Codes that say "not you": of the login, and of TLS.
_LOGIN_REFUSED = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})
# What a broker that wants TLS or a login, and gets none, does not tell: it hangs up.
_PLAIN = " (security.protocol is not set: it may expect TLS or a login)"

# Of a producer's settings, those by which a user may have given up idempotence, in all spellings.
_NOT_IDEMPOTENT = frozenset(
    {
        "acks",
        "request.required.acks",
        "retries",
        "message.send.max.retries",
        "max.in.flight",
        "max.in.flight.requests.per.connection",
    }
)


_NO_MECHANISM = (
    "sasl.mechanism GSSAPI (Kerberos) needs a confluent-kafka that is built with libsasl2, and "
    "this one is not: install it with 'pip install --no-binary confluent-kafka confluent-kafka' "
    "beside a librdkafka that has it, or use SCRAM, PLAIN or OAUTHBEARER."
)


class UnknownTopicError(HeadraceError):
    """A topic that is not there."""


class TopicExistsError(HeadraceError):
    """A topic that is there already."""


class TopicAuthorizationError(HeadraceError):
    """A topic that this user may not see or change."""

    error_code = 40301


class KafkaConnection:
    """Where Kafka is and how to speak to it. Nothing is opened before it is needed.

    `settings` are the Kafka client's, in the Java client's names or librdkafka's.
    """

    def __init__(self, settings: Mapping[str, str], timeout: float = TIMEOUT_SECONDS) -> None:
        if not settings.get("bootstrap.servers"):
            raise HeadraceError("bootstrap.servers, the address of Kafka, is not set.")
        self.settings = dict(settings)
        self.timeout = timeout
        self._translated = client_settings(settings)
        self._noted: tuple[float, KafkaError | None] = (0.0, None)
        for name, reason in self._translated.without_effect.items():
            LOG.info("The Kafka client setting %s has no effect: %s", name, reason)

    @property
    def bootstrap_servers(self) -> str:
        return self.settings["bootstrap.servers"]

    @property
    def producer_settings(self) -> dict[str, str]:
        """What a producer gets, in librdkafka's names."""
        return self._translated.for_producer()

    @cached_property
    def java_settings(self) -> dict[str, str]:
        """What Spark's own client gets, in the Java client's names."""
        return java_settings(self.settings)

    def producer(self, **settings: str | int | bool) -> Producer:
        """A producer that partitions as the Java client does. Keywords: `linger_ms=0`, …"""
        return self._producer(self._translated.for_producer() | _dotted(settings))

    def idempotent_producer(self, **settings: str | int | bool) -> Producer:
        """One whose retries neither write a record twice nor change the order. What the user has
        set for producers gives way where it would forbid that."""
        given = {**self._translated.for_producer(), **_dotted(settings)}
        kept = {k: v for k, v in given.items() if k not in _NOT_IDEMPOTENT}
        return self._producer({**kept, "enable.idempotence": True, "acks": "all"})

    def _producer(self, settings: Mapping[str, str | int | bool]) -> Producer:
        defaults = {"partitioner": "murmur2_random", "linger.ms": "5"}
        with self.reaching("a producer"):
            return Producer(
                defaults | dict(settings) | {"error_cb": self._note}, logger=LIBRARY_LOG
            )

    def consumer(self, **settings: str | int | bool) -> Consumer:
        """A consumer that only reads: it joins no group and commits nothing."""
        defaults = {"group.id": "headrace", "auto.offset.reset": "earliest"}
        fixed = {"enable.auto.commit": False, "enable.auto.offset.store": False}
        config = defaults | self._translated.for_consumer() | fixed | _dotted(settings)
        with self.reaching("a consumer"):
            return Consumer(config | {"error_cb": self._note}, logger=LIBRARY_LOG)

    def admin(self) -> AdminClient:
        with self.reaching("an admin client"):
            # The callback goes by keyword: the library's types know plain values in the dict only.
            return AdminClient(
                dict(self._translated.for_admin()), error_cb=self._note, logger=LIBRARY_LOG
            )

    @contextmanager
    def reaching(self, topic: str) -> Iterator[None]:
        """Turns the client library's errors about a topic into ours."""
        try:
            yield
        except KafkaException as failure:
            raise self.error(failure.args[0], topic) from failure
        except TimeoutError as failure:
            raise self.unavailable("no answer in time") from failure

    def error(self, error: KafkaError, topic: str) -> HeadraceError:
        code = error.code()
        if code in SILENCE:
            noted = self._error_since(time.monotonic() - _NOTED_SECONDS)
            if _is_refusal(error) and (noted is None or not _is_refusal(noted)):
                self._note(error)  # it came before the library told us why
            return self.unavailable(error.str())
        if code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            return UnknownTopicError(f"Topic '{topic}' does not exist in Kafka.")
        if code == KafkaError._UNKNOWN_PARTITION:
            return HeadraceError(f"Topic '{topic}' has no such partition.")
        if code == KafkaError.TOPIC_ALREADY_EXISTS:
            return TopicExistsError(f"Topic '{topic}' already exists.")
        if code in (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        ):
            return TopicAuthorizationError(f"Authorization denied on topic(s): [{topic}]")
        if code == KafkaError._INVALID_ARG and "No provider for SASL mechanism" in error.str():
            return HeadraceError(_NO_MECHANISM)
        if code == KafkaError._INVALID_ARG:
            return HeadraceError(f"Kafka's client refuses its settings: {error.str()}")
        return HeadraceError(f"Kafka refused the request about '{topic}': {error.str()}")

    def answer(self, client: AdminClient, future: Future[T]) -> T:
        """What Kafka answers. It does not wait for more once Kafka has refused us: the client
        library would try again and again."""
        began = time.monotonic()
        while True:
            try:
                return future.result(_LOOK_SECONDS)
            except TimeoutError:
                client.poll(0)
                error = self._error_since(began)
                if error is not None and _is_refusal(error):
                    raise self.unavailable("") from None
                if time.monotonic() - began > self.timeout:
                    raise

    def unavailable(self, reason: str) -> UnavailableError:
        error = self._error_since(time.monotonic() - _NOTED_SECONDS)
        where = f"Kafka at {self.bootstrap_servers}"
        if error is None:
            told = "" if "security.protocol" in self.settings else _PLAIN
            return UnavailableError(f"{where} does not answer: {reason}{told}")
        detail = _detail(error.str())
        if error.code() in _LOGIN_REFUSED:
            return UnavailableError(
                f"{where} refuses the login: {detail}. Check sasl.mechanism and sasl.jaas.config."
            )
        if _is_refusal(error):
            return UnavailableError(f"{where} cannot be reached over TLS: {_tls_reason(detail)}.")
        return UnavailableError(f"{where} does not answer: {detail}")

    def _error_since(self, moment: float) -> KafkaError | None:
        noted_at, error = self._noted
        return error if noted_at >= moment else None

    def _note(self, error: KafkaError) -> None:
        # The reason reaches us here; the call that fails knows only that time is up.
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._noted = (time.monotonic(), error)


def _is_refusal(error: KafkaError) -> bool:
    """Whether it will not be better the next time. What a broker says of our certificate comes when
    the connection is up, and counts as one that broke."""
    refused = error.code() in _LOGIN_REFUSED or error.code() == KafkaError._SSL
    return refused or "SSL routines" in error.str()


def _detail(text: str) -> str:
    """Without the name of the connection before it and how long it took after it."""
    told = re.sub(r"^\w+://\S+: ", "", text)
    return re.sub(r" \(after \d+ms in state \w+\)$", "", told).strip().rstrip(".")


# What the client library says of TLS, and what that means in settings of ours.
_TLS_REASONS = {
    "certificate verify failed": "the broker's certificate is not trusted, or is for another name: "
    "check ssl.truststore.location, and that bootstrap.servers has a name of the certificate",
    "certificate required": "the broker asks for a client certificate: set ssl.keystore.location",
    "bad certificate": "the broker wants another client certificate, or one at all: check "
    "ssl.keystore.location",
    "unknown ca": "the broker does not trust the client certificate: check ssl.keystore.location",
}


def _tls_reason(detail: str) -> str:
    lowered = detail.lower()
    return next((told for words, told in _TLS_REASONS.items() if words in lowered), detail)


def _dotted(settings: Mapping[str, str | int | bool]) -> dict[str, str | int | bool]:
    return {name.replace("_", "."): value for name, value in settings.items()}
