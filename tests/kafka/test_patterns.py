"""Topics by pattern: what is found, and that no pattern takes for ever."""

import time

import pytest

from headrace.kafka.topic_patterns import matching
from headrace.model.errors import HeadraceError

NAMES = ["TOTALS", "TOTALS2", "sales", "a" * 40 + "!"]


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        ([], set()),
        (["TOT.*", "sales"], {"TOTALS", "TOTALS2", "sales"}),
        (["tot.*"], set()),
        (["TOTALS"], {"TOTALS"}),
    ],
)
def test_matching(patterns, found):
    assert matching(patterns, NAMES) == found


def test_what_is_no_pattern():
    with pytest.raises(HeadraceError, match=r"Invalid pattern: \("):
        matching(["x", "("], NAMES)
    with pytest.raises(HeadraceError, match="At most"):
        matching(["x" * 2000], NAMES)


def test_a_pattern_that_takes_for_ever():
    started = time.monotonic()
    with pytest.raises(HeadraceError, match="name the topics instead"):
        matching(["(a+)+$"], NAMES, seconds=1)
    assert time.monotonic() - started < 20
