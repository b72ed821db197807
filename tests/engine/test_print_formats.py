"""PRINT guesses how keys and values are written."""

from __future__ import annotations

import struct

from headrace.engine.printing import Guesses, _guesses, _key_guesses

NONE_YET = ["¯\\_(ツ)_/¯ - no data processed"]


def values() -> Guesses:
    return Guesses(_guesses(None))


def keys() -> Guesses:
    return Guesses(_key_guesses(None))


def test_nothing_is_known_before_the_first_record():
    guesses = values()
    assert guesses.text(None) == "<null>"
    assert guesses.names == NONE_YET


def test_json_is_also_a_text():
    guesses = values()
    assert guesses.text(b'{"a": 12}') == '{"a": 12}'
    assert guesses.names == ["JSON", "KAFKA_STRING"]
    assert guesses.text(b"hello there") == "hello there"
    assert guesses.names == ["KAFKA_STRING"]


def test_numbers_by_their_length():
    guesses = values()
    assert guesses.text(struct.pack(">i", 7)) == "7"
    assert guesses.names == ["KAFKA_INT", "KAFKA_STRING"]
    assert guesses.text(struct.pack(">i", -1)) == "-1"
    assert guesses.names == ["KAFKA_INT"]
    wide = values()
    assert wide.text(struct.pack(">q", -5)) == "-5"
    assert wide.names == ["KAFKA_BIGINT", "KAFKA_DOUBLE"]


def test_keys_of_windows():
    guesses = keys()
    assert guesses.text(b"ab" + struct.pack(">q", 10_000)) == "[ab@10000/-]"
    assert guesses.names[:2] == ["HOPPING(KAFKA_STRING)", "TUMBLING(KAFKA_STRING)"]


def test_keys_of_sessions():
    guesses = keys()
    session = b"x" + struct.pack(">qq", 2**40, 2**39)
    assert guesses.text(session) == f"[x@{2**39}/{2**40}]"
    assert "SESSION(KAFKA_STRING)" in guesses.names


def test_what_nobody_can_read():
    guesses = values()
    assert guesses.text(b"\xff\xfe\x00") == "\\xFF\\xFE\\x00"
    assert guesses.names == []
