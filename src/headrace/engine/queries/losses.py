"""Detects records that were deleted before a query read them, and topics that were made again.

Spark reads strictly: a micro-batch whose records are not all there fails. So losses are found
where a query starts: what its checkpoint has read is compared with what its topics still have, and
with which topics they were. Nothing is lost in silence, and nothing is told that was read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from pyspark.sql import SparkSession

from headrace.engine.environment import Environment
from headrace.kafka.admin import TopicAdmin
from headrace.model.errors import HeadraceError
from headrace.spark.rows.processing_log import loss_entry
from headrace.spark.runtime.checkpoint import TOPICS, forget, positions
from headrace.spark.runtime.files import CheckpointFiles
from headrace.spark.runtime.offset_log import OffsetLog, Places

# A topic that ends before where a query has got to may only have a new leader, who does not know
# yet how far it was acknowledged.
PATIENCE_SECONDS = 10.0
KEPT_LOSSES = 10
# How Spark's failures begin that say so.
_SPARKS_WORD = "KAFKA_DATA_LOSS"


class DataLossError(HeadraceError):
    """An exactly-once query does not continue, because records it had not read were deleted."""


@dataclass(frozen=True)
class Loss:
    """Records that a query never read: `first` to `last`, whose number is not known if the topic
    itself is gone; `first` is where the query stood then. `at` is when it was found, in
    milliseconds."""

    topic: str
    partition: int
    first: int
    last: int | None
    at: int = 0

    @property
    def records(self) -> int:
        """The number of lost records; negative if the partition went back."""
        return 0 if self.last is None else self.last - self.first + 1

    def __str__(self) -> str:
        place = f"partition {self.partition} of topic '{self.topic}'"
        if self.last is None:
            return (
                f"Topic '{self.topic}' was deleted and made again. What the old one had and was "
                f"not read by then is lost: the query stood at offset {self.first} of partition "
                f"{self.partition}. The new one is read from its beginning."
            )
        if self.records < 0:
            return (
                f"Records of {place} that were read are gone: it ends at offset {self.last + 1}, "
                f"before {self.first}, and is read on from there."
            )
        return (
            f"{self.records} records of {place} were deleted before they were read: offsets "
            f"{self.first} to {self.last}."
        )


@dataclass(frozen=True)
class Seen:
    """A topic as it was when a query started or was last checked."""

    id: str
    partitions: int
    cluster: str = ""  # the id of its Kafka: old ones have no ids for topics


@dataclass(frozen=True)
class Memory:
    """What a checkpoint knows of its topics, and what its query has lost. `life` is the id of the
    command log that the query is of."""

    cluster: str = ""
    life: str = ""
    topics: Mapping[str, str] = field(default_factory=dict)
    lost_records: int = 0
    losses: tuple[Loss, ...] = ()

    @staticmethod
    def read(spark: SparkSession, checkpoint: str) -> Memory:
        data = CheckpointFiles(spark, checkpoint).read(TOPICS)
        try:
            told = json.loads(data or b"{}")
        except ValueError:  # it is damaged: the topics count as what they are now
            told = {}
        return Memory(
            told.get("cluster", ""),
            told.get("life", ""),
            told.get("topics", {}),
            told.get("lostRecords", 0),
            tuple(Loss(**loss) for loss in told.get("losses", ())),
        )

    def write(self, spark: SparkSession, checkpoint: str) -> None:
        told = {
            "cluster": self.cluster,
            "life": self.life,
            "topics": dict(self.topics),
            "lostRecords": self.lost_records,
            "losses": [asdict(loss) for loss in self.losses],
        }
        CheckpointFiles(spark, checkpoint).write(TOPICS, json.dumps(told).encode())

    def is_of_another(self, topic: str, seen: Mapping[str, Seen]) -> bool:
        """Whether the topic was made again since."""
        now = seen[topic]
        elsewhere = self.cluster not in ("", now.cluster)
        return topic in self.topics and (elsewhere or self.topics[topic] != now.id)

    def with_losses(self, losses: Sequence[Loss]) -> Memory:
        return replace(
            self,
            lost_records=self.lost_records + sum(max(0, loss.records) for loss in losses),
            losses=(*self.losses, *losses)[-KEPT_LOSSES:],
        )


@dataclass(frozen=True)
class Reading:
    """What a query may read now: its topics as they are, and where a new query begins."""

    starts: Places
    seen: Mapping[str, Seen]
    memory: Memory


@dataclass(frozen=True)
class Reader:
    """A query as a reader of topics. `life` is the id of the command log. `starts` are where it
    was to begin when it was made; both these and `topics` have Kafka's names."""

    query_id: str
    checkpoint: str
    topics: Sequence[str]
    starts: Places
    exactly_once: bool
    life: str = ""

    def settle(
        self, env: Environment, accept: bool, announce: Callable[[Sequence[str]], None]
    ) -> Reading:
        """Corrects the checkpoint if its topics have lost records that it wants to read next. An
        exactly-once query fails instead, unless the loss is accepted. `announce` logs entries."""
        spark, admin = env.spark, env.admin
        seen = seen_now(env, self.topics)
        starts = {**self.starts, **positions(spark, self.checkpoint)}
        memory = Memory.read(spark, self.checkpoint)
        if self._is_of_another_life(memory, seen):
            forget(spark, self.checkpoint)
            memory, starts = Memory(), dict(self.starts)
        log = OffsetLog(spark, self.checkpoint)
        # Of a log that is damaged nothing is said before it is mended.
        at = starts if log.finished is None else log.reached() or {}
        found = [
            self._compare(admin, topic, at.get(topic), memory.is_of_another(topic, seen))
            for topic in seen
        ]
        to = {topic: places for topic, (places, _) in zip(seen, found, strict=True)}
        losses = [loss for _, lost in found for loss in lost]
        if losses:
            if self.exactly_once and not accept:
                raise DataLossError(self._refusal(losses))
            announce([self._entry(loss) for loss in losses])
            log.move(
                to,
                [topic for topic in seen if memory.is_of_another(topic, seen)],
                [(loss.topic, loss.partition) for loss in losses if loss.records < 0],
            )
        ids = {topic: was.id for topic, was in seen.items()}
        now = replace(memory, cluster=env.cluster_id, life=self.life, topics=ids)
        now = now.with_losses(losses)
        if now != memory:
            now.write(spark, self.checkpoint)
        return Reading(to, seen, now)

    def _is_of_another_life(self, memory: Memory, seen: Mapping[str, Seen]) -> bool:
        """Whether another query of this name left the checkpoint, in a Kafka wiped since."""
        return memory.life not in ("", self.life) and all(
            memory.is_of_another(topic, seen) for topic in seen
        )

    def _compare(
        self, admin: TopicAdmin, topic: str, at: Mapping[int, int] | None, anew: bool
    ) -> tuple[dict[int, int], list[Loss]]:
        """From where on a topic is read, and what was lost there. A query that was not told where
        to begin reads what there is."""
        now = int(time.time() * 1000)
        begins = admin.begin_offsets(topic)
        if at is None:
            return begins, []
        if anew:
            return begins, [Loss(topic, p, offset, None, now) for p, offset in sorted(at.items())]
        ends = _ends(admin, topic, at)
        places, losses = {}, []
        for partition, begin in sorted(begins.items()):
            # A partition that is not known yet is new, and read from its beginning.
            here = at.get(partition, 0)
            places[partition] = min(max(here, begin), ends[partition])
            if here < begin:
                losses.append(Loss(topic, partition, here, begin - 1, now))
            elif here > ends[partition]:
                losses.append(Loss(topic, partition, here, ends[partition] - 1, now))
        return places, losses

    def _entry(self, loss: Loss) -> str:
        return loss_entry(
            self.query_id, loss.topic, str(loss), loss.partition, loss.first, loss.last
        )

    def _refusal(self, losses: Sequence[Loss]) -> str:
        return (
            " ".join(str(loss) for loss in losses)
            + " A query that processes exactly once does not go on without them by itself: "
            f"RESUME {self.query_id}; goes on with what is there, TERMINATE {self.query_id}; ends "
            "it."
        )


def seen_now(env: Environment, topics: Sequence[str]) -> dict[str, Seen]:
    """The topics as they are now; raises if one of them does not exist."""
    wanted = list(dict.fromkeys(topics))
    found = env.admin.identify(wanted)
    for topic in wanted:
        if topic not in found:
            raise HeadraceError(f"Topic '{topic}' does not exist in Kafka.")
    return {
        topic: Seen(id_, told.partitions, env.cluster_id) for topic, (id_, told) in found.items()
    }


def _ends(admin: TopicAdmin, topic: str, at: Mapping[int, int]) -> dict[int, int]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        ends = admin.end_offsets(topic)
        short = any(at.get(p, 0) > end for p, end in ends.items())
        if not short or time.monotonic() > deadline:
            return ends
        time.sleep(0.2)


def is_data_loss(failure: BaseException) -> bool:
    """Whether a query failed because Spark missed records."""
    return _SPARKS_WORD in str(failure)
