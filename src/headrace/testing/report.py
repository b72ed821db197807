"""The report of a run: progress, failures side by side, totals, and a JSON file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from headrace.testing.gaps import Gap, Judged
from headrace.testing.outcomes import Outcome, Result

SHOWN_CHARACTERS = 2_000


class Reporter:
    """Shows a run on a terminal, or as plain lines elsewhere."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("Starting", total=total)

    def __enter__(self) -> Reporter:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def announce(self, text: str) -> None:
        """Shows what the run is doing."""
        self._progress.update(self._task, description=text)
        if not self._console.is_terminal:
            self._console.print(text, markup=False, highlight=False)

    def add(self, judged: Judged) -> None:
        self._progress.update(self._task, advance=1, description=judged.outcome.case.file[-40:])
        if not judged.is_right:
            self._progress.console.print(_failure(judged))


def show_summary(console: Console, judged: Sequence[Judged], stale: Sequence[Gap]) -> None:
    console.print(_by_file(judged))
    for gap in stale:
        console.print(f"The gap list names a case that does not exist: {gap.label}", style="red")
    sums = Counter(_standing(j) for j in judged)
    texts = [f"{sums[name]} {name}" for name in _STANDINGS if sums[name]]
    console.print(", ".join(texts) or "No cases.", markup=False, highlight=False)


_STANDINGS = ("passed", "failed", "passed although listed as a gap", "known gaps", "skipped")


def _standing(judged: Judged) -> str:
    match judged.outcome.result, judged.gap:
        case Result.PASSED, None:
            return "passed"
        case Result.PASSED, _:
            return "passed although listed as a gap"
        case Result.FAILED, None:
            return "failed"
        case Result.FAILED, _:
            return "known gaps"
    return "skipped"


def _failure(judged: Judged) -> Group:
    outcome = judged.outcome
    title = Text(outcome.case.label, style="bold red")
    if judged.gap is not None:
        return Group(title, Text(f"It passes, yet it is listed as a gap: {judged.gap.reason}"))
    reason = Text(outcome.reason)
    if not outcome.expected and not outcome.actual:
        return Group(title, reason)
    table = Table(expand=True)
    table.add_column("expected", ratio=1, overflow="fold")
    table.add_column("actual", ratio=1, overflow="fold")
    table.add_row(*(Text(t[:SHOWN_CHARACTERS]) for t in (outcome.expected, outcome.actual)))
    return Group(title, reason, table)


def _by_file(judged: Iterable[Judged]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("file")
    for name in ("passed", "failed", "gaps", "skipped", "seconds"):
        table.add_column(name, justify="right")
    files: dict[str, list[Judged]] = {}
    for j in judged:
        files.setdefault(j.outcome.case.file, []).append(j)
    for file, group in sorted(files.items()):
        sums = Counter(_standing(j) for j in group)
        wrong = sums["failed"] + sums["passed although listed as a gap"]
        table.add_row(
            Text(file),
            str(sums["passed"]),
            Text(str(wrong), style="red" if wrong else ""),
            str(sums["known gaps"]),
            str(sums["skipped"]),
            f"{sum(j.outcome.seconds for j in group):.1f}",
        )
    return table


def write_report(path: Path, outcomes: Sequence[Outcome]) -> None:
    sums = Counter(o.result for o in outcomes)
    report = {
        **{result.value: sums[result] for result in Result},
        "cases": [
            {
                "file": o.case.file,
                "name": o.case.name,
                "result": o.result.value,
                "reason": _reason(o),
                "seconds": round(o.seconds, 3),
            }
            for o in outcomes
        ],
    }
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _reason(outcome: Outcome) -> str:
    if not outcome.expected and not outcome.actual:
        return outcome.reason
    return f"{outcome.reason}\nexpected: {outcome.expected}\nactual: {outcome.actual}"
