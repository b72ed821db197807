"""How far queries are behind the ends of their topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from py4j.protocol import Py4JError

from headrace.engine.environment import Environment
from headrace.engine.queries.persistent import PersistentQuery
from headrace.kafka.admin import Positions
from headrace.model.errors import HeadraceError, UnavailableError
from headrace.plan import nodes as n
from headrace.spark.runtime.progress import reached_by


class Lag(NamedTuple):
    """The records of a partition: from where to where there are some, and which is read next."""

    begin: int
    end: int
    position: int

    @property
    def records(self) -> int:
        return max(0, self.end - self.position)


@dataclass(frozen=True)
class QueryLags:
    """`here`: queries run on this server, which knows better than Kafka how far they are."""

    _env: Environment
    _here: bool

    def of(self, query: PersistentQuery) -> dict[str, dict[int, Lag]]:
        """By topic and partition; without topics that are gone, and empty if Kafka is silent."""
        lags = {}
        try:
            for topic, positions in self._positions(query).items():
                found = self._of_topic(topic, positions)
                if found:
                    lags[topic] = found
        except UnavailableError:
            return {}
        return lags

    def _positions(self, query: PersistentQuery) -> Positions:
        if self._here and query.positions:
            return {**query.positions, **_just_reached(query)}
        try:
            group = self._env.query_group(query.id)
            return self._env.admin.group_positions(group, _topics(self._env, query))
        except UnavailableError:
            raise
        except HeadraceError:  # it may not be shown to us
            return {}

    def _of_topic(self, topic: str, positions: Mapping[int, int]) -> dict[int, Lag]:
        admin = self._env.admin
        try:
            begins, ends = admin.begin_offsets(topic), admin.end_offsets(topic)
        except UnavailableError:
            raise
        except HeadraceError:  # the topic is gone
            return {}
        return {
            partition: Lag(begin, ends[partition], positions.get(partition, 0))
            for partition, begin in begins.items()
            if partition in ends
        }


def _topics(env: Environment, query: PersistentQuery) -> list[str] | None:
    """The topics that it reads, as far as that is known."""
    if query.planned is None:
        return None
    return [env.in_kafka(source.topic) for source in n.sources(query.planned.node)]


def _just_reached(query: PersistentQuery) -> Positions:
    running = query.streaming
    try:
        return {} if running is None else reached_by(running)
    except Py4JError:  # Spark is going, or gone
        return {}
