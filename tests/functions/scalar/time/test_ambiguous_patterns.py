"""Formats of dates that could be read in too many ways are refused, and take no time."""

import time

import pytest

from headrace.functions.scalar.time.parsing import parse, parser, simple_parser

DIGITS = "1" * 60 + "x"


@pytest.mark.parametrize(
    "pattern",
    [
        "dMHmsdMHms",
        "[d][M][H][m]x",
        "dMMdMMdMMdMM",
        "D'1'd'1'D'1'd",
        "z[v][z][v]",
        "VV-VV-VV-VV",
        "nANn",
    ],
)
def test_ambiguous_formats_are_refused(pattern):
    with pytest.raises(ValueError, match="more than 3 fields of any length in a row"):
        parser(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("d-M-y H:m:s", "1-2-2024 3:4:5"),
        ("d/M/yyyy'T'H:m:s.SSSXXX", "1/2/2024T3:4:5.678+01:00"),
        ("yyyyMMddHHmmssSSS", "20240229010203456"),
        ("yyyy-MM-dd['T'HH:mm[:ss]][ VV]", "2024-02-29T01:02 Europe/Berlin"),
        ("EEE, d MMM yyyy HH:mm:ss z", "Thu, 1 Feb 2024 01:02:03 GMT"),
    ],
)
def test_others_are_not(pattern, text):
    assert parse(pattern, text).day is not None


@pytest.mark.parametrize("pattern", ["ddMM" * 20 + "'x'", "yMd" * 20 + "'x'", "d d d " * 20 + "x"])
def test_the_older_formats_never_go_back(pattern):
    """As in Java, where a field takes what it can get."""
    pattern = pattern.replace("x'", "!'").replace(" x", " '!'")
    started = time.thread_time()
    simple_parser(pattern).regex.match(DIGITS)
    simple_parser(pattern).regex.match("1 " * 100)
    assert time.thread_time() - started < 0.5
