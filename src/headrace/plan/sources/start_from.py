"""START_FROM: where a new query begins to read, for all its topics or topic by topic."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum

from headrace.model.errors import StatementError


class Edge(Enum):
    """An end of a topic."""

    EARLIEST = "earliest"
    LATEST = "latest"


# An end of the topic, a time in milliseconds, or offsets by partition.
Place = Edge | int | Mapping[int, int]


@dataclass(frozen=True)
class StartFrom:
    """Where to begin: `everywhere`, or in the topics that are named. Other topics begin as
    `auto.offset.reset` says."""

    everywhere: Place | None = None
    topics: Mapping[str, Place] = field(default_factory=dict)

    def of(self, topic: str) -> Place | None:
        return self.topics.get(topic, self.everywhere)

    def check(self, read: Collection[str]) -> None:
        """Raises unless it fits a query that reads these topics."""
        listed = ", ".join(f"'{topic}'" for topic in read)
        for topic in self.topics:
            if topic not in read:
                raise StatementError(
                    f"START_FROM names topic '{topic}', which the query does not read: it reads "
                    f"{listed}."
                )
        if isinstance(self.everywhere, Mapping) and len(read) > 1:
            raise StatementError(
                f"START_FROM gives offsets by partition, and the query reads {len(read)} topics: "
                f'{listed}. Name the topic: \'{{"TOPIC": {{"0": 10}}}}\'.'
            )


def parse_start_from(text: str) -> StartFrom:
    """Raises ValueError, with the reason, for anything else."""
    if not text.lstrip().startswith("{"):
        return StartFrom(_place(text))
    try:
        told = json.loads(text)
    except ValueError as e:
        raise ValueError(f"'{text}' is not JSON: {e}") from None
    if not told:
        raise ValueError("it names neither a partition nor a topic")
    if all(name.isdecimal() for name in told) and not any(
        isinstance(place, Mapping | str) for place in told.values()
    ):
        return StartFrom(_offsets(told))
    return StartFrom(
        topics={
            topic: _offsets(place) if isinstance(place, Mapping) else _place(place)
            for topic, place in told.items()
        }
    )


def start_from_text(topics: Mapping[str, Place]) -> str:
    """START_FROM as a statement has it."""
    return json.dumps({topic: _place_json(place) for topic, place in topics.items()})


def _place_json(place: Place) -> object:
    if isinstance(place, Edge):
        return place.value
    if isinstance(place, int):
        return datetime.fromtimestamp(place / 1000, UTC).isoformat(timespec="milliseconds")
    return {str(partition): offset for partition, offset in sorted(place.items())}


def _place(text: object) -> Place:
    if isinstance(text, str):
        if text.strip().lower() in (edge.value for edge in Edge):
            return Edge(text.strip().lower())
        try:
            time = datetime.fromisoformat(text.strip())
        except ValueError:
            pass
        else:
            aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
            return round(aware.timestamp() * 1000)
    raise ValueError(
        f"'{text}' is neither 'earliest', 'latest', a time such as '2026-11-17T08:00:00Z', nor "
        'offsets by partition such as \'{"0": 10, "1": 0}\''
    )


def _offsets(told: Mapping[str, object]) -> Mapping[int, int]:
    for partition, offset in told.items():
        if not partition.isdecimal():
            raise ValueError(f"'{partition}' is not a partition")
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
            raise ValueError(f"'{offset}' is not an offset of partition {partition}")
    return {int(partition): int(str(offset)) for partition, offset in told.items()}
