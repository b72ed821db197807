"""Where a query's checkpoint says that it has got to in its topics, and how that is set right.

Spark writes to `offsets/N` up to where micro-batch N reads, and makes `commits/N` when it is done;
the next one begins where the last finished one ended. A query without a finished batch begins
where `sources/` says, or if that is not there where it is told to.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from pyspark.sql import SparkSession

from headrace.spark.runtime.files import CheckpointFiles

# By topic and partition, the offset of the next record.
Places = Mapping[str, Mapping[int, int]]
Place = tuple[str, int]

_HEAD = 2  # lines before those of the sources: the version, and the batch's metadata
_NOTHING = "-"


class OffsetLog:
    """Of a query that does not run, unless it is asked for a batch that is planned."""

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        self._files = CheckpointFiles(spark, checkpoint)
        self.finished = max(self._files.numbers("commits"), default=None)
        planned = max(self._files.numbers("offsets"), default=None)
        self.planned = planned if planned != self.finished else None

    def reached(self) -> dict[str, dict[int, int]] | None:
        """Where the next batch begins; None if none has finished, or the log cannot be read. Of
        several that read the same topic, the one that is least far counts."""
        if self.finished is None:
            return None
        return self.end_of(self.finished)

    def end_of(self, batch: int) -> dict[str, dict[int, int]] | None:
        """Up to where a batch reads; None if that is not known."""
        found = self._read(batch)
        if found is None:
            return None
        reached: dict[str, dict[int, int]] = {}
        for source in found[1]:
            for topic, partitions in (source or {}).items():
                at = reached.setdefault(topic, {})
                for partition, offset in partitions.items():
                    at[int(partition)] = min(offset, at.get(int(partition), offset))
        return reached

    def move(self, to: Places, anew: Collection[str], back: Collection[Place]) -> None:
        """Goes on from there. In no partition earlier than planned, but in those that went `back`,
        and in topics that are `anew`, of which nothing else is kept.

        A batch that was planned reads what is left of it, and nothing that was not planned.
        """
        if self.planned is not None:
            self._rewrite(self.planned, to, anew, back)
        if self.finished is not None:
            self._rewrite(self.finished, to, anew, back)
        else:
            self._files.delete("sources")

    def _rewrite(
        self, batch: int, to: Places, anew: Collection[str], back: Collection[Place]
    ) -> None:
        found = self._read(batch)
        if found is None:
            return
        head, sources = found
        lines = [_moved(source, to, anew, back) for source in sources]
        texts = (_NOTHING if line is None else json.dumps(line) for line in lines)
        self._files.write(f"offsets/{batch}", "\n".join([*head, *texts]).encode())

    def _read(self, batch: int) -> tuple[list[str], list[dict[str, dict[str, int]] | None]] | None:
        data = self._files.read(f"offsets/{batch}")
        try:
            lines = (data or b"").decode().split("\n")
            sources: list[dict[str, dict[str, int]] | None] = [
                None if line == _NOTHING else json.loads(line) for line in lines[_HEAD:]
            ]
        except ValueError:
            return None
        return (lines[:_HEAD], sources) if sources else None


def _moved(
    source: dict[str, dict[str, int]] | None,
    to: Places,
    anew: Collection[str],
    back: Collection[Place],
) -> dict[str, dict[str, int]] | None:
    if source is None:
        return None
    moved = {}
    for topic, partitions in source.items():
        least = {str(p): offset for p, offset in to.get(topic, {}).items()}
        if topic in anew:
            moved[topic] = least
        else:
            moved[topic] = least | {
                p: max(offset, least.get(p, offset))
                for p, offset in partitions.items()
                if (topic, int(p)) not in back
            }
    return moved
