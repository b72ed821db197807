"""Measures: workloads that are not bounded jobs, such as a latency; each yields its own rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headrace.bench.bench_server import BenchServer
from headrace.bench.figures import HEADRACE, Row
from headrace.bench.sides import Side


@dataclass(frozen=True)
class Run:
    """What a measure gets: where it runs, how large it is to be, how often, and all sides.

    `announce` takes how far it is, `problem` what failed on the way.
    """

    at: BenchServer
    records: int
    repeats: int
    sides: tuple[Side, ...]
    announce: Callable[[str], None]
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
