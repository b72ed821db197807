"""Where a new query begins in a topic, and what is refused."""

from __future__ import annotations

from typing import cast

import pytest

from headrace.engine.queries.starting_offsets import offsets_of
from headrace.kafka.admin import TopicAdmin
from headrace.model.errors import StatementError
from headrace.plan.sources.start_from import Edge, Place


class _Topics:
    """A topic of two partitions whose first records are gone."""

    def begin_offsets(self, name: str) -> dict[int, int]:
        return {0: 10, 1: 0}

    def end_offsets(self, name: str) -> dict[int, int]:
        return {0: 20, 1: 5}

    def offsets_at(self, name: str, time_ms: int) -> dict[int, int]:
        return {0: 12, 1: time_ms}


def _offsets(place: Place | None, reset: Edge = Edge.LATEST) -> dict[int, int]:
    return offsets_of(cast("TopicAdmin", _Topics()), "orders", place, reset)


def test_ends_times_and_offsets():
    assert _offsets(None) == {0: 20, 1: 5}
    assert _offsets(Edge.EARLIEST) == {0: 10, 1: 0}
    assert _offsets(3) == {0: 12, 1: 3}
    assert _offsets({0: 11, 1: 5}) == {0: 11, 1: 5}


def test_partitions_that_are_not_named_begin_as_the_setting_says():
    assert _offsets({1: 2}) == {0: 20, 1: 2}
    assert _offsets({1: 2}, Edge.EARLIEST) == {0: 10, 1: 2}


@pytest.mark.parametrize("offset", [9, 21])
def test_offsets_beyond_what_the_topic_has(offset: int):
    with pytest.raises(StatementError, match="which has offsets 10 to 20 now"):
        _offsets({0: offset})


def test_partitions_that_the_topic_does_not_have():
    with pytest.raises(StatementError, match="partition 2 of topic 'orders', which has 2 part"):
        _offsets({2: 0})
