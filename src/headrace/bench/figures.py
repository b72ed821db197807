"""Figures: repeats with median and spread, ratios of two sides, and bars that they must reach."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

HEADRACE, BY_HAND, STREAMS, FLINK = "Headrace", "PySpark", "Kafka Streams", "Flink"
SIDES = (HEADRACE, BY_HAND, STREAMS, FLINK)


@dataclass(frozen=True)
class Samples:
    """One side's figure, once for each repeat."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("a figure needs at least one value")

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)


@dataclass(frozen=True)
class Absent:
    """Why a side has no figure."""

    reason: str


Cell = Samples | Absent

SHORT = Absent("left out, so that a run does not take too long; its neighbours have a figure")


@dataclass(frozen=True)
class Bar:
    """The value that a figure must reach, or must not exceed.

    Against nothing it is about Headrace's own figure; against a side or another row it is about
    the ratio of Headrace's figure to that one, repeat by repeat. A bar that is missed does not
    count if `unless` is met.
    """

    wanted: float
    against: str = ""
    at_most: bool = False
    unless: Bar | None = None


@dataclass(frozen=True)
class Row:
    """One line of the table: the same work on every side, in the same unit.

    `outputs` tells what the comparison of the sides' outputs gave, if there was one.
    """

    name: str
    title: str
    unit: str
    cells: Mapping[str, Cell]
    bars: tuple[Bar, ...] = ()
    records: int | None = None
    outputs: str = ""
    measured: str = ""  # when, if it was not in the run that the page is about
    # Where the seconds of a side's last repeat went, by side.
    spent: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """Whether a bar was reached; `ratio` and `met` are None where there was nothing to compare."""

    bar: Bar
    reached: float | None
    met: bool | None
    instead: Verdict | None = None


@dataclass(frozen=True)
class Results:
    """All rows of a run, and what they were measured on."""

    rows: tuple[Row, ...]
    about: Mapping[str, str] = field(default_factory=dict)

    def row(self, name: str) -> Row | None:
        return next((row for row in self.rows if row.name == name), None)

    def verdicts(self, row: Row) -> list[Verdict]:
        return [self.judge(row, bar) for bar in row.bars]

    def missed(self) -> list[tuple[Row, Verdict]]:
        return [(r, v) for r in self.rows for v in self.verdicts(r) if v.met is False]

    def judge(self, row: Row, bar: Bar) -> Verdict:
        reached = self._reached(row, bar.against)
        if reached is None:
            return Verdict(bar, None, None)
        met = reached <= bar.wanted if bar.at_most else reached >= bar.wanted
        if met or bar.unless is None:
            return Verdict(bar, reached, met)
        instead = self.judge(row, bar.unless)
        return Verdict(bar, reached, instead.met is True, instead)

    def _reached(self, row: Row, against: str) -> float | None:
        ours = row.cells.get(HEADRACE)
        if not isinstance(ours, Samples):
            return None
        if not against:
            return ours.median
        if against in SIDES:
            other = row.cells.get(against)
        else:
            found = self.row(against)
            other = None if found is None else found.cells.get(HEADRACE)
        return ratio(ours, other) if isinstance(other, Samples) else None

    def with_earlier(self, earlier: Results) -> Results:
        """These rows, and those of an earlier run that this one did not measure again."""
        mine = {row.name: row for row in self.rows}
        when = earlier.about.get("measured", "")
        before = {row.name: replace(row, measured=row.measured or when) for row in earlier.rows}
        return Results(tuple((before | mine).values()), self.about)


def ratio(ours: Samples, other: Samples) -> float:
    """The median of the ratios of each repeat: what slows a whole repeat slows both sides."""
    if len(ours.values) != len(other.values):
        return ours.median / other.median
    return statistics.median(a / b for a, b in zip(ours.values, other.values, strict=True))


def samples(values: Iterable[float]) -> Samples:
    return Samples(tuple(values))


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
