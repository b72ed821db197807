"""LIKE with many `%`: the same answers as by definition, in no time."""

from __future__ import annotations

import re
import time
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.lower.like import like_regex


def by_definition(pattern: str, text: str, escape: str | None) -> bool:
    @cache
    def fits(p: int, t: int) -> bool:
        if p == len(pattern):
            return t == len(text)
        if pattern[p] == escape:
            return t < len(text) and text[t] == pattern[p + 1] and fits(p + 2, t + 1)
        if pattern[p] == "%":
            return fits(p + 1, t) or (t < len(text) and fits(p, t + 1))
        one = t < len(text) and pattern[p] in ("_", text[t])
        return one and fits(p + 1, t + 1)

    return fits(0, 0)


def in_python(regex: str) -> re.Pattern[str]:
    """Java's end of a text has another name in Python."""
    return re.compile(regex.replace("\\z", "\\Z"))


@given(
    st.lists(st.sampled_from(["%", "%", "_", "a", "b", ".", "\n", "\\%", "\\_"]), max_size=9),
    st.text("ab.%\n_", max_size=12),
)
def test_as_by_definition(pieces, text):
    pattern = "".join(pieces)
    regex = like_regex(pattern, "\\")
    if regex is not None:
        assert (in_python(regex).search(text) is not None) == by_definition(pattern, text, "\\")


@pytest.mark.parametrize(
    ("pattern", "escape"), [("a%b", None), ("abc", None), ("%a", None), ("%x%a\\", "\\")]
)
def test_the_rest_is_sparks(pattern, escape):
    assert like_regex(pattern, escape) is None


def test_many_wildcards_take_no_time():
    regex = like_regex("%a" * 20 + "%b%" + "_" * 5, None)
    assert regex is not None
    started = time.thread_time()
    assert in_python(regex).search("a" * 5000) is None
    assert in_python(regex).search("a" * 5000 + "b12345") is not None
    assert time.thread_time() - started < 1
