"""Continuation tokens of push queries: where a client that comes back goes on reading.

To clients they are opaque. They have the form of ksqlDB's tokens, and the topic beside: a client
sends the last one it saw along with whatever it asks next, which may be another topic.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from headrace.kafka.admin import TopicAdmin
from headrace.model.errors import StatementError


def token(topic: str, places: Mapping[int, int]) -> str:
    """The token of having read each partition up to its place."""
    offsets = [places.get(p, 0) for p in range(max(places, default=-1) + 1)]
    told = {"s": None, "e": {"o": offsets}, "v": 0, "topic": topic}
    return base64.b64encode(json.dumps(told, separators=(",", ":")).encode()).decode()


def places_of(admin: TopicAdmin, topic: str, given: str) -> dict[int, int] | None:
    """Where a token says to go on; None if it is about another topic. What is not there any more
    is skipped, and partitions that came later are read from their beginning."""
    try:
        told = json.loads(base64.b64decode(given, validate=True))
        offsets = [int(offset) for offset in told["e"]["o"]]
        about = told["topic"]
    except (ValueError, KeyError, TypeError):
        raise StatementError("Couldn't decode push offset range token") from None
    if about != topic:
        return None
    begins, ends = admin.begin_offsets(topic), admin.end_offsets(topic)
    return {
        p: min(max(offsets[p], begin), ends[p]) if p < len(offsets) else begin
        for p, begin in begins.items()
    }
