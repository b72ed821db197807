"""Follows the topics of tables that pull queries read, and keeps their rows in row stores.

A table costs nothing until its first pull query. From then on one thread, with one consumer for
all tables of the server, brings its topic's changes to a `RowStore`; a table that nobody asks
about for a while is no longer followed, and goes on from where it stands when it is needed again.
One whose rows cannot be stored for now (the disk is full, say) is tried again, until they can.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import cast

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from headrace.engine.supervised import SupervisedThread
from headrace.engine.tables.row_store import (
    Headers,
    RowStore,
    Update,
    is_damage,
    remove_store,
)
from headrace.kafka.admin import TopicAdmin
from headrace.kafka.client import KafkaConnection
from headrace.kafka.records import PASSING
from headrace.model.errors import HeadraceError

LOG = logging.getLogger(__name__)

POLL_SECONDS = 0.05
POLL_RECORDS = 5_000
BATCH_RECORDS = 100_000  # while a big table is loaded: sorted, a larger batch writes fewer pages
IDLE_SECONDS = 900.0
CARE_SECONDS = 30.0
# Of each partition's records, how much waits in memory until it is stored.
QUEUED_KIB = 16 * 1024
FETCH_WAIT_MS = 50
LATEST = -1  # as a time to ask offsets for: the end
# After rows could not be stored, they are tried again after a second, then after twice as long.
RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 15.0
# A table that could not be opened, and that nobody has asked for since, troubles nobody any more.
UNOPENED_SECONDS = 60.0


class TopicGone(HeadraceError):
    """The topic of a table is no longer there."""


@dataclass(frozen=True)
class Trouble:
    """Why tables cannot be followed for now, and since when (in seconds, as `time.time`)."""

    reason: str
    since: float = field(default_factory=time.time)


# The key under which a record is stored; None for a record that is not of the table. What other
# programs write may spell the same key in several ways, and may be no row at all.
Admit = Callable[[bytes, "bytes | None"], "bytes | None"]


# Up to where the partitions of a topic can be read now.
Ends = Callable[[str, Sequence[int]], Mapping[int, int]]


@dataclass(frozen=True)
class Followed:
    """What is followed: a topic, for the table `name`. `fingerprint` says how `admit` does it:
    with another one, what was stored before is of no use."""

    name: str
    topic: str
    fingerprint: str = ""
    admit: Admit | None = None


class Tail:
    """One topic and its rows. Freshness is a matter of when Kafka was last asked for the topic's
    end: `confirmed_at` is a moment up to which everything written is in the store. `renew` asks
    again, in the background."""

    def __init__(
        self,
        followed: Followed,
        store: RowStore,
        partitions: Sequence[int],
        renew: Callable[[Tail, float], None] = lambda tail, staleness: None,
    ) -> None:
        self.name = followed.name
        self.topic = followed.topic
        self.store = store
        self._admit = followed.admit
        self.reached: dict[int, int] = {p: 0 for p in partitions} | store.positions()
        self.confirmed_at = float("-inf")
        self.asked_at = time.monotonic()
        self.failure: HeadraceError | None = None
        self.trouble: Trouble | None = None
        self._retry_at = 0.0
        self._backoff = RETRY_SECONDS
        self._renew = renew
        self._renewing = False
        self._expected: dict[int, int] = {}
        self._pending: deque[Update] = deque()
        self._moved: dict[int, int] = {}
        self._progress = threading.Condition()
        self._confirming = threading.Lock()

    # ------------------------------------------------------------------ who asks

    def is_fresh(self, staleness: float) -> bool:
        """Whether everything that was written `staleness` seconds ago is here.

        Past half of that time Kafka is asked again, while everyone goes on: who asks often never
        waits.
        """
        now = time.monotonic()
        self.asked_at = now
        age = now - self.confirmed_at
        if age > staleness or not self._has(self._expected):
            return False
        if age > staleness / 2 and not self._renewing:
            self._renewing = True
            self._renew(self, staleness)
        return True

    def renewed(self) -> None:
        """Notes that Kafka was asked again, or could not be."""
        self._renewing = False

    def await_fresh(self, ends_of: Ends, staleness: float, timeout: float) -> None:
        """Waits until everything that was written `staleness` seconds ago is here.

        Of several that wait, one asks Kafka where the topic ends; the answer is good for all who
        came before it was asked.
        """
        came = time.monotonic()
        self.asked_at = came
        with self._confirming:
            if self.confirmed_at >= came - staleness / 2 and self._has(self._expected):
                return
            asked = time.monotonic()
            ends = ends_of(self.topic, sorted(self.reached))
            self._await({p: max(end, self._expected.get(p, 0)) for p, end in ends.items()}, timeout)
            self.confirmed_at = asked

    def expect(self, partition: int, offset: int) -> None:
        """Records that this server wrote to the topic, so that the next query sees it."""
        with self._progress:
            most = max(offset + 1, self._expected.get(partition, 0))
            self._expected = {**self._expected, partition: most}

    def _has(self, ends: Mapping[int, int]) -> bool:
        return all(self.reached.get(p, 0) >= end for p, end in ends.items())

    def _await(self, ends: Mapping[int, int], timeout: float) -> None:
        deadline = time.monotonic() + timeout
        with self._progress:
            while not self._has(ends):
                if self.failure is not None:
                    raise self.failure
                if self.trouble is not None:
                    raise HeadraceError(self.trouble.reason)
                left = deadline - time.monotonic()
                if left <= 0 or not self._progress.wait(left):
                    raise HeadraceError(
                        f"The rows of topic '{self.topic}' are still being read. Try again later."
                    )

    # ------------------------------------------------------------------ who follows

    def take(self, message: Message) -> None:
        partition, offset = cast(int, message.partition()), cast(int, message.offset())
        if message.error() is not None:  # the partition's end, as of now
            self._moved[partition] = offset
            return
        if offset < self.reached.get(partition, 0):
            return  # another table of this topic is not as far
        self._moved[partition] = offset + 1
        key, value = message.key(), message.value()
        if key is not None and self._admit is not None:
            key = self._admit(key, value)
        if key is not None:
            headers = cast("list[tuple[str, bytes | None]] | None", message.headers())
            self._pending.append(
                Update(
                    key,
                    value,
                    message.timestamp()[1],
                    partition,
                    offset,
                    _headers(headers),
                )
            )

    def store_pending(self, least: int = 0) -> None:
        if not self._moved or len(self._pending) < least:
            return
        ahead = {p: o for p, o in self._moved.items() if o != self.reached.get(p)}
        if ahead:
            try:
                self.store.apply(self._pending, ahead)
                self._backoff = RETRY_SECONDS
            except sqlite3.Error as e:
                self.store_failed(e)
                return
        self._drop_pending()
        with self._progress:
            self.reached = {**self.reached, **ahead}
            self._progress.notify_all()

    def _drop_pending(self) -> None:
        self._pending.clear()
        self._moved.clear()

    def store_failed(self, error: sqlite3.Error) -> None:
        """Records that the store cannot be written now; the records are read again later."""
        self._drop_pending()
        reason = not_stored(self.topic, error)
        if is_damage(error):
            self.fail(HeadraceError(reason))
            return
        LOG.warning("%s", reason)
        self._retry_at = time.monotonic() + self._backoff
        self._backoff = min(2 * self._backoff, LONGEST_RETRY_SECONDS)
        with self._progress:
            self.trouble = Trouble(reason) if self.trouble is None else self.trouble
            self._progress.notify_all()

    def retry(self) -> None:
        """Tries to write the store again, if it is time to."""
        if self.trouble is None or time.monotonic() < self._retry_at:
            return
        try:
            self.store.touch()
        except sqlite3.Error as e:
            self.store_failed(e)
            return
        LOG.info("The rows of '%s' can be stored again", self.topic)
        self.trouble = None

    def start_over(self) -> None:
        """Discards what was read but not stored; it is read again."""
        self._drop_pending()

    def fail(self, failure: HeadraceError) -> None:
        with self._progress:
            self.failure = failure
            self._progress.notify_all()


def not_stored(topic: str, error: Exception) -> str:
    return (
        f"The rows of topic '{topic}' cannot be stored: {error}. Pull queries on it are answered "
        "as soon as they can be."
    )


def _headers(headers: list[tuple[str, bytes | None]] | None) -> Headers:
    return tuple(headers) if headers else ()


class TableTails:
    """All tails of a server, and their thread. Safe to use from any thread."""

    def __init__(self, connection: KafkaConnection, admin: TopicAdmin, directory: Path) -> None:
        self._connection = connection
        self._admin = admin
        self._directory = directory
        self._tails: dict[str, Tail] = {}
        self._changed = threading.Condition()
        self._opening = threading.Lock()
        self._followed: dict[str, Tail] = {}  # what the consumer is assigned
        self.thread = SupervisedThread(
            "table-tails", self._follow_all, most=LONGEST_RETRY_SECONDS, failed=self._note
        )
        self._failing: Trouble | None = None  # of the thread
        self._unopened: dict[str, tuple[Trouble, float]] = {}  # and when it was last tried
        self._renewer = ThreadPoolExecutor(1, thread_name_prefix="table-freshness")

    @property
    def _stopping(self) -> bool:
        return self.thread.stopping.is_set()

    def get(self, name: str) -> Tail | None:
        """The tail of a table that is followed already."""
        tail = self._tails.get(name)
        return tail if tail is not None and tail.failure is None else None

    @property
    def trouble(self) -> Trouble | None:
        """Why rows of tables are not up to date, if they are not; the oldest reason."""
        recently = time.monotonic() - UNOPENED_SECONDS
        troubles = [
            *(tail.trouble for tail in list(self._tails.values())),
            *(trouble for trouble, at in list(self._unopened.values()) if at > recently),
            self._failing,
        ]
        return min((t for t in troubles if t is not None), key=lambda t: t.since, default=None)

    def follow(self, followed: Followed) -> Tail:
        """The tail of a table; begins to follow its topic if nobody has asked before."""
        name = followed.name
        with self._opening:
            tail = self.get(name)
            if tail is not None:
                return tail
            self._leave(name)
            tail = self._opened(followed)
            with self._changed:
                self._tails[name] = tail
                self._changed.notify_all()
                if not self.thread.is_alive:
                    self.thread.start()
            return tail

    def _opened(self, followed: Followed) -> Tail:
        topic, name = followed.topic, followed.name
        topic_id, begin = self._admin.id(topic), self._admin.begin_offsets(topic)
        try:
            store = RowStore(self._path(name), f"{topic_id}{followed.fingerprint}")
            try:
                store.expire(begin)
                tail = Tail(followed, store, list(begin), self._renew)
            except BaseException:  # whatever it is, the file is not left open
                store.close()
                raise
        except (sqlite3.Error, OSError) as e:
            trouble, _ = self._unopened.get(name, (Trouble(not_stored(topic, e)), 0.0))
            self._unopened[name] = trouble, time.monotonic()
            raise HeadraceError(trouble.reason) from e
        self._unopened.pop(name, None)
        return tail

    def await_fresh(self, tail: Tail, staleness: float) -> None:
        """Waits until everything that was written `staleness` seconds ago is in the store."""
        tail.await_fresh(self._ends, staleness, self._connection.timeout)

    def _renew(self, tail: Tail, staleness: float) -> None:
        try:
            self._renewer.submit(self._renew_now, tail, staleness)
        except RuntimeError:  # the server stops
            tail.renewed()

    def _renew_now(self, tail: Tail, staleness: float) -> None:
        try:
            self.await_fresh(tail, staleness)
        except HeadraceError as e:
            LOG.debug("%s is not confirmed: %s", tail.name, e)  # whoever asks next is told
        finally:
            tail.renewed()

    def _ends(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        # One blocking call: the admin client's way there and back through its threads costs, on a
        # busy server, more than the request itself.
        with self._connection.reaching(topic):
            found = self._asker.offsets_for_times(
                [TopicPartition(topic, p, LATEST) for p in partitions], self._connection.timeout
            )
        for partition in found:
            if partition.error is not None:
                raise self._connection.error(partition.error, topic)
        return {p.partition: p.offset for p in found}

    @cached_property
    def _asker(self) -> Consumer:
        return self._connection.consumer(isolation_level="read_committed")

    def expect(self, topic: str, partition: int, offset: int) -> None:
        """Records that this server wrote to a topic, so that the next query sees it."""
        for tail in list(self._tails.values()):
            if tail.topic == topic:
                tail.expect(partition, offset)

    def forget(self, name: str) -> None:
        """Deletes the rows of a table that was dropped."""
        with self._opening:
            self._leave(name)
            self._unopened.pop(name, None)
            try:
                remove_store(self._path(name))
            except OSError as e:
                LOG.warning("The rows of '%s' could not be deleted: %s", name, e)

    def _leave(self, name: str) -> None:
        """Stops following for a table; returns when nothing writes to its store any more."""
        with self._changed:
            tail = self._tails.pop(name, None)
            self._changed.notify_all()
            if tail is None:
                return
            tail.fail(TopicGone(f"Table '{name}' is no longer followed."))
            self._changed.wait_for(
                lambda: self._followed.get(name) is not tail or self._stopping,
                self._connection.timeout,
            )
        tail.store.close()

    def close(self) -> None:
        with self._changed:
            self.thread.stopping.set()
            self._changed.notify_all()
        self.thread.stop()
        self._renewer.shutdown(cancel_futures=True)
        for tail in self._tails.values():
            tail.store.close()
        if "_asker" in self.__dict__:
            self._asker.close()

    def _path(self, name: str) -> Path:
        # A name may differ from another's in case only, which a file system may not see.
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        return self._directory / f"{re.sub(r'[^A-Za-z0-9._-]', '_', name)[:100]}-{digest}.rows"

    # ------------------------------------------------------------------ the thread

    def _follow_all(self) -> None:
        """Follows all topics until the server stops; after a failure, from the stores'
        positions."""
        cared_at = time.monotonic()
        consumer = self._consumer()
        try:
            while not self._stopping:
                self._arrange(consumer)
                self._bring(consumer)
                if time.monotonic() - cared_at > CARE_SECONDS:
                    cared_at = time.monotonic()
                    self._care()
                self._failing = None
        finally:
            consumer.close()

    def _note(self, failure: Exception) -> None:
        self._failing = self._failing or Trouble(f"Tables cannot be followed: {failure}")
        with self._changed:
            for tail in self._followed.values():
                tail.start_over()
            self._followed = {}
            self._changed.notify_all()

    def _consumer(self) -> Consumer:
        return self._connection.consumer(
            enable_partition_eof=True,
            queued_max_messages_kbytes=QUEUED_KIB,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            # A table that is new is not asked for before the request under way is answered.
            fetch_wait_max_ms=FETCH_WAIT_MS,
        )

    def _arrange(self, consumer: Consumer) -> None:
        """Assigns what is to be followed now; waits while there is nothing."""
        with self._changed:
            while not self._stopping:
                usable = {t: tail for t, tail in self._tails.items() if tail.failure is None}
                for tail in usable.values():
                    tail.retry()
                wanted = {t: tail for t, tail in usable.items() if tail.trouble is None}
                if wanted or self._followed:
                    break
                self._changed.wait(RETRY_SECONDS if usable else None)
            if self._stopping or wanted == self._followed:
                return
            LOG.info("Following %d tables: %s", len(wanted), ", ".join(sorted(wanted)))
            for tail in self._followed.values():
                tail.store_pending()
            self._assign(consumer, wanted)
            self._followed = wanted
            self._changed.notify_all()

    def _assign(self, consumer: Consumer, wanted: Mapping[str, Tail]) -> None:
        """Adds and takes away what has changed: an assignment from scratch would halt the others
        for a second. If several tables share a topic, it is read from where the last one is."""
        staying = {name: t for name, t in wanted.items() if self._followed.get(name) is t}
        old, new = _starts(staying), _starts(wanted)
        gone = [TopicPartition(*at) for at in _starts(self._followed) if at not in old]
        added = [TopicPartition(*at, start) for at, start in new.items() if at not in old]
        with self._connection.reaching("*"):
            if gone:
                consumer.incremental_unassign(gone)
            if added:
                consumer.incremental_assign(added)
            for at, start in new.items():
                if at in old and start < old[at]:
                    consumer.seek(TopicPartition(*at, start))

    def _bring(self, consumer: Consumer) -> None:
        with self._connection.reaching("*"):
            first = consumer.poll(POLL_SECONDS)
            messages = [] if first is None else [first, *consumer.consume(POLL_RECORDS, 0)]
        by_topic: dict[str, list[Tail]] = {}
        for tail in self._followed.values():
            by_topic.setdefault(tail.topic, []).append(tail)
        for message in messages:
            for tail in by_topic.get(cast(str, message.topic()), ()):
                if self._is_sound(tail, message):
                    tail.take(message)
        # A full poll means that there is more to come: a larger batch is cheaper to store.
        least = BATCH_RECORDS if len(messages) > POLL_RECORDS else 0
        for tail in self._followed.values():
            tail.store_pending(least)

    def _is_sound(self, tail: Tail, message: Message) -> bool:
        error = message.error()
        if error is None or error.code() == KafkaError._PARTITION_EOF:
            return True
        if error.code() not in PASSING:
            tail.fail(self._connection.error(error, tail.topic))
        return False

    def _care(self) -> None:
        """Regular maintenance: closes idle tables, deletes rows whose records have expired."""
        now = time.monotonic()
        for tail in list(self._followed.values()):
            if now - tail.asked_at > IDLE_SECONDS:
                tail.fail(TopicGone(f"Table '{tail.name}' is no longer followed."))
                continue
            try:
                lows = self._admin.begin_offsets(tail.topic)
            except HeadraceError as e:
                tail.fail(e)
                continue
            try:
                tail.store.expire(lows)
                tail.store.touch()
            except sqlite3.Error as e:
                tail.store_failed(e)
                continue
            if set(lows) - set(tail.reached):
                tail.fail(TopicGone(f"Topic '{tail.topic}' has grown: it is followed anew."))


def _starts(tails: Mapping[str, Tail]) -> dict[tuple[str, int], int]:
    """By topic and partition, the first record that one of the tables does not have yet."""
    starts: dict[tuple[str, int], int] = {}
    for tail in tails.values():
        for partition, offset in tail.reached.items():
            at = (tail.topic, partition)
            starts[at] = min(offset, starts.get(at, offset))
    return starts
