"""The thread that writes this server's heartbeats and reads those of the others.

It does nothing that may take long. Whoever wants to know asks; what is to happen when the lease
comes or goes is done by others (`standby.py`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from py4j.protocol import Py4JError

from headrace.engine.cluster.identity import Identity
from headrace.engine.cluster.lease import (
    LAPSE,
    Beat,
    Lease,
    Member,
    Report,
)
from headrace.engine.supervised import SupervisedThread
from headrace.kafka.admin import ONE_REPLICA, Replication, TopicAdmin
from headrace.kafka.client import KafkaConnection
from headrace.kafka.records import PASSING

LOG = logging.getLogger(__name__)

POLL_SECONDS = 0.2
FETCH_WAIT_MS = 100
# So many beats tell who is there: those of the last `SILENCE` seconds of a hundred servers.
READ_BACK = 1000
GOODBYE_SECONDS = 5.0
MOST_BACKOFF = 1.0
_TOPIC_CONFIGS = {
    "cleanup.policy": "delete",
    "retention.ms": "3600000",
    "segment.ms": "3600000",
    "message.timestamp.type": "LogAppendTime",  # one clock for all servers' beats
}


def beats_topic(service_id: str) -> str:
    return f"_headrace-{service_id}_servers"


class Heartbeat:
    """Sends a heartbeat every few seconds. `report` returns its content; `renewed` is called with
    the seconds for which this server now holds the lease."""

    def __init__(
        self,
        connection: KafkaConnection,
        topic: str,
        identity: Identity,
        report: Callable[[], Report],
        renewed: Callable[[float], None],
        replication: Replication = ONE_REPLICA,
    ) -> None:
        self.topic = topic
        self._connection = connection
        self._identity = identity
        self._report = report
        self._renewed = renewed
        self._replication = replication
        self._lease = Lease(identity.name, time.monotonic)
        self._heard = threading.Condition()
        self._spoken_early = threading.Event()
        self._backlog: list[tuple[Message, Beat | None]] | None = []
        self._told = Report()
        self._strangers: set[str] = set()
        self.thread = SupervisedThread(
            "heartbeat", self._run, most=MOST_BACKOFF, failed=self._leave_without_spark
        )
        self._producer: Producer
        self._consumer: Consumer

    def open(self) -> None:
        """Sends the first heartbeat; returns when it is known who holds the lease."""
        spec = self._replication.topic(self.topic, _TOPIC_CONFIGS)
        TopicAdmin(self._connection).ensure(spec)
        self._producer = self._connection.producer(
            linger_ms=0, acks="all", delivery_timeout_ms=int(LAPSE * 1000)
        )
        self._consumer = self._connection.consumer(
            fetch_wait_max_ms=FETCH_WAIT_MS, auto_offset_reset="latest"
        )
        with self._connection.reaching(self.topic):
            low, high = self._consumer.get_watermark_offsets(
                TopicPartition(self.topic, 0), self._connection.timeout
            )
            start = max(low, high - READ_BACK)
            self._consumer.assign([TopicPartition(self.topic, 0, start)])
        own = self._identity
        self._lease = Lease(own.name, time.monotonic, own.predecessors, start == 0)
        self.thread.start()
        if not self._await(self._is_settled, self._connection.timeout):
            raise self._connection.unavailable(f"'{self.topic}' could not be written and read")

    def _is_settled(self) -> bool:
        return self._backlog is None and not self._lease.may_claim()

    # ------------------------------------------------------------------ what others ask

    def holds(self) -> bool:
        """Whether this server may run queries now."""
        return self._lease.holds()

    def seconds_left(self) -> float:
        """The seconds until the lease expires without another renewal."""
        return self._lease.holds_until - time.monotonic()

    def holding(self) -> Member | None:
        """The server that runs the queries, if one is alive."""
        with self._heard:
            return self._lease.holding()

    def members(self) -> list[tuple[Member, bool]]:
        """Servers that were heard of lately, and whether they are alive; one for an address."""
        with self._heard:
            by_address: dict[str, Member] = {}
            for member in sorted(self._lease.members.values(), key=lambda m: m.offset):
                by_address[member.report.address] = member
            return [(m, self._lease.is_alive(m)) for m in by_address.values() if m.report.address]

    def await_applied(self, sequence: int, timeout: float) -> bool:
        """Waits until the server that runs the queries has applied this command."""

        def is_applied() -> bool:
            holder = self._lease.holding()
            return holder is not None and holder.report.applied > sequence

        return self._await(is_applied, timeout)

    def await_all(self, sequence: int, timeout: float) -> bool:
        """Waits until every other server that is alive has applied this command."""
        return self._await(
            lambda: all(m.report.applied > sequence for m in self._lease.others()), timeout
        )

    def others(self) -> list[Member]:
        """The other servers that are alive."""
        with self._heard:
            return self._lease.others()

    def send_now(self) -> None:
        """Sends the next heartbeat at once."""
        self._spoken_early.set()

    def _await(self, check: Callable[[], bool], timeout: float) -> bool:
        with self._heard:
            return self._heard.wait_for(check, timeout)

    def close(self) -> None:
        """Sends the last heartbeat, so that another server can take over at once."""
        if not self.thread.is_alive:
            return
        self.thread.stop()
        self.resign()
        self._producer.flush(GOODBYE_SECONDS)
        self._producer.close()
        self._consumer.close()

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        while not self.thread.stopping.is_set():
            if self._lease.wait() == 0 or self._spoken_early.is_set():
                self._spoken_early.clear()
                self._send_beat()
            self._producer.poll(0)
            self._read_beats()

    def _send_beat(self) -> None:
        self._told = self._report()
        with self._heard:
            beat = self._lease.next_beat(self._told)
        self._producer.produce(self.topic, beat.to_bytes(), beat.server.encode(), partition=0)

    def _leave_without_spark(self, failure: Exception) -> None:
        if isinstance(failure, Py4JError):
            self.resign()

    def resign(self) -> None:
        """Gives up the lease for good: without Spark this server cannot run queries."""
        with self._heard:
            self._lease.resign()
            self._heard.notify_all()
        with suppress(KafkaException, BufferError):
            self._send_beat()

    def _read_beats(self) -> None:
        message = self._consumer.poll(min(POLL_SECONDS, self._lease.wait()))
        messages = [] if message is None else [message, *self._consumer.consume(READ_BACK, 0)]
        for message in messages:
            error = message.error()
            if error is None:
                self._take(message, Beat.from_bytes(message.value()))
            elif error.code() not in PASSING:
                raise self._connection.error(error, self.topic)

    def _take(self, message: Message, beat: Beat | None) -> None:
        now = time.monotonic()
        with self._heard:
            until = self._lease.holds_until
            if self._backlog is None:
                self._lease.receive(message.offset() or 0, beat, now)
            else:
                self._backlog.append((message, beat))
                if beat is not None and beat.server == self._lease.server:
                    self._take_backlog(now)
            held = self._lease.holds_until
            self._heard.notify_all()
        if held > until:
            self._renewed(held - time.monotonic())
        if beat is not None and self._backlog is None:
            self._compare(beat)

    def _take_backlog(self, now: float) -> None:
        """Of beats from before, Kafka's clock tells how old they were when this server came."""
        assert self._backlog is not None
        came = self._backlog[-1][0].timestamp()[1]
        for message, beat in self._backlog:
            age = max(0, came - message.timestamp()[1]) / 1000
            self._lease.receive(message.offset() or 0, beat, now - age)
        self._backlog = None

    def _compare(self, beat: Beat) -> None:
        """Servers that do not share their checkpoints cannot take over from each other."""
        own, theirs = self._told.state_dir, beat.report.state_dir
        if theirs not in ("", own) and beat.server not in self._strangers:
            self._strangers.add(beat.server)
            LOG.error(
                "The server at %s has state.dir=%s, this one has %s: servers of one "
                "ksql.service.id must share it.",
                beat.report.address or "an unknown address",
                theirs,
                own,
            )
