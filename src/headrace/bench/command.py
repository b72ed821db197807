"""`headrace bench`: measures what users compare, on the machine it runs on."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console

from headrace.bench import chart, flink, report
from headrace.bench.bench_server import bench_server
from headrace.bench.figures import Results, Row
from headrace.bench.jobs import Job
from headrace.bench.machine import about
from headrace.bench.measures import Measure
from headrace.bench.workload_runner import Runner, choose
from headrace.bench.workloads import JOBS, MEASURES
from headrace.model.errors import HeadraceError

OK, FAILED = 0, 1
REPEATS = 3
JSON, PAGE, CHART = "benchmark.json", "benchmark.md", "img/benchmark.svg"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="workloads, or families of them (default: all)"
    )
    parser.add_argument("--list", action="store_true", help="show the workloads and end")
    parser.add_argument(
        "--quick", action="store_true", help="the main ratios, once, on less data: minutes"
    )
    parser.add_argument(
        "--records", type=_positive, metavar="N", help="records of each (default: each its own)"
    )
    parser.add_argument(
        "--repeats", type=_positive, metavar="R", help=f"default: {REPEATS}; quick: 1"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help=f"write {PAGE}, {JSON} and {CHART} here (default: build/bench)",
        default=Path("build") / "bench",
    )
    parser.add_argument(
        "--with-flink",
        action="store_true",
        help="install Flink (700 MB) if it is not there; once there, it is always a side",
    )
    parser.add_argument(
        "--add",
        action="store_true",
        help="keep the rows of an earlier run in DIR that this one does not measure",
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return int(text)


def run(args: argparse.Namespace) -> int:
    if args.list:
        show_list()
        return OK
    workloads = choose(args.names, args.quick)
    repeats = args.repeats or (1 if args.quick else REPEATS)
    earlier = _earlier(args.out) if args.add else Results(())
    facts = about(repeats)
    rows: list[Row] = []
    problems: list[str] = []
    announce = _announcer()
    if args.with_flink:
        try:
            flink.install(announce)
        except HeadraceError as e:
            announce(f"{e} The other sides run without it.")
    try:
        with _ended_in_order(), ExitStack() as files:
            at = files.enter_context(bench_server(announce))
            runner = Runner(at, repeats, files, announce, args.records, args.quick, problems)
            for row in runner.run(workloads):
                rows.append(row)
                write(args.out, Results(tuple(rows), facts).with_earlier(earlier))
    finally:
        # Also of a run that was broken off.
        if rows:
            _show(Results(tuple(rows), facts), problems, args.out)
    return FAILED if problems else OK


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Ends the run properly on a signal: results so far are shown, and nothing is left running."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _show(results: Results, problems: Sequence[str], out: Path) -> None:
    # A file has no width of its own; a table wants one.
    console = Console(width=None if sys.stdout.isatty() else 160)
    report.show(console, results)
    for problem in problems:
        console.print(problem, style="red", markup=False)
    console.print(f"Written: {out / PAGE}, {out / JSON}, {out / CHART}")


def show_list() -> None:
    workloads: tuple[Job | Measure, ...] = (*JOBS, *MEASURES)
    for workload in workloads:
        family = f" [{workload.family}]" if isinstance(workload, Job) else ""
        mark = " (quick)" if workload.quick else ""
        count = f"{workload.records:,} records" if workload.records else ""
        print(f"{workload.name:<24} {workload.title}{family}{mark}  {count}".rstrip())


def write(directory: Path, results: Results) -> None:
    """The page, its data, and the chart."""
    (directory / CHART).parent.mkdir(parents=True, exist_ok=True)
    (directory / JSON).write_text(report.to_json(results))
    shown = report.compared_rates(results)
    if shown:
        (directory / CHART).write_text(chart.svg(shown))
    (directory / PAGE).write_text(report.markdown(results, CHART if shown else None))


def _earlier(directory: Path) -> Results:
    file = directory / JSON
    return report.from_json(file.read_text()) if file.exists() else Results(())


def _announcer() -> Callable[[str], None]:
    began = time.monotonic()

    def announce(text: str) -> None:
        seconds = int(time.monotonic() - began)
        print(f"{seconds // 60:3}:{seconds % 60:02} {text}", file=sys.stderr, flush=True)

    return announce
