"""Continuation tokens: where a push query goes on."""

import base64
import json

import pytest

from headrace.engine.queries.continuation import places_of, token
from headrace.model.errors import StatementError


class Topic:
    """A topic of three partitions, of which the first has lost its oldest records."""

    def begin_offsets(self, name):
        return {0: 5, 1: 0, 2: 0}

    def end_offsets(self, name):
        return {0: 9, 1: 4, 2: 2}


def test_a_token_is_one_of_ksqldb_with_the_topic_beside():
    told = json.loads(base64.b64decode(token("t", {0: 7, 2: 3})))
    assert told == {"s": None, "e": {"o": [7, 0, 3]}, "v": 0, "topic": "t"}


@pytest.mark.parametrize(
    ("read", "places"),
    [
        ({0: 7, 1: 3, 2: 1}, {0: 7, 1: 3, 2: 1}),
        ({0: 7, 1: 3}, {0: 7, 1: 3, 2: 0}),  # the third partition is new
        ({0: 2, 1: 3, 2: 1}, {0: 5, 1: 3, 2: 1}),  # records were deleted
        ({0: 7, 1: 90, 2: 1}, {0: 7, 1: 4, 2: 1}),  # the topic was made again
    ],
)
def test_it_goes_on_there(read, places):
    assert places_of(Topic(), "t", token("t", read)) == places


def test_a_token_of_another_topic_says_nothing():
    assert places_of(Topic(), "t", token("other", {0: 1})) is None


@pytest.mark.parametrize(
    "given", ["!", "bm8=", base64.b64encode(b'{"e":{"o":["x"]},"topic":"t"}').decode(), "e30="]
)
def test_what_is_no_token(given):
    with pytest.raises(StatementError, match="Couldn't decode push offset range token"):
        places_of(Topic(), "t", given)
