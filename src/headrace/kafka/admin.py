"""Topic administration: list, describe, create, change and delete topics, and their offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, yet not re-exported
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConsumerGroupDescription,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicDescription,
    TopicMetadata,
)

from headrace.kafka.client import KafkaConnection, TopicExistsError, UnknownTopicError
from headrace.model.errors import HeadraceError

T = TypeVar("T")
# By topic and partition, the offset of the next record.
Positions = Mapping[str, Mapping[int, int]]

# What a broker answers while a partition gets its leader, or a consumer group its coordinator.
RETRIABLE = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.NOT_CONTROLLER,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)


@dataclass(frozen=True)
class Topic:
    """A topic: the number of replicas of each of its partitions, by partition."""

    name: str
    replicas: tuple[int, ...]

    @property
    def partitions(self) -> int:
        return len(self.replicas)

    @property
    def replication_factor(self) -> int:
        return self.replicas[0] if self.replicas else 0


@dataclass(frozen=True)
class TopicSpec:
    """The settings of a topic to be created."""

    name: str
    partitions: int = 1
    replicas: int = -1  # the broker's default
    configs: Mapping[str, str] = field(default_factory=dict)


class Replication(NamedTuple):
    """How internal topics are kept: in so many replicas, of which so many must have a record before
    it counts."""

    replicas: int = 1
    in_sync: int = 1

    def topic(self, name: str, configs: Mapping[str, str] | None = None) -> TopicSpec:
        in_sync = {"min.insync.replicas": str(self.in_sync)}
        return TopicSpec(name, 1, self.replicas, {**(configs or {}), **in_sync})


ONE_REPLICA = Replication()


class TopicAdmin:
    """Changes and describes topics over one connection; safe to share between threads."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection

    @cached_property
    def _client(self) -> AdminClient:
        return self._connection.admin()

    def cluster_id(self) -> str:
        """The id of the Kafka cluster; empty if it does not report one. What Kafka refuses us for
        is known at once, and not when the time is up."""
        asked = self._client.describe_cluster(request_timeout=self._connection.timeout)
        with self._connection.reaching("*"):
            return self._answer(asked).cluster_id or ""

    def brokers(self) -> int:
        """How many brokers the cluster has now."""
        with self._connection.reaching("*"):
            return len(self._client.list_topics(timeout=self._connection.timeout).brokers)

    def topics(self, include_internal: bool = False) -> dict[str, Topic]:
        """All topics by name; Kafka's own (`__consumer_offsets`, …) only on request."""
        with self._connection.reaching("*"):
            metadata = self._client.list_topics(timeout=self._connection.timeout)
        return {
            name: Topic(name, _replicas(topic))
            for name, topic in sorted(metadata.topics.items())
            if include_internal or not name.startswith("__")
        }

    def describe(self, name: str) -> Topic:
        found = self._describe(name)
        return Topic(name, tuple(len(partition.replicas) for partition in found.partitions))

    def identify(self, names: Sequence[str]) -> dict[str, tuple[str, Topic]]:
        """Topics with their ids, which tell one from another that had its name before; without
        those that are not there."""
        if not names:
            return {}
        found = {}
        for name, future in self._client.describe_topics(TopicCollection(list(names))).items():
            try:
                with self._connection.reaching(name):
                    told: TopicDescription = self._answer(future)
            except UnknownTopicError:
                continue
            replicas = tuple(len(partition.replicas) for partition in told.partitions)
            found[name] = (str(told.topic_id), Topic(name, replicas))
        return found

    def exists(self, name: str, timeout: float | None = None) -> bool:
        """`timeout`: how long to wait at most, if not as long as for anything else."""
        try:
            self._describe(name, timeout)
        except UnknownTopicError:
            return False
        return True

    def create(self, spec: TopicSpec) -> None:
        new = _new_topic(spec)
        self._finish(spec.name, lambda: self._client.create_topics([new])[spec.name])
        self._await_leaders(spec.name)

    def ensure(self, spec: TopicSpec) -> None:
        """Creates the topic if it does not exist."""
        if not self.exists(spec.name):
            try:
                self.create(spec)
                return
            except TopicExistsError:  # somebody was faster
                pass
        self._await_leaders(spec.name)

    def create_all(self, specs: Sequence[TopicSpec]) -> None:
        """Many topics in one request, which takes little longer than one."""
        futures = self._client.create_topics([_new_topic(spec) for spec in specs])
        for name, future in futures.items():
            with self._connection.reaching(name):
                self._answer(future)
        for spec in specs:
            self._await_leaders(spec.name)

    def delete(self, name: str) -> None:
        self._finish(name, lambda: self._client.delete_topics([name])[name])
        self._await_end_of(name)

    def delete_all(self, names: Sequence[str]) -> None:
        """Many topics in one request."""
        for name, future in self._client.delete_topics(list(names)).items():
            with self._connection.reaching(name):
                self._answer(future)
        for name in names:
            self._await_end_of(name)

    def add_partitions(self, name: str, total: int) -> None:
        grown = NewPartitions(name, total)
        self._finish(name, lambda: self._client.create_partitions([grown])[name])
        self._await(lambda: self.describe(name).partitions >= total)

    def configs(self, name: str) -> dict[str, str]:
        """The topic's settings, defaults included (`cleanup.policy`, `retention.ms`, …)."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        entries = self._finish(name, lambda: self._client.describe_configs([resource])[resource])
        return {key: entry.value for key, entry in entries.items() if entry.value is not None}

    def set_configs(self, name: str, configs: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in configs.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        self._finish(name, lambda: self._client.incremental_alter_configs([resource])[resource])
        self._await(lambda: configs.items() <= self.configs(name).items())

    def begin_offsets(self, name: str) -> dict[int, int]:
        """By partition, the offset of the oldest record that is still there."""
        return self._offsets(name, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def end_offsets(self, name: str) -> dict[int, int]:
        """By partition, the offset that the next record will get."""
        return self._offsets(name, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def offsets_at(self, name: str, time_ms: int) -> dict[int, int]:
        """By partition, the offset of the first record from that time on, else of the next."""
        found = self._offsets(name, OffsetSpec.for_timestamp(time_ms))
        ends = self.end_offsets(name)
        return {p: offset if offset >= 0 else ends[p] for p, offset in found.items()}

    def id(self, name: str) -> str:
        """What tells a topic from another one that had its name before."""
        return str(self._describe(name).topic_id)

    def groups(self) -> list[str]:
        """The names of the consumer groups that the broker knows."""
        listing = self._finish("*", lambda: self._client.list_consumer_groups())
        return sorted(group.group_id for group in listing.valid)

    def group_positions(
        self, group: str, topics: Iterable[str] | None = None
    ) -> dict[str, dict[int, int]]:
        """By topic and partition, the offsets that a consumer group has committed in these topics,
        or in any.

        A consumer that does not join the group asks for them: librdkafka's admin client (2.16)
        ends the process when the group's coordinator is moving or yet to be chosen.
        """
        known = self.topics(include_internal=True)
        places = [
            TopicPartition(name, partition)
            for name in (known if topics is None else topics)
            if name in known
            for partition in range(known[name].partitions)
        ]
        positions: dict[str, dict[int, int]] = {}
        for place in self._retried(group, lambda: self._committed(group, places)):
            if place.offset >= 0:
                positions.setdefault(place.topic, {})[place.partition] = place.offset
        return positions

    def _committed(self, group: str, places: list[TopicPartition]) -> list[TopicPartition]:
        consumer = self._connection.consumer(group_id=group, isolation_level="read_committed")
        try:
            found = consumer.committed(places, self._connection.timeout) if places else []
        finally:
            consumer.close()
        for place in found:
            if place.error is not None:
                raise KafkaException(place.error)
        return found

    def commit(self, groups: Mapping[str, Positions], timeout: float) -> dict[str, HeadraceError]:
        """Commits offsets for groups that have no members; the groups that could not, and why."""
        futures = {
            group: partial(self._alter_offsets, group, positions, timeout)
            for group, positions in groups.items()
        }
        return self._attempt(futures, timeout)

    def delete_groups(self, groups: Collection[str], timeout: float) -> dict[str, HeadraceError]:
        """Deletes consumer groups and what they committed; those that could not be, and why. One
        that is not there counts as deleted."""
        futures = {group: partial(self._delete_group, group, timeout) for group in groups}
        return self._attempt(futures, timeout)

    def _attempt(
        self, calls: Mapping[str, Callable[[], Future[Any]]], timeout: float
    ) -> dict[str, HeadraceError]:
        """Makes the calls for all groups at once; the errors of those that fail."""
        failures: dict[str, HeadraceError] = {}
        futures: dict[str, Future[Any]] = {}
        for group, call in calls.items():
            try:
                with self._connection.reaching(group):
                    futures[group] = call()
            except HeadraceError as failure:
                failures[group] = failure
        for group, future in futures.items():
            try:
                with self._connection.reaching(group), _not_found_is_fine():
                    self._check(future.result(timeout + 1))
            except HeadraceError as failure:
                failures[group] = failure
        return failures

    def _check(self, altered: ConsumerGroupTopicPartitions | None) -> None:
        """Raises what is wrong with the first partition whose offset was refused."""
        for place in (altered.topic_partitions if altered is not None else None) or ():
            if place.error is not None:
                raise self._connection.error(place.error, place.topic)

    def _alter_offsets(self, group: str, positions: Positions, timeout: float) -> Future[Any]:
        places = [
            TopicPartition(topic, partition, offset)
            for topic, partitions in positions.items()
            for partition, offset in partitions.items()
        ]
        wanted = [ConsumerGroupTopicPartitions(group, places)]
        return self._client.alter_consumer_group_offsets(wanted, request_timeout=timeout)[group]

    def _delete_group(self, group: str, timeout: float) -> Future[Any]:
        return self._client.delete_consumer_groups([group], request_timeout=timeout)[group]

    def readers(self) -> dict[str, dict[str, int]]:
        """By topic, the consumer groups that read it, and how many consumers each has there."""
        readers: dict[str, dict[str, int]] = {}
        for group in self.groups():
            described = self._finish(group, partial(self._describe_group, group))
            for member in described.members:
                for partition in member.assignment.topic_partitions:
                    by_group = readers.setdefault(partition.topic, {})
                    by_group[group] = by_group.get(group, 0) + 1
        return readers

    def members(self, group: str) -> int:
        """How many consumers a group has now."""
        return len(self._finish(group, partial(self._describe_group, group)).members)

    def _describe_group(self, name: str) -> Future[ConsumerGroupDescription]:
        found: Future[ConsumerGroupDescription] = self._client.describe_consumer_groups([name])[
            name
        ]
        return found

    def _offsets(self, name: str, spec: OffsetSpec) -> dict[int, int]:
        partitions = range(self.describe(name).partitions)
        request = {TopicPartition(name, partition): spec for partition in partitions}
        if not request:
            return {}
        return self._retried(name, lambda: self._list_offsets(request))

    def _list_offsets(self, request: dict[TopicPartition, OffsetSpec]) -> dict[int, int]:
        futures = self._client.list_offsets(
            request,
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
            request_timeout=self._connection.timeout,
        )
        return {
            partition.partition: self._answer(future).offset
            for partition, future in futures.items()
        }

    def _finish(self, name: str, call: Callable[[], Future[T]]) -> T:
        return self._retried(name, lambda: self._answer(call()))

    def _answer(self, future: Future[T]) -> T:
        return self._connection.answer(self._client, future)

    def _retried(self, name: str, call: Callable[[], T]) -> T:
        """The call's result; asks again while a leader is being elected or settles in."""
        deadline = time.monotonic() + self._connection.timeout
        with self._connection.reaching(name):
            while True:
                try:
                    return call()
                except KafkaException as failure:
                    retriable = failure.args[0].code() in RETRIABLE
                    if not retriable or time.monotonic() > deadline:
                        raise
                time.sleep(0.02)

    def _describe(self, name: str, timeout: float | None = None) -> TopicDescription:
        # Not by `list_topics(name)`: that has a broker which creates topics on sight create it.
        wanted = TopicCollection([name])
        seconds = self._connection.timeout if timeout is None else timeout
        found: TopicDescription = self._finish(
            name,
            lambda: self._client.describe_topics(wanted, request_timeout=seconds)[name],
        )
        return found

    def _await_leaders(self, name: str) -> None:
        """Waits until a new topic can be written and read; creation is acknowledged before."""
        deadline = time.monotonic() + self._connection.timeout
        while True:
            try:
                self.begin_offsets(name)
                return
            except UnknownTopicError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    def _await_end_of(self, name: str) -> None:
        """Waits until a deleted topic is no longer seen.

        Who makes one of the same name would take it for a topic that is there.
        """
        self._await(lambda: not self.exists(name))

    def _await(self, seen: Callable[[], bool]) -> None:
        """Waits until a change is seen: Kafka acknowledges it before its brokers know of it."""
        deadline = time.monotonic() + self._connection.timeout
        while not seen() and time.monotonic() < deadline:
            time.sleep(0.02)


def _new_topic(spec: TopicSpec) -> NewTopic:
    return NewTopic(
        spec.name,
        num_partitions=spec.partitions,
        replication_factor=spec.replicas,
        config=dict(spec.configs),
    )


def _replicas(metadata: TopicMetadata) -> tuple[int, ...]:
    return tuple(len(p.replicas) for _, p in sorted(metadata.partitions.items()))


@contextmanager
def _not_found_is_fine() -> Iterator[None]:
    """A group that is not there is as good as deleted."""
    try:
        yield
    except KafkaException as failure:
        if failure.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
            raise
