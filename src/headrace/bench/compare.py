"""Compares the outputs of two sides: a stream's records, a table's last record of each key."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from headrace.bench.bench_server import BenchServer
from headrace.bench.jobs import Job
from headrace.kafka.records import RecordReader

Records = Iterable[tuple[bytes | None, bytes | None]]
# What a side wrote, in a form that does not depend on order: how often each record is there.
Written = Mapping[tuple[bytes | None, object], int]


def written(records: Records, table: bool, parse: Callable[[bytes], object]) -> Written:
    if not table:
        return Counter((key, None if v is None else parse(v)) for key, v in records)
    return {(key, parse(value)): 1 for key, value in _last(records)}


def fingerprint(records: Records, table: bool) -> tuple[int, int]:
    """A hash of records that does not depend on their order and takes little memory."""
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


def comparable_json(value: bytes) -> object:
    """A JSON value in a form that does not depend on field order and white space."""
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
    """Describes how two outputs differ; None if they are the same."""
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


def compare(at: BenchServer, job: Job, ours: str, theirs: str) -> str | None:
    """Describes how the outputs of a job in two topics differ; None if they are the same."""

    def records(topic: str) -> Records:
        return ((r.key, r.value) for r in RecordReader(at.kafka, at.admin).read(topic))

    table = job.makes == "TABLE"
    if fingerprint(records(ours), table) == fingerprint(records(theirs), table):
        return None
    # The bytes differ. Where they are JSON, the same may be written in another way.
    parse = bytes if "DELIMITED" in job.sources[0].properties else comparable_json
    return difference(written(records(ours), table, parse), written(records(theirs), table, parse))
