"""Measures: what is not a job with an end, such as a latency; each yields rows of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headrace.bench.figures import HEADRACE, Row
from headrace.bench.ground import Ground
from headrace.bench.sides import Side


@dataclass(frozen=True)
class Run:
    """What a measure gets: where it runs, how large it is to be, how often, and all sides.

    `tell` takes how far it is, `problem` what failed on the way.
    """

    at: Ground
    records: int
    repeats: int
    sides: tuple[Side, ...]
    tell: Callable[[str], None]
    problem: Callable[[str], None]
    quick: bool = False

    @property
    def ours(self) -> Side:
        return next(side for side in self.sides if side.name == HEADRACE)


@dataclass(frozen=True)
class Measure:
    name: str
    title: str
    run: Callable[[Run], Iterator[Row]]
    records: int
    quick: bool = False
