"""`headrace test`: runs test files and reports failures."""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from headrace.functions.extensions import load_extensions
from headrace.functions.registry import REGISTRY
from headrace.model.errors import HeadraceError
from headrace.model.pairs import add_pairs
from headrace.model.settings import Settings
from headrace.testing import functions as ksqldb_functions
from headrace.testing.case_runner import run_cases
from headrace.testing.cases import Case
from headrace.testing.files import load_cases, load_separate
from headrace.testing.gaps import Gaps, Judged, read_gaps
from headrace.testing.rehearsal import TEST_SETTINGS
from headrace.testing.report import Reporter, show_summary, write_report

PASSED, FAILED, USAGE = 0, 1, 2
# What ksqlDB's own test files call besides the functions that everyone has.
KSQLDB_FUNCTIONS = Path(ksqldb_functions.__file__).parent

SELECTIONS: dict[str, Callable[[Case], bool]] = {
    "all": lambda case: True,
    "errors": lambda case: case.error is not None and not case.runs_queries,
    "queries": lambda case: case.runs_queries,
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH", help="test files, or folders of them"
    )
    separate = parser.add_argument_group("statements and records in files of their own")
    separate.add_argument("-s", "--sql-file", type=Path, metavar="FILE", help="the statements")
    separate.add_argument("-i", "--input-file", type=Path, metavar="FILE", help="records in")
    separate.add_argument("-o", "--output-file", type=Path, metavar="FILE", help="records out")
    parser.add_argument(
        "--select",
        choices=sorted(SELECTIONS),
        default="all",
        help="cases by what they expect: errors of statements, or records (default: all)",
    )
    parser.add_argument("--filter", metavar="TEXT", help="cases whose file or name holds this")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="of the cases, a choice of N; always the same"
    )
    parser.add_argument(
        "--plan-only", action="store_true", help="check statements, but run no query"
    )
    parser.add_argument(
        "--direct", action="store_true", help="evaluate queries without Kafka and streaming: faster"
    )
    parser.add_argument(
        "--every-record",
        action="store_true",
        help="a SQL case that expects records of a topic has to expect all of them",
    )
    parser.add_argument(
        "--ext", type=Path, metavar="DIR", default=Path("ext"), help="your functions (default: ext)"
    )
    add_pairs(parser, "--set", help="a setting that all cases run under, as of the server")
    parser.add_argument(
        "--gaps",
        type=Path,
        metavar="FILE",
        help="cases that are known to fail, and the settings that the cases assume",
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the results as JSON")
    parser.add_argument(
        "--jobs", type=int, metavar="N", default=os.cpu_count() or 2, help="cases at a time"
    )


def run(args: argparse.Namespace) -> int:
    console = Console()
    for folder in (KSQLDB_FUNCTIONS, args.ext):
        for problem in load_extensions(folder, REGISTRY):
            console.print(str(problem), style="red", markup=False)
    loaded = _load(args)
    gaps = read_gaps(args.gaps) if args.gaps else Gaps()
    settings = Settings(TEST_SETTINGS, {**gaps.settings, **dict(args.set)})
    cases = [c for c in loaded if SELECTIONS[args.select](c) and _wanted(c, args.filter)]
    cases = _sampled(cases, args.sample)
    if not cases:
        console.print("There is no such case.")
        return USAGE
    judged: list[Judged] = []
    try:
        with _ended_in_order(), Reporter(console, len(cases)) as reporter:
            for outcome in run_cases(
                cases,
                args.jobs,
                reporter.announce,
                settings,
                plan_only=args.plan_only,
                direct=args.direct,
                every_record=args.every_record,
            ):
                one = gaps.judge(outcome)
                if args.plan_only and outcome.case.runs_queries:
                    one = one.as_far_as_planned()
                judged.append(one)
                reporter.add(one)
    finally:
        # Also of a run that was broken off.
        stale = gaps.stale(loaded)
        show_summary(console, judged, stale)
        if args.report:
            write_report(args.report, [j.outcome for j in judged])
    return PASSED if all(j.is_right for j in judged) and not stale else FAILED


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Ends the run properly on a signal: results so far are shown, and nothing is left running."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _sampled(cases: list[Case], count: int | None) -> list[Case]:
    """A sample of the cases, chosen by their names alone."""
    if count is None:
        return cases
    chosen = sorted(cases, key=lambda c: hashlib.sha256(c.name.encode()).digest())[:count]
    kept = set(map(id, chosen))
    return [case for case in cases if id(case) in kept]


def _load(args: argparse.Namespace) -> Sequence[Case]:
    if args.sql_file is None:
        if not args.paths:
            raise HeadraceError("Name a test file, a folder of them, or --sql-file.")
        return load_cases(args.paths)
    if args.output_file is None:
        raise HeadraceError("--sql-file needs --output-file, the records that are expected.")
    return [load_separate(args.sql_file, args.input_file, args.output_file)]


def _wanted(case: Case, text: str | None) -> bool:
    return text is None or text.lower() in case.label.lower()
