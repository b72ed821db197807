"""Compares a topic's records with those that a case expects."""

from __future__ import annotations

from headrace.formats.base import CodecError
from headrace.formats.json import text as jackson
from headrace.kafka.records import Record
from headrace.testing.cases import CaseRecord, Json, Window
from headrace.testing.comparing import same, same_time
from headrace.testing.outcomes import CaseFailure
from headrace.testing.topic_codecs import TopicCodecs


def check_records(
    codecs: TopicCodecs, topic: str, expected: list[CaseRecord], records: list[Record]
) -> None:
    try:
        actual = [codecs.decoded(record, topic) for record in records]
    except (CodecError, ValueError) as e:
        raise CaseFailure(f"topic {topic} holds what cannot be read", "", str(e)) from e
    right = len(expected) == len(actual) and all(
        _is_expected(e, a) for e, a in zip(expected, actual, strict=True)
    )
    if not right:
        times = any(record.timestamp is not None for record in expected)
        raise CaseFailure(
            f"topic {topic} holds other records", _shown(expected, times), _shown(actual, times)
        )


def _is_expected(expected: CaseRecord, actual: CaseRecord) -> bool:
    if expected.timestamp is not None and not same_time(expected.timestamp, actual.timestamp):
        return False
    return (
        _same_window(expected.window, actual.window)
        and same(expected.key, actual.key, any_case=True)
        and same(expected.value, actual.value, any_case=True)
    )


def _same_window(expected: Window | None, actual: Window | None) -> bool:
    if expected is None:
        return True
    if actual is None or expected.session != actual.session:
        return False
    if not expected.session:
        return expected.start == actual.start
    return same_time(expected.start, actual.start) and (
        expected.end is None or same_time(expected.end, actual.end)
    )


def _shown(records: list[CaseRecord], times: bool) -> str:
    return "\n".join(_line(record, times) for record in records) or "nothing"


def _line(record: CaseRecord, times: bool) -> str:
    window = record.window
    parts = [
        f"@{record.timestamp}" if times else "",
        f"[{window.start}..{'' if window.end is None else window.end}]" if window else "",
        f"{_text(record.key)}: {_text(record.value)}",
    ]
    return " ".join(part for part in parts if part)


def _text(value: Json) -> str:
    return jackson.dump(value)
