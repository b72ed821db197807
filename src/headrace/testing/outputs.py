"""Whether a topic holds the records that a case expects."""

from __future__ import annotations

from headrace.formats import jackson
from headrace.formats.base import CodecError
from headrace.testing.cases import CaseRecord, Json, Window
from headrace.testing.comparing import same
from headrace.testing.outcomes import CaseFailure
from headrace.testing.wires import Wires
from headrace.topics.records import Record


def check_records(
    wires: Wires, topic: str, expected: list[CaseRecord], records: list[Record]
) -> None:
    try:
        actual = [wires.decoded(record, topic) for record in records]
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
    if expected.timestamp is not None and expected.timestamp != actual.timestamp:
        return False
    return (
        _same_window(expected.window, actual.window)
        and same(expected.key, actual.key, any_case=True)
        and same(expected.value, actual.value, any_case=True)
    )


def _same_window(expected: Window | None, actual: Window | None) -> bool:
    if expected is None:
        return True
    if actual is None or (expected.start, expected.session) != (actual.start, actual.session):
        return False
    return not expected.session or expected.end is None or expected.end == actual.end


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
