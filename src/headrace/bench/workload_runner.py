"""Runs workloads: the jobs of a family in turn, round by round, each on every side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby

from headrace.bench.bench_server import BenchServer
from headrace.bench.compare import compare
from headrace.bench.figures import HEADRACE, SIDES, Absent, Cell, Row, samples
from headrace.bench.flink import Flink
from headrace.bench.jobs import SPARK_WARM_UP_SECONDS, SPARK_WARM_UPS, Job, Size
from headrace.bench.kafka_streams import KafkaStreams
from headrace.bench.measures import Measure, Run
from headrace.bench.sides import ByHand, Ours, Side
from headrace.bench.workloads import JOBS, MEASURES
from headrace.model.errors import HeadraceError

Workload = Job | Measure
QUICK_RECORDS = 100_000
EQUAL = "equal"


def choose(names: Sequence[str], quick: bool = False) -> list[Workload]:
    """The workloads of these names, or all, or the quick ones; and what their bars compare with."""
    every: tuple[Workload, ...] = (*JOBS, *MEASURES)
    known = {workload.name: workload for workload in every}
    families = {job.family for job in JOBS}
    if unknown := [name for name in names if name not in known and name not in families]:
        raise HeadraceError(
            f"There is no workload '{unknown[0]}': `headrace bench --list` shows them all."
        )
    wanted = set(names) or {w.name for w in every if w.quick or not quick}
    wanted |= {job.name for job in JOBS if job.family in wanted}
    todo = list(wanted)
    while todo:
        job = known.get(todo.pop())
        for bar in job.bars if isinstance(job, Job) else ():
            if bar.against in known and bar.against not in wanted:
                wanted.add(bar.against)
                todo.append(bar.against)
    return [workload for workload in every if workload.name in wanted]


def families(workloads: Sequence[Workload]) -> list[list[Workload]]:
    """What runs together: jobs by their family, each measure alone."""
    return [
        list(group)
        for _, group in groupby(workloads, lambda w: w.family if isinstance(w, Job) else w.name)
    ]


@dataclass
class Runner:
    """Runs workloads on one server. `problems` lists what failed or differed."""

    at: BenchServer
    repeats: int
    files: ExitStack
    announce: Callable[[str], None]
    records: int | None = None
    quick: bool = False
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        others: tuple[Side, ...] = (ByHand(self.at), KafkaStreams(self.at, self.files))
        # Flink takes the longest to start: it is not for quick runs.
        slow: tuple[Side, ...] = () if self.quick else (Flink(self.at),)
        self.sides: tuple[Side, ...] = (Ours(self.at), *others, *slow)

    def run(self, workloads: Sequence[Workload]) -> Iterator[Row]:
        for number, group in enumerate(together := families(workloads), 1):
            first = group[0]
            name = first.family if isinstance(first, Job) else first.name
            self.announce(f"[{number}/{len(together)}] {name}")
            if isinstance(first, Measure):
                yield from self._measure(first)
            else:
                yield from self._turns([job for job in group if isinstance(job, Job)])

    def _size(self, workload: Workload) -> int:
        if self.records is not None:
            return self.records
        return min(workload.records, QUICK_RECORDS) if self.quick else workload.records

    def _measure(self, measure: Measure) -> Iterator[Row]:
        size = self._size(measure)
        run = Run(self.at, size, self.repeats, self.sides, self.announce, self.problem, self.quick)
        try:
            yield from measure.run(run)
        except Exception as e:  # one workload that fails must not take the others with it
            self.problem(f"{measure.name} failed: {e}")
            yield Row(measure.name, measure.title, "", {HEADRACE: Absent(f"failed: {e}")})

    def _turns(self, jobs: Sequence[Job]) -> Iterator[Row]:
        turns = [JobRun(job, Size(self._size(job)), self) for job in jobs]
        for turn in turns:
            turn.warm_up()
        for i in range(self.repeats):
            for turn in turns:
                turn.take(i, last=i == self.repeats - 1)
        for turn in turns:
            yield turn.row()
        self.at.forget_sources()

    def problem(self, text: str) -> None:
        self.problems.append(text)
        self.announce(text)


class JobRun:
    """One job on all its sides: the rates so far, and which sides have dropped out and why."""

    def __init__(self, job: Job, size: Size, runner: Runner) -> None:
        self.job, self.size, self.runner = job, size, runner
        self.rates: dict[str, list[float]] = {}
        self.absent: dict[str, str] = {}
        self.spent: dict[str, Mapping[str, float]] = {}
        self.outputs = ""
        forms = {"PySpark": job.by_hand, "Kafka Streams": job.streams, "Flink": job.flink}
        self.sides = []
        for side in runner.sides:
            if side.name != HEADRACE and forms.get(side.name) is None:
                continue
            if reason := side.why_not(job):
                self.absent[side.name] = reason
            else:
                self.sides.append(side)

    @property
    def input_records(self) -> int:
        """What the rate counts: the records of streams, and of tables that grow with the job."""
        counted = [source for source in self.job.sources if source.rows is None]
        return sum(source.count(self.size) for source in counted)

    def warm_up(self) -> None:
        size = self.size.for_warm_up()
        for side in list(self.sides):
            if isinstance(side, KafkaStreams | Flink):
                continue  # they warm up themselves, in processes of their own
            took = 0.0
            for _ in range(1 if self.runner.quick else SPARK_WARM_UPS):
                seconds = self._seconds(side, size, self._sink(side, "warm"))
                self._forget(self._sink(side, "warm"))
                took += seconds or 0.0
                if seconds is None or took > SPARK_WARM_UP_SECONDS:
                    break

    def take(self, number: int, last: bool) -> None:
        written = {}
        # Who comes first finds the machine, and Spark's JVM, as the work before has left them.
        first = number % max(len(self.sides), 1)
        for side in [*self.sides[first:], *self.sides[:first]]:
            sink = self._sink(side, str(number))
            seconds = self._seconds(side, self.size, sink)
            if seconds is not None:
                rate = self.input_records / seconds
                self.rates.setdefault(side.name, []).append(rate)
                self.runner.announce(f"  {self.job.name}, {side.name}: {rate:,.0f} records/s")
                written[side.name] = sink
                if side.spent:
                    self.spent[side.name] = side.spent
        if last and HEADRACE in written:
            self._compare(written)
        for sink in written.values():
            self._forget(sink)

    def _compare(self, written: dict[str, str]) -> None:
        at = self.runner.at
        for side, sink in written.items():
            if side == HEADRACE:
                continue
            found = compare(at, self.job, written[HEADRACE], sink)
            if found is None:
                self.outputs = self.outputs or EQUAL
            else:
                self.outputs = f"NOT EQUAL to {side}"
                self.runner.problem(f"{self.job.name}: {side} wrote something else: {found}")

    def row(self) -> Row:
        cells: dict[str, Cell] = {}
        for side in SIDES:
            if side in self.absent:
                cells[side] = Absent(self.absent[side])
            elif side in self.rates:
                cells[side] = samples(self.rates[side])
        job = self.job
        return Row(
            job.name,
            job.title,
            "records/s",
            cells,
            job.bars,
            self.size.records,
            self.outputs,
            spent=self.spent,
        )

    def _seconds(self, side: Side, size: Size, sink: str) -> float | None:
        """None if the side failed; it has dropped out then."""
        at = self.runner.at
        try:
            for source in self.job.sources:
                at.source(source, size)
            return side.seconds(self.job, size, at.sink(sink))
        except Exception as e:  # one side that fails must not take the others with it
            self.absent[side.name] = f"failed: {e}"
            self.sides.remove(side)
            self.runner.problem(f"{self.job.name}, {side.name} failed: {e}")
            return None

    def _sink(self, side: Side, suffix: str) -> str:
        words = f"{self.job.name} {side.name} {suffix}".lower()
        return "_".join(words.replace("-", " ").split())

    def _forget(self, topic: str) -> None:
        if self.runner.at.admin.exists(topic):
            self.runner.at.admin.delete(topic)
