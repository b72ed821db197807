"""Where an imported query begins: on from ksqlDB's consumer group, or from the beginning.

What a query remembers is in Kafka Streams' state stores, which cannot be taken over: it is rebuilt
from its topics. A query without state goes on where ksqlDB had got to. A join of a stream with a
table does both: the table is read from its beginning, the stream from where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from headrace.kafka.admin import TopicAdmin
from headrace.model.sources import SourceKind
from headrace.plan import nodes as n
from headrace.plan.sources.start_from import Edge, Place

Committed = Mapping[str, Mapping[int, int]]


class Start(Enum):
    """Where imported queries begin."""

    COMMITTED = "committed"
    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True)
class Beginning:
    """Where a query begins, by topic, and what differs from ksqlDB's by that."""

    places: Mapping[str, Place]
    notes: tuple[str, ...] = ()


def rebuilt_topics(node: n.Node) -> dict[str, bool]:
    """The topics that a query reads, and whether its state is built from them."""
    topics: dict[str, bool] = {}
    for read, rebuilt in _reads(node, rebuilt=False):
        topics[read.topic] = topics.get(read.topic, False) or rebuilt
    return topics


def _reads(node: n.Node, *, rebuilt: bool) -> Iterator[tuple[n.ReadSource, bool]]:
    if isinstance(node, n.ReadSource):
        yield node, rebuilt
    for below, makes_state in zip(n.inputs(node), node.state_from(), strict=True):
        yield from _reads(below, rebuilt=rebuilt or makes_state)


@dataclass(frozen=True)
class Offsets:
    """ksqlDB's offsets: what its consumer groups have committed. `fresh` are topics that the import
    itself makes, in which nobody has an offset."""

    admin: TopicAdmin
    committed: Callable[[str], Committed]
    fresh: Collection[str] = ()

    def beginning(self, node: n.Write, group: str | None, reset: str, at: int | None) -> Beginning:
        """Where the query begins that ksqlDB ran in this consumer group; `reset` is its setting
        `auto.offset.reset`, `at` when it was made."""
        committed = self.committed(group) if group is not None else {}
        places: dict[str, Place] = {}
        notes: list[str] = []
        topics = rebuilt_topics(node)
        for topic, rebuilt in topics.items():
            if topic in self.fresh:
                places[topic] = Edge.EARLIEST
            elif rebuilt:
                places[topic] = self._from_the_beginning(topic, reset, at, notes)
            elif topic in committed:
                places[topic] = self._on(topic, committed[topic], notes)
            else:
                notes.append(
                    f"ksqlDB's consumer group {group} has no offsets for topic '{topic}' (any "
                    f"more): the query begins at its {_EDGES[reset]}, as auto.offset.reset says."
                )
        if any(topics[topic] and topic not in self.fresh for topic in topics):
            notes.append(_written_again(node))
        return Beginning(places, tuple(notes))

    def _from_the_beginning(
        self, topic: str, reset: str, at: int | None, notes: list[str]
    ) -> Place:
        if reset == "latest" and at is not None:
            notes.append(f"Its state is built anew from topic '{topic}', from when it was made on.")
            return at
        notes.append(f"Its state is built anew from the beginning of topic '{topic}'.")
        if reset == "latest":
            notes.append(
                "In ksqlDB it began with what came after it was made (auto.offset.reset was "
                "latest). When that was is only in the command topic: import from there "
                "(--command-topic) to begin there again."
            )
        return Edge.EARLIEST

    def _on(self, topic: str, committed: Mapping[int, int], notes: list[str]) -> Place:
        """The committed offsets, as far as the records are still there."""
        begins, ends = self.admin.begin_offsets(topic), self.admin.end_offsets(topic)
        places = {p: o for p, o in committed.items() if p in begins}
        for partition, offset in sorted(places.items()):
            places[partition] = min(max(offset, begins[partition]), ends[partition])
            if places[partition] != offset:
                notes.append(
                    f"ksqlDB had read partition {partition} of topic '{topic}' up to offset "
                    f"{offset}, and it has {begins[partition]} to {ends[partition]} now: the query "
                    f"goes on at {places[partition]}."
                )
        return places


_EDGES = {"earliest": "beginning", "latest": "end"}


def _written_again(node: n.Write) -> str:
    if node.kind is SourceKind.TABLE:
        return (
            f"While its state is built, the changes of its rows are written to topic "
            f"'{node.topic}' again; it ends with the same rows."
        )
    if any(
        rebuilt and read.kind is SourceKind.STREAM for read, rebuilt in _reads(node, rebuilt=False)
    ):
        return (
            f"What ksqlDB has written to topic '{node.topic}' is written once more while the state "
            "is built: whoever reads it sees it twice."
        )
    return "Records that come before the table is read are joined with what is there of it by then."
