"""Whether two sides wrote the same: as streams, the same records; as tables, the same last ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from headrace.bench.ground import Ground
from headrace.bench.jobs import Job
from headrace.topics.records import RecordReader

Records = Iterable[tuple[bytes | None, bytes | None]]
# What a side wrote, in a form that does not depend on order: how often each record is there.
Written = Mapping[tuple[bytes | None, object], int]


def written(records: Records, table: bool, plain: Callable[[bytes], object]) -> Written:
    if not table:
        return Counter((key, None if v is None else plain(v)) for key, v in records)
    return {(key, plain(value)): 1 for key, value in _last(records)}


def fingerprint(records: Records, table: bool) -> tuple[int, int]:
    """The same for the same records in any order; little to keep, however many there are."""
    count = total = 0
    for record in _last(records) if table else records:
        count += 1
        total = (total + hash(record)) & (2**64 - 1)
    return count, total


def _last(records: Records) -> Iterator[tuple[bytes | None, bytes]]:
    """Of each key the last record, unless that deletes it."""
    for key, value in dict(records).items():
        if value is not None:
            yield key, value


def plain_json(value: bytes) -> object:
    """The same for every way to write the same JSON value; field order and spaces do not count."""
    return _frozen(json.loads(value))


def _frozen(value: object) -> object:
    match value:
        case dict():
            # A null field and an absent one are the same row.
            return frozenset((k, _frozen(v)) for k, v in value.items() if v is not None)
        case list():
            return tuple(map(_frozen, value))
    return value


def difference(ours: Written, theirs: Written) -> str | None:
    """None if they are the same; otherwise what is not."""
    if ours == theirs:
        return None
    missing = next((k for k in theirs if theirs[k] != ours.get(k, 0)), None)
    extra = next((k for k in ours if ours[k] != theirs.get(k, 0)), None)
    return (
        f"{sum(ours.values()):,} and {sum(theirs.values()):,} rows; "
        f"for example {_shown(extra)} here and {_shown(missing)} there"
    )


def _shown(row: tuple[bytes | None, object] | None) -> str:
    if row is None:
        return "nothing"
    key, value = row
    return f"{key!r}: {sorted(value) if isinstance(value, frozenset) else value}"


def compare(at: Ground, job: Job, ours: str, theirs: str) -> str | None:
    """None if two topics hold the same output of a job; otherwise what is not the same."""

    def records(topic: str) -> Records:
        return ((r.key, r.value) for r in RecordReader(at.kafka, at.admin).read(topic))

    table = job.makes == "TABLE"
    if fingerprint(records(ours), table) == fingerprint(records(theirs), table):
        return None
    # The bytes differ. Where they are JSON, the same may be written in another way.
    plain = bytes if "DELIMITED" in job.sources[0].properties else plain_json
    return difference(written(records(ours), table, plain), written(records(theirs), table, plain))
