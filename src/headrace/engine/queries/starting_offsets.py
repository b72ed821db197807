"""The offsets where a new query begins, fixed when it is made so that no later record is missed."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.engine.environment import Environment
from headrace.kafka.admin import TopicAdmin
from headrace.model.errors import StatementError
from headrace.model.settings import Settings
from headrace.plan import nodes as n
from headrace.plan.sources.start_from import Edge, Place, StartFrom

Offsets = dict[int, int]


def starting_offsets(
    env: Environment, node: n.Node, settings: Settings, start_from: StartFrom | None = None
) -> dict[str, Offsets]:
    """By topic and partition: where the statement says, else where `auto.offset.reset` does.

    Tables are read from their beginning whatever `auto.offset.reset` says only if it is earliest;
    ksqlDB treats both alike.
    """
    reset = Edge(settings.text("auto.offset.reset"))
    said = start_from or StartFrom()
    return {
        source.topic: offsets_of(env.admin, source.topic, said.of(source.topic), reset)
        for source in n.sources(node)
    }


def offsets_of(admin: TopicAdmin, topic: str, place: Place | None, reset: Edge) -> Offsets:
    """The offsets of a place in a topic; partitions that it does not name begin as `reset` says."""
    if isinstance(place, Mapping):
        begins, ends = admin.begin_offsets(topic), admin.end_offsets(topic)
        for partition, offset in sorted(place.items()):
            _check(topic, partition, offset, begins, ends)
        return {**(begins if reset is Edge.EARLIEST else ends), **place}
    if isinstance(place, int):
        return admin.offsets_at(topic, place)
    at = place or reset
    return admin.begin_offsets(topic) if at is Edge.EARLIEST else admin.end_offsets(topic)


def _check(topic: str, partition: int, offset: int, begins: Offsets, ends: Offsets) -> None:
    if partition not in begins:
        raise StatementError(
            f"START_FROM names partition {partition} of topic '{topic}', which has "
            f"{len(begins)} partitions, from 0."
        )
    if not begins[partition] <= offset <= ends[partition]:
        raise StatementError(
            f"START_FROM names offset {offset} of partition {partition} of topic '{topic}', which "
            f"has offsets {begins[partition]} to {ends[partition]} now. Name one of these, or "
            "'earliest'."
        )
