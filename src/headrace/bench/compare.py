"""Whether two sides wrote the same: as streams, the same records; as tables, the same last ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from headrace.bench.ground import Ground
from headrace.bench.jobs import Job
from headrace.topics.records import RecordReader

Records = Iterable[tuple[bytes | None, bytes | None]]
# What a side wrote, in a form that does not depend on order: how often each record is there.
Written = Mapping[tuple[bytes | None, object], int]


def written(records: Records, table: bool, plain: Callable[[bytes], object]) -> Written:
    if not table:
        return Counter((key, None if v is None else plain(v)) for key, v in records)
    last: dict[bytes | None, bytes | None] = dict(records)
    return {(key, plain(value)): 1 for key, value in last.items() if value is not None}


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


def read(at: Ground, job: Job, topic: str) -> Written:
    records = RecordReader(at.kafka, at.admin).read(topic)
    json_ = "DELIMITED" not in job.with_ and "DELIMITED" not in job.sources[0].properties
    return written(
        ((r.key, r.value) for r in records),
        job.makes == "TABLE",
        plain_json if json_ else bytes,
    )
